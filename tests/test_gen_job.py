"""The job: it writes all files or none, checks what it wrote, and says what would change."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gen_defaults import place as place_module
from gen_defaults import progress, regenerate, report, sampling
from gen_defaults.__main__ import main as command
from gen_defaults.place import Place, load, write
from gen_defaults.sources import SOURCES, engines, vendors
from importer.evidence import tables
from importer.evidence.tables import parse_sampling
from tests.gen_releases import (
    CONFIGS,
    DOCS,
    FAMILIES,
    MLX,
    VLLM,
    checkout,
    everything,
    fill,
    unsloth,
)
from tests.hubserver import HubServer, Repo, isolate
from tests.package_index import PackageIndex, sdist, wheel

pytestmark = pytest.mark.slow  # each test makes every file anew
WHEEL = "unsloth-2026.1.0-py3-none-any.whl"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A checkout in which everything was generated, from an index that is filled."""
    monkeypatch.setattr(
        engines, "WANTED", {"vllm": ("0.9",), "mlx": ("0.2",), "mlx-vlm": ("0.1",), "vllm-mlx": ("0.1",)}
    )
    return checkout(tmp_path / "checkout")


@pytest.fixture
def made(package_index: PackageIndex, place: Place) -> Place:
    fill(package_index)
    assert regenerate.main([], place) == 0
    return place


def run(place: Place, *arguments: str) -> int:
    return regenerate.main([*arguments], place)


def test_everything_is_made_and_made_alike_again(made, capsys):
    before = everything(made)
    assert {*before} == {
        "gen_defaults/parser_proposal.json", "gen_defaults/sampling_rows.json",
        "gen_defaults/upstream/unsloth.json", "gen_defaults/upstream/vllm-docs.json",
        "importer/engines/registries/mlx-0.2.0.json", "importer/engines/registries/mlx-vlm-0.1.0.json",
        "importer/engines/registries/vllm-0.9.10.json", "importer/engines/registries/vllm-mlx-0.1.0.json",
        "inference_defaults.json", "parser_defaults.json",
    }  # fmt: skip
    capsys.readouterr()
    assert run(made) == 0
    assert everything(made) == before
    assert "written" not in capsys.readouterr().err
    assert run(made, "--check") == 0
    assert capsys.readouterr().out == ""


def test_rows_are_a_persons_and_the_sources(made):
    data = load(made.sampling)
    assert data["patterns"] == ["acme-2-1b", "by-hand", "acme-2", "zeta-1"]
    assert data["families"] == {
        "acme-2-1b": {"temperature": 0.2},
        "by-hand": {"temperature": 1.2},
        "acme-2": {"temperature": 0.4, "top_p": 0.9, "top_k": 30, "repeat_penalty": 1.1},
        "zeta-1": {"temperature": 0.0, "top_p": 1.0, "presence_penalty": 0.5},
    }
    assert data["sources"]["acme-2-1b"] == "unsloth 2026.1.0; a file of its own"
    assert data["sources"]["by-hand"] == "its card"
    origin = data["provenance"]["acme-2"][0]
    assert (origin["source"], origin["row"], origin["version"]) == ("unsloth", "acme-2", "2026.1.0")
    assert len(origin["sha256"]) == 64
    assert parse_sampling(data).rows[0].family == "acme-2-1b"


def test_the_proposal_is_what_vllm_recommends_and_the_table_does_not(made):
    data = load(made.proposal)
    assert data["differs"]["zeta/Zeta-1"] == {
        "family": "zeta-1",
        "reasoning_parser": {"recipes": "alpha", "table": None},
        "tool_parser": {"recipes": "gamma", "table": "beta"},
    }
    assert "acme/Acme-2-1B" not in data["differs"]
    assert data["models"]["tool_parser alpha"] == ["acme/Acme-2-1B"]


@pytest.mark.parametrize("file", ["inference_defaults.json", "gen_defaults/upstream/unsloth.json"])
def test_check_shows_what_is_not_as_the_sources_give_it(made, capsys, file):
    path = made.root / file
    path.write_text(path.read_text().replace("0.4", "0.5"))
    before = everything(made)
    assert run(made, "--check") == 1
    out = capsys.readouterr().out
    assert f"--- committed/{file}" in out
    assert "+" in out
    assert '"temperature": 0.4' in out
    assert everything(made) == before


