"""Released sources of others, read at run time: of a folder that the user gives, else of their own index.

``FOLDER/PACKAGE/`` stands for the package, in any layout that has the same paths at its end. What is read is
never written into this repository. Code of others runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gen_defaults.released import Index

SECONDS = 300


class Released:
    """The newest releases, or those in ``folder``."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._index: Index | None = None

    @property
    def index(self) -> Index:
        """The package index that pip is configured with."""
        self._index = self._index or Index()
        return self._index

    def package(self, name: str, is_needed: Callable[[str], bool]) -> tuple[str, Mapping[str, str]]:
        """Return the version and the wanted files of a package of the index, by path."""
        if given := self._given(name):
            return given
        release = [*self.index.wheels(name).values()][-1]
        return release.version, self.index.part(release, is_needed).texts

    def repository(self, name: str, path: str) -> tuple[str, str]:
        """Return the newest release of a repository on GitHub, and one of its files."""
        if given := self._given(name.rpartition("/")[2]):
            return given[0], given[1][path]
        newest = self._web(f"https://api.github.com/repos/{name}/releases/latest")
        tag = json.loads(newest)["tag_name"]
        return tag, self._web(f"https://raw.githubusercontent.com/{name}/{tag}/{path}")

    def _web(self, url: str) -> str:
        return self.index.web.page(url, "*/*")[1].decode()

    def _given(self, name: str) -> tuple[str, Mapping[str, str]] | None:
        folder = self._folder / name if self._folder else None
        if folder is None or not folder.is_dir():
            return None
        described = subprocess.run(
            ["git", "describe", "--tags", "--always"], cwd=folder, capture_output=True, text=True, check=False
        )
        version = described.stdout.strip() if (folder / ".git").exists() else "of a folder"
        return version, _Files(folder)


class _Files(Mapping[str, str]):
    """The files of a folder by path, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, path: str) -> str:
        return (self._folder / path).read_text(encoding="utf-8")

    def __iter__(self):  # type: ignore[no-untyped-def]
        return (str(p.relative_to(self._folder)) for p in self._folder.rglob("*") if p.is_file())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def run(script: str, given: Any) -> Any:
    """Run a script with JSON on its input, and return the JSON of its output."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        input=json.dumps(given), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return json.loads(done.stdout)
