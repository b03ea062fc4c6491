"""Another machine for launchers: a real ``sshd`` of the tests' own; its Python counts the tasks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.serving import engine_variables, free_port
from tests.waiting import PATIENCE, wait_until
from tools.system_packages import install, place

PACKAGE = "openssh-server"


class FarMachine:
    """``target`` is the text of ``--on``; ``folder`` is where runs lie there."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self.root, self.port, self.folder = root, free_port(), root / "runs"
        self._begun, self.python = root / "begun", root / "python"
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
        self.prepare(env)

    def prepare(self, env: Mapping[str, str], python: str = sys.executable) -> None:
        """Set the environment of its tasks: a login has the home folder of the account and little else."""
        given = {**engine_variables(), **env}
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in given.items())
        count = f'case "$*" in *run-task*) echo "$$" >> {self._begun};; esac\n'
        self.python.write_text(f'#!/bin/sh\n{count}{exports}exec {python} "$@"\n')
        self.python.chmod(0o700)

    @property
    def target(self) -> str:
        options = f"python={self.python}&config={self.root}/config&folder={self.folder}"
        return f"ssh:127.0.0.1:{self.port}?{options}"

    @property
    def begun(self) -> int:
        """How many tasks were begun there, ever."""
        return len(self._begun.read_text().split()) if self._begun.exists() else 0

    @property
    def left(self) -> list[str]:
        """What lies there of runs."""
        return sorted(p.name for p in self.folder.glob("*"))

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
        """End the daemon; its sessions and what they started go on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
        (self.root / "log").write_text("")
        self._process = None


@contextmanager
def far_machine(root: Path, env: Mapping[str, str] | None = None) -> Iterator[FarMachine]:
    """A machine that can be reached; skips where OpenSSH's server is not to be had."""
    problem = install(PACKAGE)
    if problem is not None:
        pytest.skip(problem)
    root.mkdir(mode=0o700, exist_ok=True)
    machine = FarMachine(root, env or {})
    machine.start()
    try:
        yield machine
    finally:
        machine.stop()