def test_check_holds_to_the_releases_that_the_files_name(made, package_index, capsys):
    newer = unsloth(FAMILIES | {"newest": {"temperature": 0.1, "top_p": 0.9, "top_k": 5}})
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(newer))
    assert run(made, "--check") == 0
    assert run(made, "--only", "unsloth") == 0
    assert "newest" in load(made.sampling)["families"]
    assert load(made.upstream("unsloth"))["source"]["version"] == "2026.2.0"


def test_check_notices_a_release_that_is_another_now(made, package_index, capsys):
    package_index.add("unsloth", WHEEL, wheel(unsloth({})))
    assert run(made, "--check") == 1
    assert f"{WHEEL} has another SHA-256 than the one it had" in capsys.readouterr().err


def test_diff_is_markdown_and_writes_nothing(made, package_index, capsys):
    rows = {"acme-2": FAMILIES["acme-2"] | {"temperature": 0.6}, "a*evil": FAMILIES["zeta-1"]}
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(unsloth(rows)))
    tools = VLLM["vllm/tool_parsers/__init__.py"].replace('"beta"', '"delta"')
    newer = VLLM | {"vllm/tool_parsers/__init__.py": tools}
    package_index.add("vllm", "vllm-0.9.11-cp38-abi3-linux_x86_64.whl", wheel(newer))
    package_index.add("vllm", "vllm-0.9.11.tar.gz", sdist("vllm", "0.9.11", newer | DOCS))
    made.rows.write_text(made.rows.read_text().replace("1.2", "1.3"))
    before = everything(made)
    assert run(made, "--diff") == 0
    page = capsys.readouterr().out
    assert everything(made) == before
    assert "| unsloth.json | unsloth-2026.2.0-py3-none-any.whl (was unsloth-2026.1.0" in page
    assert "| acme-2 | families | temperature 0.4, " in page
    assert r"| a\*evil | families | – | temperature 0.0" in page
    assert "| zeta-1 | families | temperature 0.0, top\\_p 1.0, presence\\_penalty 0.5 | – |  |" in page
    assert "| by-hand | families | temperature 1.2 | temperature 1.3 | its card |" in page
    assert "- `vllm-0.9.11.json` is new" in page
    assert "- 0.9.10 to 0.9.11, renamed tool: beta (delta)" in page


def test_diff_says_when_nothing_changed(made, capsys):
    capsys.readouterr()
    assert run(made, "--diff") == 0
    assert capsys.readouterr().out.startswith("Nothing changed.\n")


def test_others_text_is_no_markup():
    told = report._cell("a|b`c` <img> @me [x](y) \x1b[2J\nz")
    assert told == r"a\|b\`c\` \<img\> \@me \[x\](y)  \[2J z"


def test_one_source_alone(made, package_index, capsys):
    capsys.readouterr()
    assert run(made, "--only", "mlx-lm", "--only", "vllm-mlx") == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "mlx-0.2.0.json: unchanged", "vllm-mlx-0.1.0.json: unchanged",
    ]  # fmt: skip
    assert not any("unsloth" in path for path, _ in package_index.asked[-3:])


def test_versions_of_vllm_in_place_of_the_supported_ones(made):
    assert run(made, "--only", "vllm", "--vllm", "0.9.9", "0.9.10") == 0
    assert (made.registries / "vllm-0.9.9.json").is_file()
    assert "0.9.9 to 0.9.10" in load(made.proposal)["versions"]


def test_a_folder_instead_of_the_index(made, tmp_path, package_index):
    folder = tmp_path / "archives"
    folder.mkdir()
    for path, data in package_index.pages.items():
        if path.startswith("/files/"):
            (folder / path.rpartition("/")[2]).write_bytes(data)
    asked, before = len(package_index.asked), everything(made)
    assert run(made, "--offline", str(folder)) == 0
    assert everything(made) == before
    assert run(made, "--check", "--offline", str(folder)) == 0
    assert len(package_index.asked) == asked


