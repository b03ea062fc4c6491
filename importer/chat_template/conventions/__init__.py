"""Conventions: importer's own forms of tool calls, for models with a template without tools.

A convention is a line here and a file of Jinja macros beside it; CONTRIBUTING.md describes how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping

from importer import backends
from importer.frozen import frozen


@frozen
class Convention:
    """A form of tools, calls and results in plain turns; a backend names the parser that reads the calls."""

    name: str
    description: str


CONVENTIONS: Mapping[str, Convention] = {
    c.name: c for c in (Convention("json", "calls as JSON between tags"),)
}


def offered(backend: str) -> tuple[str, ...]:
    """Return the conventions that an engine can read, the preferred one first."""
    return tuple(backends.of(backend).conventions)
