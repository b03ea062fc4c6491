"""The text of a document that an import builds: its data and comments as YAML."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import yaml

from importer.document.build import SCHEMA_FILE, Built
from importer.document.yaml_edit.render import block
from importer.sentences import printable
from importer.yaml_reader import compose

HEADER = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"


_texts: OrderedDict[str, str] = OrderedDict()
TEXTS = 32  # that a process keeps: an import writes its text four times


def to_text(built: Built) -> str:
    """Data and comments as YAML; the first line names the JSON Schema for editors."""
    key = repr((built.data, built.comments, built.heads))  # complete for data of YAML
    text = _texts.get(key)
    if text is None:
        text = _texts[key] = _to_text(built)
        while len(_texts) > TEXTS:
            _texts.popitem(last=False)
    return text


def _to_text(built: Built) -> str:
    lines = block(built.data).split("\n")[:-1]
    for path, line in _ends(compose("\n".join(lines))):
        if path in built.comments and "#" not in lines[line]:
            lines[line] += f"  # {printable(built.comments[path])}"
    heads = "".join(f"# {printable(text)}\n" for text in built.heads)
    return HEADER + heads + "\n".join(lines) + "\n"


def _ends(
    node: yaml.Node | None, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Yield each path whose value ends on one line, with that line's number."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _ends(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _ends(value, (*path, index))
    elif isinstance(node, yaml.ScalarNode) and node.start_mark.line == node.end_mark.line:
        yield path, node.end_mark.line