def test_one_archive_by_its_path_or_its_address(made, package_index, tmp_path, capsys):
    data = wheel(unsloth(FAMILIES | {"own": FAMILIES["zeta-1"]}))
    path = tmp_path / "unsloth-2025.1.0-py3-none-any.whl"
    path.write_bytes(data)
    assert run(made, "--archive", str(path)) == 0
    assert load(made.upstream("unsloth"))["source"]["file"] == path.name
    by_path = everything(made)
    assert "own" in load(made.sampling)["families"]
    package_index.pages[f"/elsewhere/{path.name}"] = data
    address = f"{package_index.address}/elsewhere/{path.name}"
    assert run(made, "--archive", f"{address}#sha256={hashlib.sha256(data).hexdigest()}") == 0
    assert everything(made) == by_path
    capsys.readouterr()
    for wrong, says in (
        (address, "has no digest; give #sha256="),
        (f"{address}#sha256={'0' * 64}", "is not the file that the index names"),
        (str(tmp_path / "unsloth-1.0.tar.gz"), "cannot be read: No such file"),
    ):
        assert run(made, "--archive", wrong) == 1
        assert says in capsys.readouterr().err
        assert everything(made) == by_path


def altered(**row: Any) -> dict[str, str]:
    return unsloth(FAMILIES | {"acme-2": FAMILIES["acme-2"] | row})


def without(key: str) -> dict[str, str]:
    return unsloth(FAMILIES | {"acme-2": {k: v for k, v in FAMILIES["acme-2"].items() if k != key}})


