"""The parsers of vLLM's Rust frontend, read from its sources in the sdist: name, type and crate of each.

The wheel has only the binary, and a binary is never run here. The registrations are one call each,
``register_parser::<Type>(names::NAME)``, with the names as constants in the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gen_defaults.inference import Rule
from gen_defaults.parser_tables import Kind, Row, Rows
from gen_defaults.syntax import Sources

PLACE = "rust/src/chat/src/parser"
FILES: Mapping[str, tuple[Kind, ...]] = {
    "tool": ("tool",),
    "reasoning": ("reasoning",),
    "unified": ("tool", "reasoning"),  # one parser for both; the server starts with both or none
}
PATHS = {f"{PLACE}/unified.rs": "unified"} | {
    f"{PLACE}/{name}/mod.rs": name for name in ("tool", "reasoning")
}
TESTS = re.compile(r"#\[cfg\(test\)\]")
COMMENT = re.compile(r"//[^\n]*")
CONSTANT = re.compile(r'pub const (\w+): &str = "([^"\\]+)";')
CALL = re.compile(r"\.register_(?:parser|creator)\b")
OWN = re.compile(r"self\s*\.register_creator\b")  # the body of register_parser itself
PATTERN = re.compile(r"\.register_pattern\(\s*\"([^\"\\]+)\",\s*names::(\w+)\s*\)")
PATTERNS = re.compile(r"\.register_pattern\b")
REGISTERED = re.compile(r"\.register_parser::<(\w+)>\(\s*(?:names::(\w+)|\"([^\"\\]+)\")\s*\)")


def is_needed(path: str) -> bool:
    """Return whether the file has registrations."""
    return path in PATHS


def guesses(sources: Sources) -> list[Rule]:
    """Return the substrings of a model's id that select a parser, in the order in which they are tried.

    Those of parsers for both kinds come first. Raises ValueError for one in another form.
    """
    found: list[Rule] = []
    for path, file in PATHS.items():
        text = _code(sources.get(path, ""))
        names = dict(CONSTANT.findall(text))
        patterns = PATTERN.findall(text)
        if len(patterns) != len(PATTERNS.findall(text)):
            raise ValueError(f"{path}: a pattern is registered otherwise")
        found += [
            {"kind": kind, "in_id": pattern.lower(), "parser": names[constant]}
            for pattern, constant in patterns
            for kind in FILES[file]
        ]
    return found


def rows(sources: Sources) -> Rows:
    """Return every registered parser; raises ValueError for a registration in another form."""
    found: dict[Kind, set[Row]] = {"tool": set(), "reasoning": set()}
    for path, file in PATHS.items():
        entries = [*_registered(sources.get(path, ""), path)]
        for kind in FILES[file]:
            found[kind] |= {(name, cls, f"vllm_parser::{file}") for name, cls in entries}
    return {kind: sorted(entries) for kind, entries in found.items()}


def _registered(source: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield name and type of each registration outside of tests and comments."""
    text = _code(source)
    names = dict(CONSTANT.findall(text))
    calls = len(CALL.findall(text)) - len(OWN.findall(text))
    registrations = REGISTERED.findall(text)
    if len(registrations) != calls:
        raise ValueError(f"{path}: {calls - len(registrations)} of {calls} parsers are registered otherwise")
    for cls, constant, literal in registrations:
        if constant and constant not in names:
            raise ValueError(f"{path}: the name {constant} is no constant of this file")
        yield literal or names[constant], cls


def _code(source: str) -> str:
    """Return the source without tests and comments."""
    return COMMENT.sub("", TESTS.split(source)[0])
