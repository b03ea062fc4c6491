"""The request to a source, and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gen_defaults.checks import Upstream
from gen_defaults.place import Place
from gen_defaults.released import Index
from importer.wheels.index import IndexFailure, Release

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """``pinned``    the very releases that the files name, instead of the newest.
    ``versions``  of vLLM, in place of the supported ones.
    ``folder``    holds archives, and files of models in ``<org>__<name>/``, in place of requests.
    ``recipes``   a checkout of vllm-project/recipes, whose taxonomy has the kinds of nodes.
    """

    index: Index
    place: Place
    pinned: bool = False
    versions: tuple[str, ...] = ()
    folder: Path | None = None
    recipes: Path | None = None

    def newest(self, package: str, known: Mapping[str, Any], *, sdist: bool = False) -> Release:
        """Return the newest release, or the one that ``known`` names. Raises IndexFailure.

        Where a person gave the files and that one is not among them, the newest of these is compared with it.
        """
        if self.pinned and not (self.index.is_folder and self._known(package, known) is None):
            return self.same(package, known)
        releases = self.index.releases(package) if sdist else self.index.wheels(package)
        return self.dated([*releases.values()][-1], known)

    def same(self, package: str, known: Mapping[str, Any]) -> Release:
        """Return the release that ``known`` names, by its file and its digest. Raises IndexFailure."""
        if not known:
            raise IndexFailure(f"no release of {package} is named here yet; run it without --check")
        release = self._known(package, known)
        if release is None:
            raise IndexFailure(f"{known['file']} is not there any more")
        return self.dated(release, known)

    def _known(self, package: str, known: Mapping[str, Any]) -> Release | None:
        return next((r for r in self.index.files(package) if r.file == known.get("file")), None)

    def dated(self, release: Release, known: Mapping[str, Any]) -> Release:
        """Return the release with its noted day, else the index's.

        Raises IndexFailure where an index has another file under the same name: a release never changes. A
        person's file may differ; the check ``altered`` reports it.
        """
        if known.get("sha256") == release.sha256:
            if known.get("released"):
                return replace(release, released=known["released"])
        elif known.get("file") == release.file and not self.index.is_folder:
            raise IndexFailure(f"{release.file} has another SHA-256 than the one it had: {release.sha256}")
        return self.index.dated(release)


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """``files``     what is written, by path.
    ``upstream``  rows as they came, for the checks.
    ``modules``   module to source text of parsers of the newest vLLM, for what is known of their formats.
    """

    files: Mapping[Path, str]
    upstream: tuple[Upstream, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)


def named(release: Release, digest: str) -> dict[str, str]:
    """Return a release as a file names it, with one digest over everything that was read of it."""
    return {
        "package": release.package, "version": release.version, "file": release.file,
        "sha256": release.sha256, "read": digest, "released": release.released,
    }  # fmt: skip


def rendered(head: Mapping[str, Any], lists: Mapping[str, Mapping[str, Any]]) -> str:
    """Return JSON with a line for each entry of each list, so that a change is a small difference."""
    parts = [f" {json.dumps(key)}: {_text(value)}" for key, value in {"schema": SCHEMA, **head}.items()]
    for key, rows in lists.items():
        lines = [f"  {json.dumps(name)}: {_text(row)}" for name, row in rows.items()]
        parts.append(f" {json.dumps(key)}: {{" + ("\n" + ",\n".join(lines) + "\n }" if lines else "}"))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