WHEELS = {
    "truncated": (wheel(unsloth())[:-200], None, "cannot be read"),
    "wrong digest": (wheel(unsloth()), "0" * 64, "is not the file that the index names"),
    "not what its list says": (
        wheel(unsloth(), lies={f"{CONFIGS}/inference_defaults.json": ""}), None, "is not the file that",
    ),
    "null": (wheel(altered(temperature=None)), None, "temperature is null where a number belongs"),
    "nested": (wheel(altered(top_p={"thinking": 1})), None, "top_p is nested"),
    "text": (wheel(altered(top_k="default")), None, "top_k is the text 'default' where a whole number"),
    "out of range": (wheel(altered(temperature=20)), None, "temperature is 20, which is not at most 2"),
    "unknown field": (wheel(altered(mirostat=1)), None, "mirostat is a field that is not known here"),
    "missing field": (wheel(without("top_k")), None, "top_k is missing"),
    "not JSON": (wheel(unsloth() | {f"{CONFIGS}/inference_defaults.json": "<html>"}), None, "cannot be read"),
    "no file": (wheel({"README": "moved"}), None, "has no studio/backend/assets/configs/inference_defaults"),
    "text in a model's file": (
        wheel(unsloth(x="inference: {top_p: default}")), None, "top_p is the text 'default'",
    ),
    "unknown in a model's file": (wheel(unsloth(x="inference: {odd: 1}")), None, "odd is a field that"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHEELS)
@pytest.mark.parametrize("how", ["write", "check"])
def test_a_tampered_unsloth_leaves_every_file_as_it_was(made, package_index, capsys, name, how):
    data, digest, says = WHEELS[name]
    file = WHEEL if how == "check" else "unsloth-2026.2.0-py3-none-any.whl"
    package_index.add("unsloth", file, data, digest)
    before = everything(made)
    capsys.readouterr()
    assert run(made, *(["--check"] if how == "check" else [])) == 1
    err = capsys.readouterr().err
    assert (says if how == "write" else "has another SHA-256 than the one it had") in err
    assert "Traceback" not in err
    assert everything(made) == before


ENGINE = {
    "truncated": (wheel(VLLM)[:-90], None, "cannot be read"),
    "wrong digest": (wheel(VLLM), "0" * 64, "is not the file that the index names"),
    "moved": (wheel({"vllm/tools.py": ""}), None, "has no tool parsers where they were looked for"),
    "null": (
        wheel(VLLM | {"vllm/reasoning/__init__.py": "_REASONING_PARSERS_TO_REGISTER = None"}), None,
        "cannot be read as expected",
    ),
    "nested": (
        wheel(VLLM | {"vllm/reasoning/__init__.py": "_REASONING_PARSERS_TO_REGISTER = {'a': ('b',)}"}), None,
        "cannot be read as expected",
    ),
    "no Python": (wheel(VLLM | {"vllm/reasoning/__init__.py": "broken("}), None, "read as expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINE)
def test_a_tampered_engine_leaves_every_file_as_it_was(made, package_index, capsys, name):
    data, digest, says = ENGINE[name]
    package_index.add("vllm", "vllm-0.9.11-cp38-abi3-linux_x86_64.whl", data, digest)
    before = everything(made)
    assert run(made, "--only", "vllm") == 1
    assert says in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize(
    ("package", "file", "data", "says"),
    [
        (
            "mlx-lm",
            "mlx_lm-0.2.1-py3-none-any.whl",
            wheel(MLX | {"mlx_lm/tokenizer_utils.py": "("}),
            "mlx_lm-",
        ),
        ("mlx-lm", "mlx_lm-0.2.1-py3-none-any.whl", wheel({}), "no tool parsers"),
        ("mlx-vlm", "mlx_vlm-0.1.1-py3-none-any.whl", b"no archive", "cannot be read"),
        ("vllm-mlx", "vllm_mlx-0.1.1.tar.gz", b"no archive", "cannot be read"),
        ("vllm", "vllm-0.9.11.tar.gz", sdist("vllm", "0.9.11", DOCS)[:60], "cannot be read"),
        ("vllm", "vllm-0.9.11.tar.gz", sdist("vllm", "0.9.11", {"docs/a.md": ""}), "no tools and reasoning"),
    ],
    ids=["mlx-lm broken", "mlx-lm empty", "mlx-vlm", "vllm-mlx", "docs cut", "docs moved"],
)
def test_any_tampered_source_leaves_every_file_as_it_was(
    made, package_index, capsys, package, file, data, says
):
    package_index.add(package, file, data)
    source = "vllm-docs" if package == "vllm" else package
    before = everything(made)
    assert run(made, "--only", source) == 1
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert everything(made) == before


def test_an_index_that_does_not_answer_leaves_every_file_as_it_was(made, package_index, capsys):
    package_index.pages.clear()
    before = everything(made)
    capsys.readouterr()
    assert run(made) == 1
    err = capsys.readouterr().err
    assert "gen_defaults: no index has unsloth; asked were http://127.0.0.1:" in err
    assert err.endswith("nothing was written\n")
    assert err.count("\n") == 1
    assert everything(made) == before


def test_a_write_that_fails_puts_everything_back(made, package_index, monkeypatch, capsys):
    made.rows.write_text(made.rows.read_text().replace("1.2", "1.3"))
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(unsloth()))
    before, real = everything(made), Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == "inference_defaults.json":
            raise OSError("disk full")
        return real(self, target)

    monkeypatch.setattr(place_module.Path, "replace", replace)
    assert run(made) == 1
    assert "disk full; nothing was written" in capsys.readouterr().err
    assert everything(made) == before


def test_new_files_are_taken_away_again(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="directory"):
        write({tmp_path / "a.json": "new", tmp_path / "b": "a folder is there"})
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_tables_that_answer_less_are_refused_unless_told(made, package_index, tmp_path, capsys):
    folder = tmp_path / "truth"
    vendor_file(folder / "repos", '{"temperature": 0.4, "do_sample": true}').joinpath("zeta__Zeta-1").rename(
        folder / "repos" / "acme__Acme-2-9B"
    )
    (folder / "parser_truth.csv").write_text(
        "model_id,family,tool_parser,reasoning_parser,notes\nacme/Acme-2-9B,acme,alpha,alpha,\n"
    )
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(altered(temperature=0.9)))
    before = everything(made)
    for how in ([], ["--diff"]):
        assert run(made, *how, "--accuracy", str(folder)) == 1
        assert "accuracy: acme: it got worse: sampling 1 right" in capsys.readouterr().err
        assert everything(made) == before
    assert run(made, "--accuracy", str(folder), "--accept-worse") == 0
    assert load(made.sampling)["families"]["acme-2"]["temperature"] == 0.9


# Vendors


def vendor_file(root: Path, text: str) -> Path:
    folder = root / "zeta__Zeta-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generation_config.json").write_text(text)
    return root


