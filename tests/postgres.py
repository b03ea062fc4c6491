"""A PostgreSQL of the tests' own: Debian's programs, in a temporary directory, never run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.serving import PATIENCE, free_port
from tests.waiting import LOOK, FreeTime
from tools.system_packages import missing, place

# Nothing survives the tests, so that nothing has to reach a disk.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "200"}
ACCOUNTS = ("postgres", "nobody")  # who runs it where the tests are root, which it refuses


class Postgres:
    """A running server; ``fresh`` makes an empty database of a role that may do nothing else."""

    def __init__(self, port: int) -> None:
        self.port, self._made = port, 0

    def url(self, name: str) -> str:
        return f"postgresql://importer:secret@127.0.0.1:{self.port}/{name}"

    def fresh(self) -> str:
        self._made += 1
        name = f"gallery{self._made}"
        self.admin(f"CREATE DATABASE {name} OWNER importer")
        return self.url(name)

    def admin(self, statement: str) -> None:
        url = f"postgresql://admin:secret@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(url, autocommit=True, connect_timeout=int(PATIENCE)) as connection:
            connection.execute(statement)


def here() -> Path | None:
    """The folder of its programs."""
    found = place("postgresql")
    return None if found is None else found.resolve().parent


@contextmanager
def serving() -> Iterator[Postgres]:
    """Start one; whatever happens, it and its files are gone afterwards."""
    programs = here()
    assert programs is not None, missing("postgresql")
    folder = Path(tempfile.mkdtemp(prefix="importer-postgres-"))
    who = _account()
    process = None
    try:
        if who:
            os.chown(folder, who["user"], who["group"])
        secret = folder / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        data, port = folder / "data", free_port()
        _run(
            [programs / "initdb", "-D", data, "-U", "admin", "-A", "scram-sha-256", "--pwfile", secret,
             "-E", "UTF8", "--locale=C", "--no-sync"],
            who,
        )  # fmt: skip
        options = {**FAST, "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
        words = [str(w) for name, value in options.items() for w in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            argv = [str(programs / "postgres"), "-D", str(data), *words]
            process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder, **who)
        found = Postgres(port)
        _await(found, process, folder / "log")
        yield found
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once: nothing has to reach a disk
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> dict[str, Any]:
    """Who is to run it: the caller, unless that is root."""
    if os.geteuid() != 0:
        return {}
    for name in ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return {}


def _run(words: list[Any], who: dict[str, Any]) -> None:
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, check=False, cwd="/", **who
    )
    assert done.returncode == 0, done.stderr


def _await(found: Postgres, process: subprocess.Popen[bytes], log: Path) -> None:
    clock = FreeTime()
    while True:
        try:
            found.admin("CREATE ROLE importer LOGIN PASSWORD 'secret'")
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text(errors="replace")
            assert not clock.over, log.read_text(errors="replace")
            time.sleep(LOOK)
        else:
            return


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process; skipped where Debian's package is not here."""
    if here() is None:
        pytest.skip(missing("postgresql"))
    with serving() as found:
        yield found
