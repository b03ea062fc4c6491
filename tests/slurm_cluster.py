"""A Slurm cluster of one machine: munged, slurmctld and slurmd of this user, on ports of their own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from importer.engines.ports import free_port
from tests.waiting import wait_until

CONFIG = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")


def found() -> dict[str, str]:
    """The programs of Slurm on this machine; the test is skipped without one."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    programs = {name: shutil.which(name, path=path) for name in PROGRAMS}
    missing = [name for name, place in programs.items() if place is None]
    if missing:
        pytest.skip(f"Debian's slurm-wlm is needed: no {', '.join(missing)}")
    return {name: place for name, place in programs.items() if place is not None}


@contextmanager
def cluster() -> Iterator[Path]:
    """The configuration of a running cluster with one processor and the partition ``debug``."""
    programs, host = found(), socket.gethostname().partition(".")[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        config = folder / "slurm.conf"
        ports = {"controller": free_port(), "node": free_port()}
        config.write_text(CONFIG.format(host=host, folder=folder, user=getpass.getuser(), **ports))
        own = [f"--{name}={folder}/{file}" for name, file in (
            ("socket", "munge.sock"), ("key-file", "munge.key"), ("pid-file", "munged.pid"),
            ("log-file", "munged.log"), ("seed-file", "munge.seed"),
        )]  # fmt: skip
        _start(stack, folder, programs["munged"], "--foreground", "--force", *own)
        wait_until((folder / "munge.sock").exists)
        _start(stack, folder, programs["slurmctld"], "-D", "-f", str(config))
        _start(stack, folder, programs["slurmd"], "-D", "-f", str(config))
        wait_until(lambda: "idle" in _asked(config))
        yield config


def _start(stack: ExitStack, folder: Path, *command: str) -> None:
    output = stack.enter_context((folder / f"{Path(command[0]).name}.out").open("wb"))
    process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def _asked(config: Path) -> str:
    done = subprocess.run(
        ("sinfo", "--noheader", "--format=%T"), env={**os.environ, "SLURM_CONF": str(config)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout
