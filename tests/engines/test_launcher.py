"""The one place that starts processes: what they inherit, how they end, and what of them is left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from importer import launcher
from importer.engines.process_group import alive, resident, shared_memory
from importer.launcher import PIPE, Purpose, isolated
from tests.waiting import wait_until

SECRETS = {
    "HF_TOKEN": "hf_secret", "HUGGING_FACE_HUB_TOKEN": "hf_secret", "HF_TOKEN_PATH": "/secret",
    "PGPASSWORD": "secret", "PGHOST": "secret", "DATABASE_URL": "postgresql://secret",
    "GALLERY_DATABASE_URL": "postgresql://secret", "SYSTEM_DATABASE_URL": "postgresql://secret",
    "AWS_ACCESS_KEY_ID": "secret", "AWS_SESSION_TOKEN": "secret", "OPENAI_API_KEY": "secret",
    "VLLM_API_KEY": "secret", "RAY_AUTH_TOKEN": "secret", "CONDA_TOKEN": "secret",
    "CARGO_REGISTRY_TOKEN": "secret", "IMPORTER_SERVE_DATABASE": "postgresql://secret",
    "IMPORTER_API_KEY": "secret", "SSH_AUTH_SOCK": "/secret", "PYTHONPATH": "/secret",
    "PYTHONSTARTUP": "/secret", "UNHEARD_OF": "secret",
}  # fmt: skip


AWAY = (Purpose.EDITOR, Purpose.REMOTE)


@pytest.mark.parametrize("purpose", [p for p in Purpose if p not in AWAY])
def test_no_purpose_lets_a_secret_through(purpose: Purpose, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    assert not SECRETS.keys() & launcher.environment(purpose).keys()


def test_a_program_that_reaches_another_machine_gets_the_agents_socket_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    assert SECRETS.keys() & launcher.environment(Purpose.REMOTE).keys() == {"SSH_AUTH_SOCK"}


def test_the_persons_editor_gets_all_but_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    kept = SECRETS.keys() & launcher.environment(Purpose.EDITOR).keys()
    assert kept == {"SSH_AUTH_SOCK", "PYTHONPATH", "PYTHONSTARTUP", "UNHEARD_OF"}


@pytest.mark.parametrize(
    ("purpose", "wanted"),
    [
        (Purpose.ENGINE, "CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES NCCL_DEBUG VLLM_CPU_KVCACHE_SPACE"),
        (Purpose.ENGINE, "LD_PRELOAD LD_LIBRARY_PATH OMP_NUM_THREADS TORCHINDUCTOR_CACHE_DIR HSA_XNACK"),
        (Purpose.ENGINE, "DYLD_LIBRARY_PATH MLX_METAL_DEBUG CONDA_PREFIX TOKENIZERS_PARALLELISM PATH HOME"),
        (Purpose.PARSERS, "CUDA_VISIBLE_DEVICES VLLM_TARGET_DEVICE HF_HOME XDG_CACHE_HOME PYENV_ROOT"),
        (Purpose.INSTALL, "PIP_INDEX_URL PIP_CERT https_proxy NO_PROXY SSL_CERT_FILE CMAKE_ARGS CC HOME"),
        (Purpose.SYSTEM, "PATH LD_LIBRARY_PATH"),
        (Purpose.QUESTION, "PATH HOME PYENV_VERSION CONDA_PREFIX"),
    ],
)  # fmt: skip
def test_a_purpose_gets_what_it_needs(purpose: Purpose, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in wanted.split():
        monkeypatch.setenv(name, "x")
    assert {*wanted.split()} <= launcher.environment(purpose).keys()


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "https_proxy"])
def test_the_index_and_proxies_are_for_the_network_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "https://ann:secret@example.org")
    given = {purpose for purpose in Purpose if name in launcher.environment(purpose)}
    assert given - {Purpose.INSTALL, Purpose.REMOTE} == {Purpose.EDITOR}


def test_more_variables_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNHEARD_OF", "1")
    monkeypatch.setenv("VLLM_API_KEY", "2")
    monkeypatch.setenv(launcher.MORE, "UNHEARD_OF, VLLM_API_KEY,NOT_SET")
    assert launcher.environment(Purpose.ENGINE)["VLLM_API_KEY"] == "2"
    given = {purpose for purpose in Purpose if "UNHEARD_OF" in launcher.environment(purpose)}
    assert given == {Purpose.ENGINE, Purpose.PARSERS, Purpose.INSTALL, Purpose.EDITOR}


def test_what_is_asked_and_answered_is_whole() -> None:
    """More than pipes hold, in both directions at once, on both streams."""
    code = "import sys; t = sys.stdin.read(); sys.stderr.write(t); sys.stdout.write(t); sys.exit(3)"
    text = "Zürich 💾\n" * 200_000
    done = launcher.run(isolated("-c", code), Purpose.QUESTION, seconds=60, text=text)
    assert (done.code, done.output == text, done.errors == text) == (3, True, True)


def test_it_runs_alone_in_the_root_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "csv.py").write_text("raise SystemExit('ran')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    code = "import csv, os; print(os.getcwd(), os.getpgid(0) == os.getsid(0) == os.getpid())"
    for argv in (isolated("-c", code), [sys.executable, "-c", code]):
        done = launcher.run(argv, Purpose.QUESTION, seconds=60)
        assert done.output.split() == ["/", "True"], done.errors


def test_a_module_of_an_engine_is_not_looked_for_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text("raise SystemExit('ran')")
    argv = [sys.executable, "-m", "json.tool", "--help"]
    done = launcher.run(argv, Purpose.ENGINE, seconds=60, folder=tmp_path)
    assert (done.code, done.errors) == (0, "")


FORKS = "import os, time; os.fork(); print(os.getpgid(0), flush=True); time.sleep(600)"


@pytest.mark.slow
def test_a_time_out_ends_the_whole_group(tmp_path: Path) -> None:
    place = tmp_path / "group"
    code = f"open({str(place)!r}, 'w').write(str(__import__('os').getpid())); {FORKS}"
    for seconds in (0.5, 5, 150):  # a busy machine may need longer until it runs at all
        with pytest.raises(TimeoutError):
            launcher.run(isolated("-c", code), Purpose.QUESTION, seconds=seconds)
        if place.exists():
            break
    assert wait_until(lambda: not alive(int(place.read_text())))


def test_one_that_closes_its_output_and_stays_is_ended() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(600)"
    with pytest.raises(TimeoutError):
        launcher.run(isolated("-c", code), Purpose.QUESTION, seconds=0.5)


def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "MOST_OUTPUT", 2**20)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is compared below
        launcher.run(isolated("-c", "while True: print('x' * 9999)"), Purpose.QUESTION, seconds=60)
    assert caught.value.errno == errno.EFBIG


def test_ctrl_c_ends_the_whole_group(tmp_path: Path) -> None:
    place = tmp_path / "group"
    code = f"open({str(place)!r}, 'w').write(str(__import__('os').getpid())); {FORKS}"

    def interrupt() -> None:
        assert wait_until(lambda: place.exists() and place.read_text())
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        launcher.run(isolated("-c", code), Purpose.QUESTION, seconds=60)
    assert wait_until(lambda: not alive(int(place.read_text())))


def test_a_signal_during_the_start_of_the_editor_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            launcher.attend([sys.executable, "-c", "import time; time.sleep(600)"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [psutil.pid_exists(pid) for pid in started] == [False]


HOLDS = """
import mmap, os, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate(4096)
    mapped = mmap.mmap(file.fileno(), 4096)
