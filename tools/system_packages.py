"""Debian packages that some tests need: installed where that is allowed, named where it is not.

``python -m tools.system_packages chromium postgresql``; always ends well, for those tests skip themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """Its programs, any of which will do, under ``PATH`` or by a pattern below the root; what needs it."""

    programs: tuple[str, ...]
    needed_for: str


PACKAGES = {
    "chromium": Package(
        ("chromium", "chromium-browser", "google-chrome"), "looking at pages in a real browser"
    ),
    "postgresql": Package(
        ("postgres", "usr/lib/postgresql/*/bin/postgres"), "running the service on a real PostgreSQL"
    ),
    "libnuma1": Package(("usr/lib/*/libnuma.so.1",), "starting vLLM on processors"),
    "podman": Package(("podman",), "building and starting the image"),
    "podman-compose": Package(("podman-compose",), "starting the Compose file"),
    "runc": Package(("runc",), "running containers"),
    "catatonit": Package(("usr/*/catatonit", "usr/*/podman/catatonit"), "an init in containers"),
    "iptables": Package(("iptables", "usr/sbin/iptables"), "networks of containers"),
    "netavark": Package(("usr/*/podman/netavark",), "networks of containers"),
    "aardvark-dns": Package(("usr/*/podman/aardvark-dns",), "names of containers"),
    "debootstrap": Package(("debootstrap", "usr/sbin/debootstrap"), "a base image without a registry"),
    "openssh-server": Package(("sshd", "usr/sbin/sshd"), "running validations over a real OpenSSH"),
    "slurm-wlm": Package(("slurmctld", "usr/sbin/slurmctld"), "running jobs of a real Slurm"),
}


def place(name: str) -> Path | None:
    """Return the path of the package's program, if it is installed."""
    return next(_programs(PACKAGES[name]), None)


def missing(name: str) -> str:
    """Return the message about a missing package."""
    return f"{name} is not here, for {PACKAGES[name].needed_for}: apt-get install {name}"


def install(name: str) -> str | None:
    """Install a package where this user may; return why it is missing, or ``None``."""
    if place(name) is not None:
        return None
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return missing(name)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", name)):
        done = subprocess.run(
            ["apt-get", *words], env=environment, capture_output=True, text=True, check=False
        )
    if place(name) is None:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        return f"{missing(name)} (apt-get said: {' '.join(last)})"
    return None


def _programs(package: Package) -> Iterator[Path]:
    for program in package.programs:
        if "/" in program:
            yield from sorted(Path("/").glob(program), reverse=True)
        elif (path := shutil.which(program)) is not None:
            yield Path(path)


def main(names: list[str]) -> int:
    """Install the packages; return 0 always, 2 for an unknown name."""
    unknown = [name for name in names if name not in PACKAGES]
    if unknown or not names:
        print(f"known: {', '.join(PACKAGES)}", file=sys.stderr)
        return 2
    for name in names:
        problem = install(name)
        print(problem or f"{name}: {place(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
