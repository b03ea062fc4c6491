"""Where the tables come from: archives in parts, and what each source's files are read as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_defaults import recipes, sampling
from gen_defaults.place import Place
from gen_defaults.proposal import recommendations
from gen_defaults.released import Index
from gen_defaults.sources import unsloth as unsloth_source
from gen_defaults.sources import vllm_docs
from importer.wheels import archive, index, web
from importer.wheels.index import IndexFailure
from tests.gen_checkout import said
from tests.gen_releases import CONFIGS, DOCS, FAMILIES, REASONING_PAGE, TOOL_PAGE, checkout, fill, unsloth
from tests.package_index import PackageIndex, sdist, wheel

pytestmark = pytest.mark.slow  # the makers of tables

BIG = archive.SMALL + 2 * archive.TAIL


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return checkout(tmp_path / "checkout")


def wanted(path: str) -> bool:
    return path.startswith("kept/")


def part(_index: PackageIndex, file: str, last: str = "") -> archive.Texts:
    released = Index().files("box")[0]
    assert released.file == file
    return Index().part(released, wanted, last)


def test_of_a_large_wheel_only_parts_come(package_index):
    files = {"kept/a.py": "a" * 9000, "other.py": "b", "kept/b.py": "é"}
    package_index.add("box", "box-1.0-py3-none-any.whl", wheel(files, padding=BIG))
    asked = Index()
    found = asked.part(asked.wheels("box")["1.0"], wanted)
    assert dict(found.texts) == {"kept/a.py": "a" * 9000, "kept/b.py": "é"}
    came, size = asked.web.fetched["box-1.0-py3-none-any.whl"]
    assert not found.whole
    assert came < size / 5
    assert all(span for path, span in package_index.asked if path.endswith(".whl"))


def test_an_index_without_pieces_is_read_whole(package_index):
    package_index.pieces = False
    package_index.add("box", "box-1.0-py3-none-any.whl", wheel({"kept/a.py": "a"}, padding=BIG))
    found = part(package_index, "box-1.0-py3-none-any.whl")
    assert found.whole
    assert found.texts == {"kept/a.py": "a"}


def test_an_sdist_is_read_as_far_as_needed(package_index):
    files = {"kept/a.py": "a", "later/noise.txt": "\n".join(str(n * n) for n in range(300_000))}
    package_index.add("box", "box-1.0.tar.gz", sdist("box", "1.0", files))
    asked = Index()
    found = asked.part(asked.releases("box")["1.0"], wanted, "kept")
    assert found.texts == {"kept/a.py": "a"}
    assert not found.whole
    came, size = asked.web.fetched["box-1.0.tar.gz"]
    assert came < size / 2
    assert asked.part(asked.releases("box")["1.0"], wanted).whole  # no last folder: to its end


@pytest.mark.parametrize(
    ("data", "digest", "says"),
    [
        (wheel({"kept/a.py": "a"}), "0" * 64, "is not the file that the index names"),
        (wheel({"kept/a.py": "a"}, lies={"kept/a.py": "b"}, padding=BIG), None, "is not the file that box-1"),
        (wheel({"kept/a.py": "a"}, padding=BIG)[:-90], None, "cannot be read"),
        (b"PK" * 99, None, "cannot be read"),
        (b"", None, "cannot be read"),
        (wheel({"kept/a.py": "a" * (archive.LARGEST + 1)}), None, "larger than 16 MiB"),
    ],
    ids=["digest", "list", "cut", "noise", "empty", "large"],
)
def test_a_wheel_that_is_not_what_it_should_be(package_index, data, digest, says):
    package_index.add("box", "box-1.0-py3-none-any.whl", data, digest)
    with pytest.raises(IndexFailure, match=says):
        part(package_index, "box-1.0-py3-none-any.whl")


def test_the_older_json_tells_the_day_where_the_page_does_not(package_index):
    package_index.add("box", "box-1.0.tar.gz", b"")
    asked = Index()
    release = asked.releases("box")["1.0"]
    assert asked.dated(release).released == ""
    told = {"releases": {"1.0": [{"filename": "box-1.0.tar.gz", "upload_time": "2025-03-04T00:00:00"}]}}
    package_index.pages["/pypi/box/json"] = json.dumps(told).encode()
    assert Index().dated(release).released == "2025-03-04"


@pytest.mark.parametrize("page", [b'{"files": [3]}', b'{"files": {"a": "b"}}', b"{" * 99999])
def test_a_page_that_is_none_is_said(package_index, page):
    package_index.pages["/simple/box/"] = page
    with pytest.raises(IndexFailure, match="box/ is no page of a package index"):
        Index().files("box")


def test_an_index_that_nobody_serves_is_said_without_its_password(monkeypatch, package_index):
    monkeypatch.setattr(index, "_pip", lambda: {"index-url": "http://someone:secret@127.0.0.1:9/simple"})
    with pytest.raises(IndexFailure, match=r"asked were http://127\.0\.0\.1:9/simple \(cannot"):
        Index().files("box")


def test_why_an_index_has_nothing_is_said(package_index, monkeypatch):
    monkeypatch.setattr(web, "TRIES", (0.0,))
    package_index.pages["/simple/box/"] = b"<html>please log in</html>"
    with pytest.raises(IndexFailure, match=r"no index has box; asked were http.* \(lists no file of it\)"):
        Index().files("box")
    del package_index.pages["/simple/box/"]
    with pytest.raises(IndexFailure, match=r"asked were http.*/simple \(answers 404\)"):
        Index().files("box")
    monkeypatch.setattr(index, "_pip", lambda: {"index-url": "http://me:secret@[::1/simple"})
    with pytest.raises(IndexFailure, match=r"asked were \[::1/simple \(Invalid IPv6 URL\)"):
        Index().files("box")
    monkeypatch.setattr(index, "_pip", lambda: {"cert": "/nowhere.pem"})
    with pytest.raises(OSError, match=r"pip's certificates /nowhere\.pem cannot be read: "):
        Index()


def test_pip_may_be_set_to_no_index(package_index, tmp_path, monkeypatch):
    settings = {"index-url": f"{package_index.address}/simple", "no-index": "true"}
    monkeypatch.setattr(index, "_pip", lambda: settings)
    with pytest.raises(IndexFailure, match="asked were none, as pip is set"):
        Index().files("box")
    (tmp_path / "box-1.0.tar.gz").write_bytes(b"")
    settings["find-links"] = tmp_path.as_uri()
    assert Index().files("box")[0].version == "1.0"
    assert package_index.asked == []


def test_find_links_of_pip_are_asked_last(package_index, tmp_path, monkeypatch):
    (tmp_path / "box-1.0.tar.gz").write_bytes(sdist("box", "1.0", {"kept/a.py": "a"}))
    settings = {"index-url": f"{package_index.address}/simple", "find-links": str(tmp_path)}
    monkeypatch.setattr(index, "_pip", lambda: settings)
    assert Index().releases("box")["1.0"].url.startswith("file://")


def test_wheels_for_every_platform_come_first(package_index):
    for file in ("box-1.0-cp38-linux_aarch64.whl", "box-1.0-cp38-linux_x86_64.whl", "box-1.0.tar.gz"):
        package_index.add("box", file, b"")
    assert Index().wheels("box")["1.0"].file == "box-1.0-cp38-linux_x86_64.whl"
    assert Index().releases("box")["1.0"].file == "box-1.0.tar.gz"
    package_index.add("box", "box-1.0-py3-none-any.whl", b"")
    assert Index().wheels("box")["1.0"].file == "box-1.0-py3-none-any.whl"


# Unsloth


def of_unsloth(served: PackageIndex, place: Place, files: dict[str, str]) -> dict[str, Any]:
    served.add("unsloth", "unsloth-2026.1.0-py3-none-any.whl", wheel(files), day="2026-01-05")
    return said("unsloth", place)["unsloth.json"]


def test_unsloth_families_models_and_its_fallback(package_index, place):
    package_index.as_json = True
    found = of_unsloth(package_index, place, unsloth(broken_name="inference: {top_p: 0.5}"))
    assert found["source"]["released"] == "2026-01-05"
    assert found["families"]["acme-2"]["repeat_penalty"] == 1.1
    assert found["fallback"] == {"temperature": 0.7, "top_p": 0.95, "top_k": -1, "min_p": 0.01}
    assert found["models"] == {
        "acme/Acme-2-1B": {"file": "acme/acme_Acme-2-1B.yaml", "temperature": 0.2, "min_p": 0.2},
        "broken/name": {"file": "broken_name.yaml", "top_p": 0.5},
        "other/Acme-2-1B-4bit": {"file": "acme/acme_Acme-2-1B.yaml", "temperature": 0.2, "min_p": 0.2},
    }


@pytest.mark.parametrize("nested", [True, False])
def test_sets_for_thinking_are_kept_apart(package_index, place, nested):
    sets = {"thinking": {"temperature": 1.0, "presence_penalty": 0.0}, "instruct": {"temperature": 0.7}}
    row = FAMILIES["acme-2"] | ({"sampling_modes": sets} if nested else sets)
    found = of_unsloth(package_index, place, unsloth({"acme-2": row}))
    assert found["modes"]["acme-2"] == {
        "thinking": {"temperature": 1.0, "presence_penalty": 0.0},
        "non_thinking": {"temperature": 0.7},
    }
    table = sampling.table({"families": {}}, found, {})
    assert table["modes"]["acme-2"]["thinking"] == {"temperature": 1.0, "presence_penalty": 0.0}
    assert table["families"]["acme-2"] == {
        "temperature": 0.4, "top_p": 0.9, "top_k": 30, "repeat_penalty": 1.1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("inference_defaults.json", '{"families": {"a": {}', "cannot be read"),
        ("inference_defaults.json", '{"families": null, "patterns": []}', "no families and patterns"),
        ("inference_defaults.json", '{"families": {"a": {}}, "patterns": ["b"]}', "has a, b in one of"),
        ("inference_defaults.json", '{"families": {"a": {}}, "patterns": ["a"], "new": 1}', "has new, which"),
        ("inference_defaults.json", '{"families": {"a": {}}, "patterns": ["a", "a"]}', "the pattern a twice"),
        (
            "inference_defaults.json",
            '{"families": {"a": {"thinking": {}, "reasoning": {}}}, "patterns": ["a"]}',
            "two sets of one kind",
        ),
        ("model_defaults/x.yaml", "a: [", "cannot be read"),
        ("model_defaults/x.yaml", "- a", "is no map"),
    ],
)
def test_a_file_of_unsloth_that_cannot_be_meant(package_index, place, path, text, says):
    with pytest.raises(IndexFailure, match=says):
        of_unsloth(package_index, place, unsloth() | {f"{CONFIGS}/{path}": text})


LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=3)
NAMES = st.sampled_from(["temperature", "top_p", "thinking", "sampling_modes", "x"])
SETS = st.dictionaries(NAMES, LEAVES | st.dictionaries(NAMES, LEAVES, max_size=4), max_size=4)


@given(LEAVES | SETS | st.dictionaries(NAMES, LEAVES | SETS, max_size=4))
def test_no_row_of_unsloth_breaks_the_reading(row):
    flat = unsloth_source._flat(row)
    values = unsloth_source._values(flat)
    assert all(type(value) in {int, float} for value in values.values())
    assert {*values} <= {*unsloth_source.FIELDS.values()}
    try:
        sets = unsloth_source._sets("a", row, "file")
    except IndexFailure:  # two of one kind
        return
    assert {*sets} <= {"thinking", "non_thinking"}
    assert all(isinstance(inner, dict) for inner in sets.values())


def test_a_wheel_without_what_is_given_to_unknown_models(package_index, place):
    files = unsloth()
    del files[f"{CONFIGS}/model_defaults/default.yaml"]
    with pytest.raises(IndexFailure, match=r"has no .*/default\.yaml"):
        of_unsloth(package_index, place, files)


# vLLM's docs


def test_a_flag_may_stand_with_its_value_in_one_word():
    recipe = {"features": {"tools": {"args": ["--tool-call-parser=alpha", "--reasoning-parser", "beta"]}}}
    assert recipes.parsers(recipe) == {"tool_parser": "alpha", "reasoning_parser": "beta"}


def test_a_recipe_says_how_a_model_is_served_and_what_else_it_is_published_as():
    recipe = {
        "model": {
            "model_id": "zeta/Zeta-1", "default_frontend": "rust", "min_vllm_version": "0.33.0", "colour": 1,
            "base_args": ["--chat-template-content-format", "string"],
        },
        "features": {"tool_calling": {"args": ["--chat-template", "examples/zeta.jinja"], "mood": "good"}},
        "variants": {"default": {"precision": "bf16"}, "fp8": {"model_id": "zeta/Zeta-1-FP8", "size": 3}},
        "weather": "fine",
    }  # fmt: skip
    assert recipes.served(recipe) == {
        "content_format": "string", "chat_template": "examples/zeta.jinja", "since": "0.33.0",
        "frontend": "rust",
    }  # fmt: skip
    assert recipes.variants(recipe, "zeta/Zeta-1") == ["zeta/Zeta-1-FP8"]
    assert {*recipes.new_fields(recipe)} == {"weather", "model.colour", "features.mood", "variants.size"}


def test_a_variant_is_recommended_what_its_recipe_is():
    docs = {"recipes": {"a/One": {"tool_parser": "alpha"}}, "variants": {"a/One-FP8": {"recipe": "a/One"}}}
    assert recommendations(docs)["a/One-FP8"] == {"tool_parser": ["alpha", "recipes"]}


def test_docs_and_recipes_of_vllm(package_index, place):
    fill(package_index)
    found = said("vllm-docs", place)["vllm-docs.json"]
    assert found["recipes"] == {"zeta/Zeta-1": {"tool_parser": "gamma", "reasoning_parser": "alpha"}}
    assert found["tools"] == {
        "acme/Acme-2-1B": {"tool_parser": "alpha"},
        "acme/Acme-2-Old": {"tool_parser": "gamma"},
    }
    assert found["reasoning"] == {"zeta/Zeta-1": {"reasoning_parser": "alpha"}}


def test_a_page_that_has_moved_is_noticed(package_index, place):
    package_index.add("vllm", "vllm-1.0.tar.gz", sdist("vllm", "1.0", {"docs/other.md": TOOL_PAGE}))
    with pytest.raises(IndexFailure, match="no tools and reasoning table"):
        said("vllm-docs", place)
    broken = DOCS | {"recipes/models/a/b.yaml": "a: ["}
    package_index.add("vllm", "vllm-1.1.tar.gz", sdist("vllm", "1.1", broken))
    with pytest.raises(IndexFailure, match=r"recipes/models/a/b\.yaml cannot be read"):
        said("vllm-docs", place)


@given(st.text(alphabet="|`[]()# *-\nab/", max_size=80))
def test_no_page_breaks_the_reading(text):
    for page in (text, TOOL_PAGE + text, text + REASONING_PAGE):
        assert all("/" in model for model, _ in (*vllm_docs.tools(page), *vllm_docs.reasoning(page)))
