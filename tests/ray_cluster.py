"""A Ray cluster of the tests' own on loopback: a head without processors, and a worker with one.

Ray is in an environment of its own below ``IMPORTER_HOME``: the preset starts the ``python3`` of its folder.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import tempfile
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from importer.config import home
from tests.killer.check import TOKEN, left
from tests.serving import free_port
from tests.waiting import wait_until

PACKAGE = "ray[client]==2.60.0"  # its dashboard starts seven programs
READY = "ready"
STARTED = "Ray runtime started"
TRIES = 6
START_RAY = Path(__file__).with_name("ray_start.py")
# Nothing is given up since the machine is busy, and no worker is started ahead.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_health_check_timeout_ms": "60000", "RAY_health_check_failure_threshold": "10",
    "RAY_gcs_server_request_timeout_seconds": "120", "RAY_worker_register_timeout_seconds": "300",
    "RAY_agent_register_timeout_ms": "300000", "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "300",
}  # fmt: skip
MEMORY = "80000000"  # bytes of each object store


def interpreter() -> Path:
    """The Python with Ray; installed where it is not there yet, and skipped where it cannot be had."""
    root = home() / "tests" / "ray"
    if not (root / READY).exists():
        venv.create(root, clear=True, with_pip=True)
        argv = [str(root / "bin" / "python"), "-m", "pip", "install", "-q", PACKAGE]
        made = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
        if made.returncode != 0:
            pytest.skip(f"{PACKAGE} cannot be installed: {made.stderr.strip().splitlines()[-1:]}")
        (root / READY).touch()
    return root / "bin" / "python"


class RayCluster:
    """``address`` is the place of the preset; its nodes inherit ``env``."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._python, self._root = interpreter(), root
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "RAY_"))}
        self._env, self._nodes = {**kept, **SETTINGS, **env}, dict[str, subprocess.Popen[bytes]]()
        self.port, self.client = free_port(), free_port()
        self._mark = secrets.token_hex(8)
        self._temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")  # sockets have short names

    @property
    def folder(self) -> Path:
        """The folder with Ray's Python, for PATH."""
        return self._python.parent

    @property
    def address(self) -> str:
        """The place of the preset: Ray puts its server at the machine's own address."""
        found = re.search(r"node IP.*?(\d+(?:\.\d+){3})", (self._root / "head.log").read_text())
        assert found is not None
        return f"ray://{found[1]}:{self.client}"

    def start(self) -> None:
        self._node(
            "head", "--head", "--port", str(self.port), "--include-dashboard", "false",
            "--ray-client-server-port", str(self.client), "--num-cpus", "0", "--temp-dir", self._temporary,
        )  # fmt: skip
        self._node("worker", "--address", f"127.0.0.1:{self.port}", "--num-cpus", "1")

    def lose(self, name: str) -> None:
        """Kill a node with all that it runs, as a machine that is gone."""
        for pid in left(self._token(name), set()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nodes.pop(name).wait()

    def _token(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def close(self) -> None:
        for name in reversed([*self._nodes]):
            self.lose(name)

    def _node(self, name: str, *words: str) -> None:
        log = self._root / f"{name}.log"
        ports = (
            "--dashboard-agent-listen-port", "--dashboard-agent-grpc-port", "--runtime-env-agent-port",
            "--metrics-export-port",
        )  # fmt: skip
        argv = [
            str(self._python), str(START_RAY), "start", "--block", "--node-ip-address", "127.0.0.1", *words,
        ]  # fmt: skip
        argv += [word for option in ports for word in (option, str(free_port()))]
        argv += ["--object-store-memory", MEMORY, "--disable-usage-stats"]
        for _ in range(TRIES):
            with log.open("wb") as file:
                node = self._nodes[name] = subprocess.Popen(
                    argv, env={**self._env, TOKEN: self._token(name)}, stdin=subprocess.DEVNULL, stdout=file,
                    stderr=file,
                )  # fmt: skip
            wait_until(partial(_settled, node, log), log.read_text)
            if node.poll() is None:
                return
            self.lose(name)
        pytest.fail(log.read_text())


def _settled(node: subprocess.Popen[bytes], log: Path) -> bool:
    return STARTED in log.read_text() or node.poll() is not None


@contextmanager
def ray_cluster(root: Path, env: Mapping[str, str] | None = None) -> Iterator[RayCluster]:
    root.mkdir(exist_ok=True)
    cluster = RayCluster(root, env or {})
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
