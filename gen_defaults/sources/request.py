"""What a source is asked for, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from gen_defaults.checks import Upstream
from gen_defaults.index import Index, IndexFailure, Release
from gen_defaults.place import Place

SCHEMA = 1
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, a tenth of the time


@dataclass(frozen=True, slots=True)
class Request:
    """``pinned``    the very releases that the files name, instead of the newest.
    ``versions``  of vLLM, in place of the supported ones.
    ``folder``    holds archives, and files of models in ``<org>__<name>/``: nobody is asked.
    """

    index: Index
    place: Place
    pinned: bool = False
    versions: tuple[str, ...] = ()
    folder: Path | None = None

    def newest(self, package: str, known: Mapping[str, Any], *, sdist: bool = False) -> Release:
        """The newest release, or the one that ``known`` names. Raises IndexFailure."""
        if self.pinned:
            return self.same(package, known)
        releases = self.index.releases(package) if sdist else self.index.wheels(package)
        return self.dated([*releases.values()][-1], known)

    def same(self, package: str, known: Mapping[str, Any]) -> Release:
        """The release that ``known`` names, by its file and its digest. Raises IndexFailure."""
        if not known:
            raise IndexFailure(f"no release of {package} is named here yet; run it without --check")
        found = next((r for r in self.index.files(package) if r.file == known["file"]), None)
        if found is None:
            raise IndexFailure(f"{known['file']} is not there any more")
        if found.sha256 != known["sha256"]:
            raise IndexFailure(f"{found.file} has another SHA-256 than the one it had: {found.sha256}")
        return self.dated(found, known)

    def dated(self, release: Release, known: Mapping[str, Any]) -> Release:
        """With the day that was noted for this very file, else the one that the index tells."""
        if known.get("sha256") == release.sha256 and known.get("released"):
            return replace(release, released=known["released"])
        return self.index.dated(release)


@dataclass(frozen=True, slots=True)
class Answer:
    """``files``     what is written, by path.
    ``upstream``  rows as they came, for the checks.
    ``modules``   module to source text of parsers of the newest vLLM, for what is known of their formats.
    """

    files: Mapping[Path, str]
    upstream: tuple[Upstream, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)


def named(release: Release, digest: str) -> dict[str, str]:
    """A release as a file names it, with one digest over everything that was read of it."""
    return {
        "package": release.package, "version": release.version, "file": release.file,
        "sha256": release.sha256, "read": digest, "released": release.released,
    }  # fmt: skip


def from_yaml(text: str, path: str, file: str) -> dict[str, Any]:
    """A file of an archive as a map; raises IndexFailure. A document that holds nothing is an empty one."""
    try:
        data = yaml.load(text, Loader=LOADER)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise IndexFailure(f"{file}: {path} cannot be read: {str(error).partition(chr(10))[0]}") from None
    if not isinstance(data, dict | None):
        raise IndexFailure(f"{file}: {path} is no map")
    return data or {}


def rendered(head: Mapping[str, Any], lists: Mapping[str, Mapping[str, Any]]) -> str:
    """JSON with a line for each entry of each list, so that a change shows as a small difference."""
    parts = [f" {json.dumps(key)}: {_text(value)}" for key, value in {"schema": SCHEMA, **head}.items()]
    for key, rows in lists.items():
        lines = [f"  {json.dumps(name)}: {_text(row)}" for name, row in rows.items()]
        parts.append(f" {json.dumps(key)}: {{" + ("\n" + ",\n".join(lines) + "\n }" if lines else "}"))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
