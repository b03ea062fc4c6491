"""A program for an engine's Python: ``python -I requirements.py DISTRIBUTION…``.

It prints a JSON list of ``[package, requirement, installed release]``, one for each requirement of these
distributions, or of one that they need, whose package is installed in a release that it does not allow.
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
    """Yield each requirement that an installed release does not meet."""
    left, seen = list(names), set(names)
    while left:
        one = _found(left.pop())
        for text in (one.requires or ()) if one is not None else ():
            needed = _requirement(text)
            have = _found(needed.name) if needed is not None else None
            if one is None or needed is None or have is None:
                continue
            if needed.name not in seen:
                seen.add(needed.name)
                left.append(needed.name)
            if needed.name not in BUILD and not _meets(needed, have.version):
                yield one.name, f"{needed.name}{needed.specifier}", have.version


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _requirement(text: str) -> Requirement | None:
    """Return a requirement of this environment, without those of extras."""
    try:
        needed = Requirement(text)
    except InvalidRequirement:
        return None
    return needed if needed.marker is None or needed.marker.evaluate({"extra": ""}) else None


def _meets(needed: Requirement, version: str) -> bool:
    try:
        return needed.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return True


if __name__ == "__main__":
    json.dump([*conflicts(sys.argv[1:])], sys.stdout)
