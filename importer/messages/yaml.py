"""Sentences about YAML that is not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _syntax(told: Mapping[str, Any]) -> str:
    """The reader's own words, and what it was in the middle of."""
    problem = told["problem"] or "it is not YAML"
    return f"{problem}, {told['context']} that begins on line {told['since']}" if told["since"] else problem


TEXTS: dict[str, dict[str, Text]] = {
    "YamlReason": {
        "syntax": _syntax,
        "character": "the character U+{code} is not allowed; write it as an escape",
        "long": "it has more than {most:,} characters",
        "deep": "it is nested deeper than {most} levels",
        "many": "it holds more than {most:,} values, those of an alias counted each time",
        "endless": "the alias {name!r} stands inside of what it stands for",
        "empty": "it holds nothing",
        "several": "a second document begins here",
        "alias": "found undefined alias {name!r}",
        "anchor": "found duplicate anchor {name!r}",
        "tag": "could not determine a constructor for the tag {tag!r}",
        "value": "{value!r} is not of the type {tag}",
        "key": "a list or a map is no key",
        "number-key": "{key} is no key",
        "twice": "{key}: it stands on line {line} already",
        "merge": "only maps can be merged",
    },
}
