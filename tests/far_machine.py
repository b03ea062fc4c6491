"""Places for runs elsewhere: a real ``sshd``, and a Python whose runs are noted, as all places have it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.serving import engine_variables, free_port
from tests.waiting import PATIENCE, wait_until
from tools.system_packages import install, place

PACKAGE = "openssh-server"


class FarPython:
    """A Python with importer; ``words`` are those of ``--on`` before ``importer admin run-task``."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        root.mkdir(mode=0o700, exist_ok=True)
        self._begun, self.path = root / "begun", root / "python"
        self.prepare(env)

    def prepare(self, env: Mapping[str, str], does: str = f'exec {sys.executable} "$@"') -> None:
        """Set the environment of its runs: a login has the home folder of the account and little else."""
        given = {**engine_variables(), **env}
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in given.items())
        self.path.write_text(f'#!/bin/sh\necho "$$" >> {self._begun}\n{exports}{does}\n')
        self.path.chmod(0o700)

    @property
    def words(self) -> str:
        return f"{self.path} -P -m"

    @property
    def begun(self) -> list[int]:
        """The processes of all runs that were begun, ever."""
        return [int(pid) for pid in self._begun.read_text().split()] if self._begun.exists() else []

    def family(self) -> list[psutil.Process]:
        """The newest run with everything that it has started and that lives."""
        try:
            newest = psutil.Process(self.begun[-1])
            return [newest, *newest.children(recursive=True)]
        except (psutil.Error, IndexError):
            return []


class FarMachine:
    """A machine with an ``sshd``; ``target`` is the text of ``--on``."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self.root, self.port, self.python = root, free_port(), FarPython(root, env)
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host", "user"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root / name]
            subprocess.run(argv, check=True, timeout=PATIENCE)
        (root / "authorized").write_text((root / "user.pub").read_text())
        self.trust((root / "host.pub").read_text())
        (root / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {root}/authorized\nPasswordAuthentication no\nStrictModes no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        (root / "config").write_text(
            f"Host *\n  IdentityFile {root}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {root}/known\n"
        )

    @property
    def target(self) -> str:
        return f"ssh:127.0.0.1 -p {self.port} -F {self.root}/config -- {self.python.words}"

    def trust(self, public: str) -> None:
        """Let this be the host key that is known."""
        (self.root / "known").write_text(f"[127.0.0.1]:{self.port} {' '.join(public.split()[:2])}\n")

    def start(self) -> None:
        program = place(PACKAGE)
        assert program is not None
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.root / "log").open("ab") as log:
            argv = [str(program), "-D", "-e", "-f", str(self.root / "sshd_config")]
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        assert wait_until(lambda: "listening" in (self.root / "log").read_text()), "sshd does not start"

    def stop(self) -> None:
        """End the daemon; its sessions go on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
        self._process = None


@contextmanager
def far_machine(root: Path, env: Mapping[str, str] | None = None) -> Iterator[FarMachine]:
    """A machine that can be reached; skips where OpenSSH's server is not to be had."""
    problem = install(PACKAGE)
    if problem is not None:
        pytest.skip(problem)
    machine = FarMachine(root, env or {})
    machine.start()
    try:
        yield machine
    finally:
        machine.stop()
