"""``importer.toml`` and its variables: what holds where a command leaves it open."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from importer import config
from importer.cli import project
from importer.cli.main import run
from importer.errors import UsageError
from tests.commandline import BASE, Desk
from tests.hubserver import Repo


def imported(desk: Desk, *words: str) -> tuple[str, str]:
    """Return the backend of an import and the folder of its document."""
    desk.hub.repos["acme/chat"] = Repo(BASE)
    done = desk("acme/chat", "--yes", "--no-validate", "--json", *words)
    assert done.code == 0, done.err
    line = json.loads(done.out)
    return line["decisions"]["backend"]["value"], Path(line["path"]).parent.name


def test_a_command_precedes_a_variable_and_that_precedes_the_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / project.FILE).write_text('backend = "mlx"\ndir = "gallery"\n')
    assert imported(desk) == ("mlx", "gallery")
    assert imported(desk, "--name", "other", "--backend", "vllm", "-d", "own") == ("vllm", "own")
    for name, value in {"BACKEND": "vllm-mlx", "DIR": "third"}.items():
        monkeypatch.setenv(f"IMPORTER_{name}", value)
    assert imported(desk) == ("vllm-mlx", "third")


def test_a_later_import_keeps_the_backend_of_the_document(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imported(desk, "--backend", "mlx") == ("mlx", "models")
    monkeypatch.setenv("IMPORTER_BACKEND", "vllm")
    assert imported(desk) == ("mlx", "models")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("backend = ", "not readable"), ("bakend = 'mlx'", "unknown setting 'bakend'"),
        ("prove = 'bogus'", "prove is 'bogus'"), ("dir = 3", "dir is not text"),
        ("dir = '..'", "leads out"), ("dir = '/tmp'", "leads out"),
        ('dir = "a\\u0000"', "cannot be seen"),
        ("\x00", "not readable"), ("# " + "x" * 65_536, "File too large"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_valid_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / project.FILE).write_text(text)
    with pytest.raises(UsageError, match=problem):
        project.read(tmp_path)


def test_what_is_no_plain_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / project.FILE)
    with pytest.raises(UsageError, match="not readable"):
        project.read(tmp_path)


def test_a_link_out_of_the_folder_is_no_folder_of_documents(tmp_path: Path) -> None:
    (tmp_path / "in").symlink_to("/tmp")
    (tmp_path / project.FILE).write_text("dir = 'in'")
    with pytest.raises(UsageError, match="leads out"):
        project.read(tmp_path)


def test_an_error_of_the_file_ends_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / project.FILE).write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    assert run(["--help"]) == run(["--version"]) == run(["list", "--help"]) == 0
    capsys.readouterr()
    assert run(["list"]) == 2
    assert capsys.readouterr().err.startswith("importer: importer.toml: unknown setting 'x'")


def test_a_backend_that_is_none_names_its_place(desk: Desk) -> None:
    desk.hub.repos["acme/chat"] = Repo(BASE)
    (desk.folder / project.FILE).write_text('backend = "x"\n')
    assert "Invalid value for importer.toml:" in desk("acme/chat", "--dry-run").err
    desk.monkeypatch.setenv("IMPORTER_BACKEND", "xx")
    ran = desk("acme/chat", "--dry-run")
    assert (ran.code, "Invalid value for IMPORTER_BACKEND:" in ran.err, "--backend" in ran.err) == (
        2,
        True,
        False,
    )


def test_a_first_import_has_nothing_from_an_earlier_one(desk: Desk) -> None:
    (desk.folder / project.FILE).write_text('backend = "vllm"\n')
    seen = ["at an earlier import" in desk("acme/base", "--set", "top_k=5").err, desk("acme/base").err]
    assert seen[0] is False
    assert "at an earlier import: backend=vllm, parameters.top_k=5" in seen[1]


def test_a_list_has_the_backend_of_the_project(desk: Desk) -> None:
    desk.hub.repos["acme/chat"] = Repo(BASE)
    (desk.folder / "list").write_text("acme/chat\n")
    for backend in ("mlx", "vllm"):
        (desk.folder / project.FILE).write_text(f'backend = "{backend}"\n')
        line = json.loads(desk("--from", "list", "--dry-run", "--json").out)
        assert line["decisions"]["backend"]["value"] == backend


def test_a_folder_that_was_removed_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("importer ")


def test_a_service_has_settings_of_its_own(desk: Desk) -> None:
    (desk.folder / project.FILE).write_text("device = 'h100'")
    assert desk("serve", "--port", "70000").code == 7
    assert config.PROJECT.get() == {}
