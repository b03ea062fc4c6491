"""The document as YAML text: PyYAML's dump, with our comments at the lines of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from importer.document.build import Built
from importer.document.render import block, printable
from importer.document.where import Unreadable, parse
from importer.errors import DocumentError
from importer.yaml_reader import compose

SCHEMA_FILE = ".importer/document.schema.json"
HEADER = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"


def to_text(built: Built) -> str:
    """Data and comments as YAML; the first line names the JSON Schema for editors."""
    lines = block(built.data).split("\n")[:-1]
    for path, line in _ends(compose("\n".join(lines))):
        if path in built.comments and "#" not in lines[line]:
            lines[line] += f"  # {printable(built.comments[path])}"
    return HEADER + "\n".join(lines) + "\n"


def _ends(
    node: yaml.Node | None, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Each path whose value ends on one line, with that line's number."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _ends(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _ends(value, (*path, index))
    elif isinstance(node, yaml.ScalarNode) and node.start_mark.line == node.end_mark.line:
        yield path, node.end_mark.line


def read(text: str, path: object) -> dict[str, Any]:
    """Parse a document's text; raises DocumentError("invalid") with the line."""
    try:
        return parse(text)
    except Unreadable as error:
        raise DocumentError("invalid", path=path, problem=error.problem.reason) from None
