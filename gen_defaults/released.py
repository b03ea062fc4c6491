"""The package index as the tables are made from: one archive of each version, and its day."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gen_defaults import sdist
from importer.wheels import archive, index
from importer.wheels.archive import PathFilter, Texts
from importer.wheels.index import Release, day

SDIST = ".tar.gz"


class Index(index.Index):
    """The package index, or a folder in its place, with sdists and days."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._days: dict[str, dict[str, str]] = {}

    def releases(self, package: str) -> dict[str, Release]:
        """Return every final version with its sdist, or a wheel where it has none. Raises IndexFailure."""
        return self._one_each(package, lambda release: (not release.file.endswith(SDIST), *_turn(release)))

    def wheels(self, package: str) -> dict[str, Release]:
        """Return every final version with its wheel, or the sdist where it has none. Raises IndexFailure."""
        return self._one_each(package, lambda release: (release.file.endswith(SDIST), *_turn(release)))

    def dated(self, release: Release) -> Release:
        """Return the release with the day it came out, of the index's page or its older JSON."""
        if release.released or not self.bases:
            return release
        if release.package not in self._days:
            self._days[release.package] = self._days_of(release.package)
        return replace(release, released=self._days[release.package].get(release.file, ""))

    def texts(self, release: Release, is_needed: PathFilter) -> dict[str, str]:
        """Return the wanted files of a whole release, by path in the package. Raises IndexFailure."""
        whole = sdist.whole if release.file.endswith(SDIST) else archive.whole
        return dict(whole(self.web, release.url, release.file, release.sha256, is_needed).texts)

    def part(self, release: Release, is_needed: PathFilter, last: str = "") -> Texts:
        """Return the wanted files without the rest of the archive, as far as that is possible. Raises
        IndexFailure.

        ``last``  the top folder behind which no wanted file is, for an archive that can only be read through.
        """
        if not release.file.endswith(SDIST):
            return super().part(release, is_needed)
        return sdist.part(self.web, release.url, release.file, release.sha256, is_needed, last)

    def _one_each(self, package: str, turn: Callable[[Release], Any]) -> dict[str, Release]:
        best: dict[str, Release] = {}
        for release in self.files(package):
            known = best.get(release.version)
            if known is None or turn(release) < turn(known):
                best[release.version] = release
        return best

    def _days_of(self, package: str) -> dict[str, str]:
        for base in self.bases:
            root = base.rstrip("/").removesuffix("/simple")
            try:
                listing = json.loads(self.web.page(f"{root}/pypi/{package}/json", "application/json")[1])
                files = [file for released in listing["releases"].values() for file in released]
                return {str(file["filename"]): day(file["upload_time"]) for file in files}
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
        return {}


def _turn(release: Release) -> tuple[bool, bool, str]:
    """Return the order of a version's wheels: for every platform first, then for x86_64."""
    return not release.file.endswith("-any.whl"), "x86_64" not in release.file, release.file
