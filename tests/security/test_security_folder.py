"""The folder that the importer is started in: nothing of it runs, and no child gets a secret."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from importer.engines.install import Installed
from tests.commandline import REPO, Desk, desk
from tests.hostile import Hostile, before_ours, hostile, names, poison
from tests.serving import running
from tests.tiers import one_of_each
from tests.waiting import wait_until

__all__ = ["desk"]

SCRIPT = [str(Path(sys.executable).with_name("importer"))]
MODULE = [sys.executable, "-m", "importer"]
SAFE = [sys.executable, "-P", "-m", "importer"]


SECRETS = {
    "HF_TOKEN": "hf_secret_1", "HUGGING_FACE_HUB_TOKEN": "hf_secret_2", "PGPASSWORD": "secret_3",
    "DATABASE_URL": "postgresql://ann:secret_4@db/x", "IMPORTER_SERVE_DATABASE": "sqlite:///secret_5",
    "AWS_SECRET_ACCESS_KEY": "secret_6", "OPENAI_API_KEY": "secret_7", "VLLM_API_KEY": "secret_8",
}  # fmt: skip


def around(place: Path, **more: str) -> dict[str, str]:
    """The variables of a process that shall see nothing but what lies in ``place``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "IMPORTER_", "PYTHON"))}
    own = {
        "IMPORTER_HOME": str(place / "home"),
        "HF_HOME": str(place / "hf"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    return {**kept, **own, "PYTHONPATH": str(REPO), **more}


def started(made: Hostile, argv: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, cwd=made.path, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


# What is started, and whether Python itself takes nothing of the folder before our first line.
STARTS = [
    (SCRIPT, True, ". --dry-run --backend mlx"), (MODULE, False, "engine list"),
    (SAFE, True, ". --dry-run --backend mlx"), (SCRIPT, True, "doctor"),
    (MODULE, False, ". --dry-run --backend mlx"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("argv", "first", "words"), one_of_each(STARTS, lambda case: case[1]), ids=str)
def test_the_command_runs_nothing_of_its_folder(
    argv: list[str], first: bool, words: str, tmp_path: Path, desk: Desk
) -> None:
    made = hostile(tmp_path, names() if first else names() - before_ours(), own=first)
    done = started(made, [*argv, *words.split()], around(tmp_path, IMPORTER_MLX_PYTHON=str(desk.engine())))
    assert (done.returncode in {0, 1}, made.ran) == (True, []), done.stderr
    if words == "engine list":
        assert "0.0.1" in done.stdout, "the engine was asked"


@pytest.mark.slow
def test_the_job_runs_nothing_of_its_folder(tmp_path: Path) -> None:
    """It asks pip for its settings, and then an index that nobody serves."""
    made = hostile(tmp_path, names() - before_ours())
    env = around(tmp_path, PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL="http://127.0.0.1:9/simple")
    done = started(made, [sys.executable, "-m", "gen_defaults", "--check"], env)
    assert ("127.0.0.1:9" in done.stderr, made.ran) == (True, [])


@pytest.mark.slow
def test_the_poison_works(tmp_path: Path) -> None:
    """What is in the folder runs where Python is started as usual, and reads what is around."""
    made = hostile(tmp_path, names(), own=True)
    argv = [sys.executable, "-c", "import csv"]
    subprocess.run(argv, cwd=made.path, env=around(tmp_path), check=True)
    assert made.ran[0].startswith("csv ")
    assert "HF_ENDPOINT" in made.ran[0]
    assert before_ours() <= names() | {"blank", "sitecustomize", "__main__"}


def test_a_checkout_runs_from_its_own_folder(tmp_path: Path) -> None:
    """Where nothing is installed, the working directory is the place of both packages."""
    for package in ("importer", "gen_defaults"):
        (tmp_path / package).symlink_to(REPO / package)
    env = around(tmp_path, PYTHONPATH=sysconfig.get_path("purelib"))
    argv = [sys.executable, "-S", "-m", "gen_defaults", "--help"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:6]) == (0, "usage:"), done.stderr


@pytest.mark.slow
def test_the_service_runs_nothing_of_its_folder(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    place = tmp_path / "service"
    place.mkdir()
    poison(place, mark, names() - before_ours())
    with running(place) as service:
        assert service.imported("acme/chat")["state"] == "succeeded", service.log()
    assert not mark.exists(), mark.read_text()


def seen(process: subprocess.Popen[bytes]) -> dict[str, tuple[list[str], str]]:
    """Every process below this one while it runs: its words and its variables, as often as they change."""
    found: dict[str, tuple[list[str], str]] = {}
    own = (psutil.Process(process.pid).cmdline(), [str(word) for word in process.args])  # type: ignore[union-attr]

    def look() -> bool:
        if process.poll() is not None:
            return True
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                words, variables = child.cmdline(), Path(f"/proc/{child.pid}/environ").read_bytes()
            except (psutil.Error, OSError):
                continue
            if words and variables and words not in own:  # a child is its parent's copy until it begins
                found[f"{child.pid} {words}"] = (words, variables.decode(errors="replace"))
        return False

    wait_until(look)
    return found


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes")
def test_a_validation_runs_nothing_of_its_folder_and_hands_on_no_key(
    tmp_path: Path, mlx_engine: Installed
) -> None:
    made = hostile(tmp_path, names(), own=True)
    own = {"HF_HOME": str(tmp_path / "hf"), "IMPORTER_MLX_PYTHON": str(mlx_engine.python), **SECRETS}
    env = around(tmp_path, OMP_NUM_THREADS="1", **own)
    folder, children = ["--dir", str(tmp_path / "out")], dict[str, tuple[list[str], str]]()
    for words in (
        [".", "--name", "demo", "--backend", "mlx", *folder, "--yes", "--no-validate"],
        ["validate", "demo", *folder, "--probe", "plain-chat", "tool-call", "tokenizer-whole"],
    ):
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(
                [*SCRIPT, *words], cwd=made.path, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            children |= seen(process)
        assert process.returncode == 0, (tmp_path / "log").read_text()
    assert made.ran == []
    told = [" ".join(words) for words, _ in children.values()]
    for part in ("parser_worker/__main__.py", "supervisor.py", "mlx_lm server", "parser_worker/tokens.py"):
        assert any(part in words for words in told), (part, told)
    for words, variables in children.values():
        assert "secret" not in variables, words
    engine = next(
        v for w, v in children.values() if "mlx_lm server" in " ".join(w) and "supervisor" not in " ".join(w)
    )
    assert "OMP_NUM_THREADS=1" in engine
    assert "PYTHONPATH" not in engine
