"""The registry of vLLM's Rust frontend: read from its sources, in the one form that they have, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gen_defaults import rust_source
from gen_defaults.place import Place
from gen_defaults.released import Index
from gen_defaults.sources import SOURCES as READERS
from gen_defaults.sources import SourceRequest, engines
from importer.wheels.index import IndexFailure
from tests.gen_checkout import said
from tests.gen_releases import VLLM, checkout
from tests.package_index import PackageIndex, sdist, wheel

pytestmark = pytest.mark.slow  # the makers of tables

TOOL = """
pub mod names {
    pub const ONE: &str = "one"; // pub const GONE: &str = "gone";
    pub const FIRST: &str = "first";
}
factory
    .register_parser::<OneParser>(names::ONE)
    .register_parser::<OneParser>(names::FIRST);
// factory.register_parser::<OneParser>(names::GONE);
factory.register_pattern("Acme-1", names::ONE).register_pattern("acme", names::FIRST);
pub fn register_parser<T>(&mut self, name: &str) -> &mut Self { self.register_creator(name, x) }
#[cfg(test)]
mod tests { factory.register_parser::<Fake>("fake"); }
"""
REASONING = """
pub mod names { pub const THINK: &str = "think"; }
factory.register_parser::<Think>(names::THINK);
"""
UNIFIED = """
pub mod names { pub const BOTH: &str = "both"; }
factory.register_parser::<Both>(names::BOTH);
factory.register_pattern("both-", names::BOTH);
"""
SOURCES = {
    f"{rust_source.PLACE}/tool/mod.rs": TOOL,
    f"{rust_source.PLACE}/reasoning/mod.rs": REASONING,
    f"{rust_source.PLACE}/unified.rs": UNIFIED,
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return checkout(tmp_path / "checkout")


def test_names_types_and_guesses_of_the_sources() -> None:
    rows = rust_source.rows(SOURCES)
    assert rows["tool"] == [
        ("both", "Both", "vllm_parser::unified"),
        ("first", "OneParser", "vllm_parser::tool"),
        ("one", "OneParser", "vllm_parser::tool"),
    ]
    assert [name for name, *_ in rows["reasoning"]] == ["both", "think"]
    guesses = rust_source.guesses(SOURCES)
    assert [(g["in_id"], g["parser"]) for g in guesses if g["kind"] == "tool"] == [
        ("both-", "both"), ("acme-1", "one"), ("acme", "first"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("names::THINK)", "name_of(3))", "1 of 1 parsers are registered otherwise"),
        ('pub const THINK: &str = "think";', "", "the name THINK is no constant"),
        ("factory.register_parser::<Think>(names::THINK);", "factory.register_creator(n, c);", "otherwise"),
    ],
)
def test_a_registration_in_another_form_is_refused(old: str, new: str, says: str) -> None:
    path = f"{rust_source.PLACE}/reasoning/mod.rs"
    with pytest.raises(ValueError, match=says):
        rust_source.rows(SOURCES | {path: REASONING.replace(old, new)})


def test_a_pattern_in_another_form_is_refused() -> None:
    path = f"{rust_source.PLACE}/unified.rs"
    with pytest.raises(ValueError, match="a pattern"):
        rust_source.guesses(SOURCES | {path: UNIFIED.replace('"both-"', "PATTERN")})


def test_the_registry_comes_from_the_sdist_of_the_version(
    package_index: PackageIndex, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "PREFIXES", {"vllm-rust": ("0.9",)})
    package_index.add("vllm", "vllm-0.9.10-cp38-abi3-linux_x86_64.whl", wheel(VLLM))
    package_index.add("vllm", "vllm-0.9.10.tar.gz", sdist("vllm", "0.9.10", {**SOURCES, **VLLM}))
    found = said("vllm-rust", place)["vllm-rust-0.9.10.json"]
    assert found["source"]["file"] == "vllm-0.9.10.tar.gz"
    assert found["tool"][1] == {
        "name": "first", "class": "OneParser", "module": "vllm_parser::tool", "aliases": ["one"]
    }  # fmt: skip
    assert {"kind": "reasoning", "in_id": "both-", "parser": "both"} in found["inference"]


@pytest.mark.parametrize("pinned", [False, True])
def test_a_persons_wheel_leaves_the_registry_as_it_is(tmp_path: Path, place: Place, pinned: bool) -> None:
    folder = tmp_path / "archives"
    folder.mkdir()
    (folder / "vllm-0.33.0-cp38-abi3-linux_x86_64.whl").write_bytes(wheel(VLLM))
    answer = READERS["vllm-rust"](SourceRequest(Index(folder), place, pinned=pinned))
    assert answer.files == {}


def test_an_sdist_without_the_frontend_is_refused(
    package_index: PackageIndex, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "PREFIXES", {"vllm-rust": ("0.9",)})
    package_index.add("vllm", "vllm-0.9.10.tar.gz", sdist("vllm", "0.9.10", VLLM))
    with pytest.raises((IndexFailure, AssertionError), match="has no tool parsers"):
        said("vllm-rust", place)
