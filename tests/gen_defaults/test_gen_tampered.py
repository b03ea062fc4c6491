"""Sources that are tampered with or out of reach, and writes that fail: every file stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from gen_defaults import place as place_module
from gen_defaults.place import write
from tests.gen_checkout import WHEEL, altered, made, place, run
from tests.gen_releases import DOCS, VLLM, everything, unsloth
from tests.package_index import sdist, wheel

__all__ = ["made", "place"]
pytestmark = pytest.mark.slow  # each test makes every file anew


WHEELS = {
    "truncated": (wheel(unsloth())[:-200], "cannot be read"),
    "null": (wheel(altered(temperature=None)), "temperature is null where a number belongs"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHEELS)
@pytest.mark.parametrize("how", ["write", "check"])
def test_a_tampered_unsloth_leaves_every_file_as_it_was(made, package_index, capsys, name, how):
    data, says = WHEELS[name]
    file = WHEEL if how == "check" else "unsloth-2026.2.0-py3-none-any.whl"
    package_index.add("unsloth", file, data)
    before = everything(made)
    capsys.readouterr()
    assert run(made, *(["--check"] if how == "check" else [])) == 1
    err = capsys.readouterr().err
    assert (says if how == "write" else "has another SHA-256 than the one it had") in err
    assert "Traceback" not in err
    assert everything(made) == before


@pytest.mark.parametrize(
    ("package", "file", "data", "says"),
    [
        ("vllm", "vllm-0.9.11-cp38-abi3-linux_x86_64.whl", wheel(VLLM)[:-90], "cannot be read"),
        ("vllm", "vllm-0.9.11-cp38-abi3-linux_x86_64.whl", wheel({"vllm/tools.py": ""}), "no tool parsers"),
        ("mlx-lm", "mlx_lm-0.2.1-py3-none-any.whl", wheel({}), "no tool parsers"),
        ("mlx-vlm", "mlx_vlm-0.1.1-py3-none-any.whl", b"no archive", "cannot be read"),
        ("vllm-mlx", "vllm_mlx-0.1.1.tar.gz", b"no archive", "cannot be read"),
        ("vllm-docs", "vllm-0.9.11.tar.gz", sdist("vllm", "0.9.11", DOCS)[:60], "cannot be read"),
        ("vllm-docs", "vllm-0.9.11.tar.gz", sdist("vllm", "0.9.11", {"docs/a.md": ""}), "no recipes"),
    ],
    ids=["vllm cut", "vllm moved", "mlx-lm", "mlx-vlm", "vllm-mlx", "docs cut", "docs moved"],
)
def test_any_tampered_source_leaves_every_file_as_it_was(
    made, package_index, capsys, package, file, data, says
):
    package_index.add(package.removesuffix("-docs"), file, data)
    before = everything(made)
    assert run(made, "--only", package) == 1
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


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (OSError(28, "No space left on device"), 1, "defaults.json cannot be written: No space left"),
        (KeyboardInterrupt(), 130, "stopped; nothing was written"),
    ],
)
def test_a_write_that_fails_puts_everything_back(
    made, package_index, monkeypatch, capsys, error, status, says
):
    made.rows.write_text(made.rows.read_text().replace("1.2", "1.3"))
    package_index.add("unsloth", "unsloth-2026.2.0-py3-none-any.whl", wheel(unsloth()))
    before, real = everything(made), Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == "inference_defaults.json":
            raise error
        return real(self, target)

    monkeypatch.setattr(place_module.Path, "replace", replace)
    assert run(made) == status
    err = capsys.readouterr().err
    assert says in err
    assert err.endswith("nothing was written\n")
    assert everything(made) == before


def test_new_files_are_taken_away_again(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="directory"):
        write({tmp_path / "a.json": "new", tmp_path / "b": "a folder is there"})
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
