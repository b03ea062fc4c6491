"""Engines' registries: read from sources that are never run, however they are written, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gen_defaults.place import Place
from gen_defaults.proposal import step
from gen_defaults.released import Index
from gen_defaults.sources import engines
from importer.engines.registries import parsed
from importer.wheels.index import IndexFailure
from tests.gen_checkout import said
from tests.gen_releases import MLX, MLX_VLM, SGLANG, VLLM, VLLM_MLX, VLLM_TOOLS, checkout
from tests.package_index import PackageIndex, sdist, wheel

pytestmark = pytest.mark.slow  # the makers of tables

TABLE = "_TOOL_PARSERS_TO_REGISTER"
TOOLS = "vllm/tool_parsers/__init__.py"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return checkout(tmp_path / "checkout")


def test_registries_are_read_from_sources_that_are_never_run(package_index, place, monkeypatch):
    monkeypatch.setattr(engines, "PREFIXES", {"vllm": ("0.9", engines.NEWEST)})
    for version in ("0.9.9", "0.9.10", "0.10.0rc1"):
        package_index.add("vllm", f"vllm-{version}-cp38-abi3-linux_x86_64.whl", wheel(VLLM))
    package_index.add("vllm", "vllm-0.10.0.tar.gz", sdist("vllm", "0.10.0", VLLM))
    found = said("vllm", place)
    assert sorted(found) == ["vllm-0.10.0.json", "vllm-0.9.10.json"]
    assert found["vllm-0.9.10.json"]["tool"] == [
        {"name": "alpha", "class": "OneParser", "module": "vllm.tool_parsers.one_file", "aliases": ["beta"]},
        {"name": "beta", "class": "OneParser", "module": "vllm.tool_parsers.one_file", "aliases": ["alpha"]},
        {"name": "gamma", "class": "TwoParser", "module": "vllm.tool_parsers.two_file", "aliases": []},
    ]
    assert found["vllm-0.9.10.json"]["reasoning"][0]["module"] == "vllm.reasoning.thinking"


def test_mlx_parsers_and_the_rules_by_which_they_are_chosen(package_index, place, monkeypatch):
    monkeypatch.setattr(engines, "PREFIXES", {"mlx": ("0.2",), "mlx-vlm": ("0.1",)})
    package_index.add("mlx-lm", "mlx_lm-0.2.0-py3-none-any.whl", wheel(MLX))
    package_index.add("mlx-vlm", "mlx_vlm-0.1.0-py3-none-any.whl", wheel(MLX_VLM))
    mlx = said("mlx-lm", place)["mlx-0.2.0.json"]
    assert [(row["name"], row["class"], row["aliases"]) for row in mlx["tool"]] == [
        ("other", "own.parse_tool_call", ["own"]),
        ("own", "own.parse_tool_call", ["other"]),
    ]
    assert mlx["inference"] == [
        {"parser": "own", "template": [["<one>", "<two>"]]},
        {"parser": "other", "template": [["<a>"], ["<b>"]]},
        {"parser": "own", "vocabulary": [["<x>", "<y>"]]},
    ]
    found = said("mlx-vlm", place)["mlx-vlm-0.1.0.json"]
    assert [(row["name"], row["module"]) for row in found["tool"]] == [("own", "mlx_vlm.tools.parsers.own")]
    assert [(row["name"], row["class"]) for row in found["reasoning"]] == [("<a>", "</a>")]
    assert [rule["parser"] for rule in found["inference"]] == ["best", "own"]


def test_vllm_mlx_registers_by_decorator_and_call(package_index, place, monkeypatch):
    monkeypatch.setattr(engines, "PREFIXES", {"vllm-mlx": ("0.1",)})
    package_index.add("vllm-mlx", "vllm_mlx-0.1.0-py3-none-any.whl", wheel(VLLM_MLX))
    found = said("vllm-mlx", place)["vllm-mlx-0.1.0.json"]
    assert [(row["name"], row["class"], row["aliases"]) for row in found["tool"]] == [
        ("alpha", "One", ["beta"]),
        ("beta", "One", ["alpha"]),
        ("gamma", "Two", []),
    ]
    assert found["reasoning"][0]["module"] == "vllm_mlx.reasoning.thinking"


def test_sources_that_have_moved_are_noticed(package_index, place, monkeypatch):
    monkeypatch.setattr(engines, "PREFIXES", {"vllm": (engines.NEWEST,)})
    package_index.add("vllm", "vllm-1.0.0.tar.gz", sdist("vllm", "1.0.0", {"vllm/elsewhere.py": VLLM_TOOLS}))
    with pytest.raises(IndexFailure, match="has no tool parsers where they were looked for"):
        said("vllm", place)


def test_a_release_that_the_index_lacks_is_said(package_index):
    package_index.add("vllm", "vllm-1.0.0.tar.gz", sdist("vllm", "1.0.0", VLLM))
    with pytest.raises(IndexFailure, match="no index has mlx-lm"):
        Index().releases("mlx-lm")
    with pytest.raises(IndexFailure, match=r"vllm has no release 2\.0; its newest are 1\.0\.0"):
        engines.chosen(Index().wheels("vllm"), ("2.0",))


def test_sglang_sets_some_reasoning_parsers_up_by_name(package_index, place, monkeypatch):
    monkeypatch.setattr(engines, "PREFIXES", {"sglang": ("0.5",)})
    package_index.add("sglang", "sglang-0.5.0-py3-none-any.whl", wheel(SGLANG))
    found = said("sglang", place)["sglang-0.5.0.json"]
    classes = {row["name"]: row["class"] for row in found["reasoning"]}
    assert classes == {"alpha": "Two", "beta": "Two", "gamma": "Two(gamma)"}
    assert {row["module"] for row in found["tool"]} == {"sglang.srt.function_call.one"}
    assert found["tool"][0]["aliases"] == ["beta"]


def test_what_came_and_went_between_two_versions():
    def registry(version: str, **classes: str) -> Any:
        rows = [{"name": n, "class": c, "module": "m", "aliases": []} for n, c in classes.items()]
        return parsed({"engine": "vllm", "version": version, "source": {}, "tool": rows, "reasoning": []})

    old = registry("1", stays="A", goes="B", is_called_otherwise="C", becomes="D")
    new = registry("2", stays="A", now="C", becomes="E", comes="F")
    assert {k: v for k, v in step(old, new) if v} == {
        "new tool": {"comes": "F"},
        "vanished tool": {"goes": "B"},
        "renamed tool": {"is_called_otherwise": ["now"]},
        "changed tool": {"becomes": ["D", "E"]},
    }


# Registries written in another way


def of_vllm(served: PackageIndex, place: Place, tools: str) -> dict[str, str]:
    """Name to class of the tool parsers in a version whose registry is written like this."""
    served.add("vllm", "vllm-1.0.0-cp38-abi3-linux_x86_64.whl", wheel(VLLM | {TOOLS: tools}))
    return {
        row["name"]: row["class"] for row in said("vllm", place, versions=("1",))["vllm-1.0.0.json"]["tool"]
    }


@pytest.mark.parametrize(
    ("tools", "also"),
    [
        (VLLM_TOOLS.replace(f"{TABLE} =", f"{TABLE}: dict[str, tuple[str, str]] ="), {}),
        (f"{VLLM_TOOLS}\nfor name, (file, cls) in {TABLE}.items():\n    register_lazy_module(name)\n", {}),
        (f"{VLLM_TOOLS}\nManager.register_lazy_module('nova', 'vllm.nova', 'Nova')\n", {"nova": "Nova"}),
        (
            f"{VLLM_TOOLS}\nregister_lazy_module('nova', class_name='Nova', module_path='vllm.nova')\n",
            {"nova": "Nova"},
        ),
    ],
    ids=["annotated", "loop", "call", "keywords"],
)
def test_a_registry_that_is_read_all_the_same(
    package_index: PackageIndex, place: Place, tools: str, also: dict[str, str]
) -> None:
    own = {"alpha": "OneParser", "beta": "OneParser", "gamma": "TwoParser"}
    assert of_vllm(package_index, place, tools) == own | also


@pytest.mark.parametrize(
    "later",
    [
        f"{TABLE}['nova'] = ('nova', 'Nova')", f"{TABLE} |= {{'nova': ('nova', 'Nova')}}",
        f"for name in NAMES:\n    {TABLE}[name] = (name, name)", f"del {TABLE}['alpha']", f"{TABLE} = {{}}",
    ],
)  # fmt: skip
def test_a_registry_that_code_amends_is_refused(
    package_index: PackageIndex, place: Place, later: str
) -> None:
    with pytest.raises(IndexFailure, match=rf"{TOOLS} on line \d+ cannot be read: {TABLE} is more"):
        of_vllm(package_index, place, f"{VLLM_TOOLS}\n{later}\n")


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (f"{TABLE} = dict(alpha=('a', 'A'))", "on line 1 cannot be read: .* is no plain literal"),
        (f"{TABLE} = {{**OTHER, 'alpha': ('a', 'A')}}", "is no plain literal"),
        (f"if True:\n    {TABLE} = {{'alpha': ('a', 'A')}}", "is more than one literal"),
        (f"{TABLE} = {{'alpha': ('a', None)}}", "registers a tool parser in another way"),
        (f"{TABLE} = {{1: ('a', 'A')}}", "registers a tool parser in another way"),
        (f"{TABLE} = {{'alpha': ('a', 'A', 'more')}}", "cannot be read as expected"),
        (f"{TABLE} = {{}}", "has no tool parsers where they were looked for"),
        (f"{TABLE} = {{}}\nprint 'x'", "on line 2 cannot be read: Missing parentheses"),
        (f"{TABLE} = {'(' * 999}", "__init__.py.* cannot be read: too many nested parentheses"),
    ],
)
def test_a_registry_that_is_refused(package_index: PackageIndex, place: Place, tools: str, says: str) -> None:
    with pytest.raises(IndexFailure, match=says) as refused:
        of_vllm(package_index, place, tools)
    assert " object at 0x" not in str(refused.value)


@pytest.mark.parametrize(
    ("package", "wheel_file", "texts", "moved"),
    [
        ("mlx-lm", "mlx_lm-0.2.0-py3-none-any.whl", MLX, "_infer_tool_parser"),
        ("mlx-vlm", "mlx_vlm-0.1.0-py3-none-any.whl", MLX_VLM, "SPECS"),
    ],
)
def test_rules_of_choosing_that_have_moved_are_noticed(
    package_index: PackageIndex, place: Place, monkeypatch: pytest.MonkeyPatch, package: str, wheel_file: str,
    texts: dict[str, str], moved: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(engines, "PREFIXES", {"mlx": ("0.2",), "mlx-vlm": ("0.1",)})
    without = {path: text.replace(moved, "elsewhere") for path, text in texts.items()}
    package_index.add(package, wheel_file, wheel(without))
    with pytest.raises(IndexFailure, match="has no rules of choosing a parser where they were looked for"):
        said(package, place)


def test_a_version_that_is_there_is_that_version() -> None:
    known = {v: engines.Release("vllm", v, f"vllm-{v}.tar.gz", "", "") for v in ("0.9.0", "0.9.0.1", "0.9.1")}
    assert [r.version for r in engines.chosen(known, ("0.9.0",))] == ["0.9.0"]
    assert [r.version for r in engines.chosen(known, ("0.9",))] == ["0.9.1"]
