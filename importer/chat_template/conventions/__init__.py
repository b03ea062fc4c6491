"""Templates of ours: conventions in which a model whose own template has no tools is offered some.

A convention is a line here and a file of Jinja macros beside it; docs/template.md tells how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Convention:
    """How tools, calls and results are put into plain turns.

    ``parsers``  engine to the tool parser that reads the calls back; no other engine is offered it.
    """

    name: str
    says: str
    parsers: Mapping[str, str]


PYTHONIC = "importer_pythonic"  # a parser of ours, which vLLM loads as a plugin
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
    """Return the conventions that an engine can read, the first to try first."""
    return tuple(c.name for c in CONVENTIONS.values() if backend in c.parsers)