def test_a_vendors_file_from_a_folder(made, tmp_path):
    folder = vendor_file(tmp_path / "models", '{"temperature": 0.0, "top_p": 1.0, "eos_token_id": 3}')
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 0
    row = load(made.upstream("vendors"))["repositories"]["zeta/Zeta-1"]
    assert row["values"] == {"temperature": 0.0, "top_p": 1.0}
    assert row["commit"] is None
    rows = load(made.rows)
    rows["families"]["zeta-1"] = {"vendor": "zeta/Zeta-1", "values": {"top_k": 7}, "says": "its files"}
    made.rows.write_text(json.dumps(rows))
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 0
    data = load(made.sampling)
    assert data["families"]["zeta-1"] == {"temperature": 0.0, "top_p": 1.0, "top_k": 7}
    assert [o["source"] for o in data["provenance"]["zeta-1"]] == ["generation_config.json", "by hand"]


def test_a_row_that_its_vendor_contradicts_is_not_written(made, tmp_path, capsys):
    folder = vendor_file(tmp_path / "models", '{"temperature": 0.9}')
    before = everything(made)
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 1
    assert "zeta-1: temperature is 0, against 1 of 1 vendor files" in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize("text", ["{", "null", "[" * 9999, '{"a": "\\ud800"'])
def test_a_vendors_file_that_is_none(made, tmp_path, capsys, text):
    before = everything(made)
    folder = vendor_file(tmp_path / "models", text)
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 1
    assert "zeta/Zeta-1 cannot be read" in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize("gated", [False, True])
def test_a_vendors_file_from_the_hub(made, tmp_path, monkeypatch, capsys, gated):
    repo = Repo({"generation_config.json": '{"top_p": 1.0}', "config.json": "{}"}, gated=gated)
    with HubServer({"zeta/Zeta-1": repo}) as hub:
        isolate(monkeypatch, tmp_path / "hub", hub.url)
        assert run(made, "--only", "vendors") == (1 if gated else 0)
        known = load(made.upstream("vendors")).get("repositories", {})
        if gated:
            assert "zeta/Zeta-1 cannot be read" in capsys.readouterr().err
            return
        assert known["zeta/Zeta-1"]["commit"] == repo.revisions["main"]
        repo.commit({"generation_config.json": '{"top_p": 0.3}', "config.json": "{}"})
        assert run(made, "--only", "vendors", "--check") == 0
        before = everything(made)
        assert run(made, "--only", "vendors") == 1
        assert (
            "zeta-1: top_p is 1, against 1 of 1 vendor files: zeta/Zeta-1 says 0.3" in capsys.readouterr().err
        )
        assert everything(made) == before
        repo.commit({"generation_config.json": '{"top_p": 0.4}', "config.json": "{}"})
        repo.gated = True
        assert run(made, "--only", "vendors") == 0
        assert everything(made) == before


def test_what_was_known_stays_where_a_folder_lacks_it(made, tmp_path):
    known = vendor_file(tmp_path / "models", '{"top_p": 1.0}')
    assert run(made, "--only", "vendors", "--offline", str(known)) == 0
    before = everything(made)
    (tmp_path / "empty").mkdir()
    assert run(made, "--only", "vendors", "--offline", str(tmp_path / "empty")) == 0
    assert everything(made) == before


def test_a_family_that_is_no_pattern_is_named(made, package_index, capsys):
    rows = {"Bad Name\x1b[2J": FAMILIES["acme-2"]}
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(unsloth(rows)))
    assert run(made) == 1
    assert "unsloth's family 'Bad Name\\x1b[2J' is no pattern; name it under skip" in capsys.readouterr().err


