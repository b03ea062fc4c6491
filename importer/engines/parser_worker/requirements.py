"""A program for an engine's Python: ``python -I requirements.py DISTRIBUTION…``.

It prints a JSON list of ``[package, requirement, installed release]``, one for each requirement of these
distributions, or of one that they need, whose package is installed in a release that it does not allow, or
is away: then the release is empty.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

BUILD = {"pip", "setuptools", "wheel"}  # make packages, and do nothing while an engine serves


def conflicts(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each requirement that no installed release meets."""
    left: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in names]
    seen = set(left)
    while left:
        name, extras = left.pop()
        one = _found(name)
        for text in (one.requires or ()) if one is not None else ():
            needed = _requirement(text, extras)
            if one is None or needed is None:
                continue
            have = _found(needed.name)
            asked = needed.name, frozenset(needed.extras)
            if asked not in seen:
                seen.add(asked)
                left.append(asked)
            if needed.name not in BUILD and (have is None or not _meets(needed, have.version)):
                yield one.name, f"{needed.name}{needed.specifier}", "" if have is None else have.version


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _requirement(text: str, extras: frozenset[str]) -> Requirement | None:
    """Return a requirement of this environment, those of other extras left out."""
    try:
        needed = Requirement(text)
    except InvalidRequirement:
        return None
    named = ("", *extras)
    applies = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in named)
    return needed if applies else None


def _meets(needed: Requirement, version: str) -> bool:
    try:
        return needed.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return True


if __name__ == "__main__":
    json.dump([*conflicts(sys.argv[1:])], sys.stdout)