os.fork()
held = bytearray(os.urandom(32 << 20))
os.write(1, b".")
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="shared memory as Linux shows it")
def test_what_a_group_holds_until_it_is_gone() -> None:
    shared = Path("/dev/shm", f"importer-test-{os.getpid()}")
    process = launcher.start(isolated("-c", HOLDS, str(shared)), Purpose.QUESTION, stdin=PIPE, stdout=PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.read(1) + process.stdout.read(1) == b".."
        held = resident(process.pid)
        assert held is not None
        assert 64 << 20 < held < 256 << 20, "of both processes"
        assert shared_memory(process.pid) == {shared}
        assert launcher.ended(process, 0) is None
        launcher.send(process.pid, 9)
        assert wait_until(lambda: not alive(process.pid)), "a corpse does not count"
        assert launcher.ended(process, 10) == -9
    finally:
        launcher.end(process)
        shared.unlink()
    assert (resident(process.pid), shared_memory(process.pid)) == (0, set())


@pytest.mark.skipif(sys.platform != "linux", reason="threads that outlive the first, as Linux shows them")
def test_a_process_is_there_while_one_of_its_threads_is() -> None:
    code = (
        "import ctypes, os, threading, time; threading.Thread(target=time.sleep, args=(600,)).start();"
        "os.write(1, b'.'); ctypes.CDLL(None).pthread_exit(None)"
    )
    process = launcher.start(isolated("-c", code), Purpose.QUESTION, stdout=PIPE)
    try:
        assert process.stdout is not None
        process.stdout.read(1)
        assert wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
        assert alive(process.pid)
    finally:
        launcher.end(process)
    assert not alive(process.pid)
