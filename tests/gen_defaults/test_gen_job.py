"""The job: what it makes of the sources, and what it says would change."""

from __future__ import annotations

import pytest

from gen_defaults import report
from gen_defaults.place import load
from gen_defaults.truth import ROOT, ROWS
from importer.backends import NAMES
from importer.signals.tables import parse_sampling
from tests.gen_checkout import WHEEL, altered, made, place, run, vendor_file
from tests.gen_releases import DOCS, FAMILIES, VLLM, everything, unsloth
from tests.package_index import sdist, wheel

__all__ = ["made", "place"]
pytestmark = pytest.mark.slow  # each test makes every file anew


def test_everything_is_made_and_made_alike_again(made, capsys):
    before = everything(made)
    assert {*before} == {
        "gen_defaults/parser_proposal.json", "gen_defaults/sampling_rows.json",
        "gen_defaults/upstream/unsloth.json", "gen_defaults/upstream/vllm-docs.json",
        "importer/engines/registries/mlx-0.2.0.json", "importer/engines/registries/mlx-vlm-0.1.0.json",
        "importer/engines/registries/vllm-0.9.10.json", "importer/engines/registries/vllm-mlx-0.1.0.json",
        "importer/engines/registries/sglang-0.5.0.json",
        "inference_defaults.json", "parser_defaults.json",
        *(f"importer/signals/markers/{engine}.json" for engine in NAMES),
    }  # fmt: skip
    capsys.readouterr()
    assert run(made) == 0
    assert everything(made) == before
    assert "written" not in capsys.readouterr().err
    assert run(made, "--check") == 0
    assert capsys.readouterr().out == ""
    assert run(made, "--diff") == 0
    assert capsys.readouterr().out.startswith("Nothing changed.\n")


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
    assert "- `vllm-0.9.11.json` is new; against `vllm-0.9.10.json`:\n" in page
    assert "- `vllm-0.9.11.json`: renamed tool: beta (delta)" in page
    assert "- 0.9.10 to 0.9.11, renamed tool: beta (delta)" in page


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


def test_tables_that_answer_less_are_refused_unless_told(made, package_index, tmp_path, capsys):
    folder = tmp_path / "files"
    vendor_file(folder, '{"temperature": 0.4, "do_sample": true}').joinpath("zeta__Zeta-1").rename(
        folder / "acme__Acme-2-9B"
    )
    rows = made.root / ROWS.relative_to(ROOT)
    rows.parent.mkdir(parents=True)
    rows.write_text(
        "model_id,family,tool_parser,reasoning_parser,contested\nacme/Acme-2-9B,acme,alpha,alpha,\n"
    )
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(altered(temperature=0.9)))
    before = everything(made)
    for how in ([], ["--diff"]):
        assert run(made, *how, "--accuracy", str(folder)) == 1
        assert "accuracy: acme: it got worse: sampling 1 right" in capsys.readouterr().err
        assert everything(made) == before
    assert run(made, "--accuracy", str(folder), "--accept-worse") == 0
    assert load(made.sampling)["families"]["acme-2"]["temperature"] == 0.9


def folder_of(package_index, folder, **files):
    """Everything that the index has, in a folder; ``files`` replace by the start of their name, or add."""
    folder.mkdir()
    for path, data in package_index.pages.items():
        if path.startswith("/files/"):
            (folder / path.rpartition("/")[2]).write_bytes(data)
    for name, data in files.items():
        next(folder.glob(f"{name}*")).write_bytes(data)
    return folder


def test_check_compares_with_what_a_person_gave(made, package_index, tmp_path, capsys):
    same = folder_of(package_index, tmp_path / "same")
    assert run(made, "--check", "--offline", str(same)) == run(made, "--offline", str(same)) == 0
    folder = folder_of(package_index, tmp_path / "changed", unsloth=wheel(altered(temperature=0.9)))
    before, asked = everything(made), len(package_index.asked)
    capsys.readouterr()
    assert run(made, "--check", "--offline", str(folder)) == 1
    assert len(package_index.asked) == asked
    told = capsys.readouterr()
    assert '+    "acme-2": {"temperature": 0.9' in told.out
    assert f"note: unsloth.json: {WHEEL} has another SHA-256 than the one it had" in told.err
    (folder / WHEEL).rename(folder / "unsloth-2026.3.0-py3-none-any.whl")
    assert run(made, "--check", "--offline", str(folder)) == 1
    told = capsys.readouterr()
    assert "unsloth-2026.3.0" in told.out
    assert "another SHA-256" not in told.err
    vllm = next(folder.glob("vllm-0.9.10*.whl"))
    vllm.write_bytes(
        wheel(VLLM | {"vllm/reasoning/__init__.py": "_REASONING_PARSERS_TO_REGISTER = {'x': ('x', 'X')}"})
    )
    assert run(made, "--check", "--offline", str(folder), "--only", "vllm") == 1
    assert '+   "name": "x"' in capsys.readouterr().out
    vllm.unlink()
    (folder / "vllm-0.9.10.tar.gz").unlink()
    assert run(made, "--check", "--offline", str(folder), "--only", "vllm") == 1
    assert "whl is not there any more; nothing was written" in capsys.readouterr().err
    assert everything(made) == before


def test_a_release_that_the_index_changed_is_refused(made, package_index, capsys):
    package_index.add("unsloth", WHEEL, wheel(altered(temperature=0.9)))
    before = everything(made)
    for how in ([], ["--check"]):
        assert run(made, *how) == 1
        assert f"{WHEEL} has another SHA-256 than the one it had" in capsys.readouterr().err
    assert everything(made) == before


def test_a_version_without_a_registry_is_not_checked(made, capsys):
    assert run(made, "--check", "--only", "vllm", "--vllm", "0.9.10") == 0
    assert run(made, "--check", "--only", "vllm", "--vllm", "0.9.9") == 1
    assert "there is no registry of vllm 0.9.9 to check; run it without --check" in capsys.readouterr().err


def test_diff_tells_of_rules_too(made, capsys):
    path = made.registries / "mlx-0.2.0.json"
    path.write_text(path.read_text().replace("<one>", "<first>"))
    assert run(made, "--diff", "--only", "mlx-lm") == 0
    page = capsys.readouterr().out
    assert r'`mlx-0.2.0.json`: chooses by: {"parser": "own", "template": \[\["\<one\>"' in page
    assert r'`mlx-0.2.0.json`: no longer chooses by: {"parser": "own", "template": \[\["\<first\>"' in page
    path.write_text(path.read_text().replace("<first>", "<one>").replace('"read": "', '"read": "0'))
    assert run(made, "--diff", "--only", "mlx-lm") == 0
    assert "- `mlx-0.2.0.json`: only what it was read from" in capsys.readouterr().out