def test_a_row_taken_from_what_nobody_has_is_said(made, capsys):
    for row, says in (
        ({"unsloth": "gone"}, "does not have any more"),
        ({"vendor": "a/b"}, "nothing was read"),
    ):
        rows = load(made.rows)
        rows["families"]["new"] = row
        made.rows.write_text(json.dumps(rows))
        assert run(made, "--only", "mlx-lm") == 1
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"vaues": {"top_p": 1}, "says": "x"}, "families.new: "),
        ({"values": {"top_p": 1}}, "families.new: "),
        ({"values": {"top_p": "1"}, "says": "x"}, "families.new.values.top_p: '1' is not of type 'number'"),
        (3, "families.new: 3 is not of type 'object'"),
    ],
)
def test_a_persons_mistake_is_told_at_its_place(made, capsys, row, says):
    rows = load(made.rows)
    rows["families"]["new"] = row
    made.rows.write_text(json.dumps(rows))
    before = everything(made)
    assert run(made, "--only", "tables") == 1
    assert f"gen_defaults: sampling_rows.json: {says}" in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize("text", ["{", "[]", "[" * 99999])
@pytest.mark.parametrize("file", ["sampling_rows.json", "parser_defaults.json", "upstream/unsloth.json"])
def test_a_file_of_ours_that_is_broken_is_named(made, capsys, file, text):
    next(p for p in made.root.rglob("*.json") if str(p).endswith(file)).write_text(text)
    assert run(made, "--only", "tables") == 1
    assert f"{file.rpartition('/')[2]} cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['{"families": 3}', '{"families": {"acme-2": {"top_p": null}}}', '{"source": 1}']
)
def test_what_a_source_said_is_not_for_editing(made, capsys, text):
    made.upstream("unsloth").write_text(text)
    before = everything(made)
    assert run(made, "--only", "tables") == 1
    assert capsys.readouterr().err.endswith("nothing was written\n")
    assert everything(made) == before


def test_an_installed_package_is_no_checkout(tmp_path, capsys):
    assert run(Place(tmp_path)) == 1
    assert "is no checkout: it has no parser_defaults.json" in capsys.readouterr().err


# The tables that ship


def test_the_committed_table_is_what_the_committed_sources_give():
    place = Place()
    unsloth_said, vendors_said = load(place.upstream("unsloth")), load(place.upstream(vendors.NAME))
    made = sampling.render(sampling.table(load(place.rows), unsloth_said, vendors_said))
    assert made == place.sampling.read_text(encoding="utf-8")


def test_the_committed_proposal_is_of_the_committed_table(capsys):
    """After an edit of ``parser_defaults.json``: ``python -m gen_defaults --only tables``."""
    assert regenerate.main(["--only", "tables", "--check"]) == 0, capsys.readouterr().out


def test_every_row_says_where_it_is_from():
    data = tables.raw("inference_defaults")
    assert {*data["provenance"]} == {*data["families"]}
    for family, origins in data["provenance"].items():
        for origin in origins:
            if origin["source"] != sampling.BY_HAND:
                assert len(origin["sha256"]) == 64, family
            elif len(origins) == 1:
                assert load(Place().rows)["families"][family]["says"]


def test_no_row_of_a_person_is_lost():
    rows = load(Place().rows)["families"]
    assert {*rows} <= {*tables.raw("inference_defaults")["families"]}


def test_the_committed_files_are_what_their_releases_give():
    """Asks the package index for the very releases that the files name."""
    assert regenerate.main(["--check"]) == 0


# The command line


def test_bars_are_for_a_terminal(monkeypatch, capsys):
    with progress.bars() as told:
        assert told is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.bars() as told:
        assert told is not None
        told("a-[1].whl", 5, 10)
        told("a-[1].whl", 5, 10)
    assert "a-[1].whl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--check", "--diff"], ["--only", "nobody"], ["--offline", "/nowhere"]]
)
def test_arguments_that_mean_nothing(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m gen_defaults" in capsys.readouterr().err


def test_an_unknown_command_names_the_known_ones(capsys):
    assert command(["registries"]) == 2
    assert "abilities | processors | score | shapes" in capsys.readouterr().err


def test_the_help_names_every_source(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    assert all(name in capsys.readouterr().out.replace("\n", " ") for name in [*SOURCES][:1])
