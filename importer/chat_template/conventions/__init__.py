"""Conventions: importer's own forms of tool calls, for models with a template without tools.

A convention is a line here and a file of Jinja macros beside it; CONTRIBUTING.md describes how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping

from importer.frozen import frozen


@frozen
class Convention:
    """A form of tools, calls and results in plain turns.

    ``parsers``  engine to the tool parser that reads the calls; other engines cannot use the convention.
    """

    name: str
    description: str
    parsers: Mapping[str, str]


PYTHONIC = "importer_pythonic"  # importer's own parser, a plugin for vLLM
CONVENTIONS: Mapping[str, Convention] = {
    c.name: c
    for c in (
        Convention("pythonic", "calls as Python writes them", {"vllm": PYTHONIC}),
        Convention(
            "json",
            "calls as JSON between tags",
            {"vllm": "hermes", "vllm-mlx": "hermes", "mlx": "json_tools", "mlx-vlm": "json_tools"},
        ),
    )
}


def offered(backend: str) -> tuple[str, ...]:
    """Return the conventions that an engine can read, the preferred one first."""
    return tuple(c.name for c in CONVENTIONS.values() if backend in c.parsers)
