"""The one place where reasons become sentences, for all front ends alike.

A module of this room holds the sentences of one subject: ``TEXTS[enumeration][kind]`` is a format string over
the reason's fields, or a function of them. No sentence here names a flag, a command or a route: the command
line and the service add their own words (``cli.messages``, ``service.messages``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from string import Formatter
from typing import Any

from importer.messages.words import counted, moment
from importer.reasons import Reason, key_of

Text = str | Callable[[Mapping[str, Any]], str]
SUBJECTS: tuple[str, ...] = (
    "errors", "sources", "signals", "memory", "decisions", "config_file", "engines", "doctor", "exports",
    "validation", "validation_server", "rungs", "remedies", "prompts", "request_coverage", "entries", "launchers", "upgrade",
)  # fmt: skip


@cache
def catalogue() -> Mapping[str, Text]:
    """Every sentence by its key, ``Enumeration.kind``."""
    found: dict[str, Text] = {}
    for subject in SUBJECTS:
        for enumeration, rows in import_module(f"importer.messages.{subject}").TEXTS.items():
            found |= {f"{enumeration}.{kind}": text for kind, text in rows.items()}
    return found


def render(reason: Reason, instead: Mapping[str, Text] | None = None) -> str:
    """The sentence of a reason. ``instead`` holds a front end's own sentences by key."""
    return sentence(reason.kind, reason.fields, instead)


def sentence(kind: StrEnum, fields: Mapping[str, Any], instead: Mapping[str, Text] | None = None) -> str:
    """The sentence of a kind over ``fields``; reasons among them become sentences first."""
    return sentence_of(key_of(kind), fields, instead)


def sentence_of(key: str, fields: Mapping[str, Any], instead: Mapping[str, Text] | None = None) -> str:
    """The same by its key, as errors have one that are of no enumeration."""
    return worded((instead or {}).get(key) or catalogue()[key], fields, instead)


def worded(text: Text, fields: Mapping[str, Any], instead: Mapping[str, Text] | None = None) -> str:
    """A text of a front end's own over ``fields``."""
    values = {name: worded_field(value, instead) for name, value in fields.items()}
    return text(values) if callable(text) else WORDS.vformat(text, (), values)


def row(text: Text) -> str:
    """A text with the names of its fields, as tables show it; a function's is its docstring."""
    if callable(text):
        return str(text.__doc__)
    return "".join(literal + _placeholder(name, spec) for literal, name, spec, _ in WORDS.parse(text))


def _placeholder(name: str | None, spec: str | None) -> str:
    words = f" {spec.rpartition('|')[2]}" if spec and "|" in spec else ""
    return f"{{{name}}}{words}" if name else ""


def rendered(kept: Mapping[str, Any]) -> str | None:
    """The sentence of a reason as ``Reason.to_json`` gave it; ``None`` for a kind that has none here."""
    text = catalogue().get(str(kept.get("kind")))
    if text is None:
        return None
    return worded(text, {name: _worded_kept(value) for name, value in kept.items() if name != "kind"})


def _worded_kept(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        return rendered(value) or ""
    return tuple(_worded_kept(item) for item in value) if isinstance(value, list) else value


def worded_field(value: object, instead: Mapping[str, Text] | None = None) -> Any:
    """A field as sentences show it: reasons as sentences, sequences element by element.

    A member of an enumeration is shown by the text under its key in ``instead``, where there is one.
    """
    if isinstance(value, Reason):
        return render(value, instead)
    if isinstance(value, StrEnum):
        return (instead or {}).get(key_of(value), str(value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(worded_field(item, instead) for item in value)
    return value


class _Words(Formatter):
    """Format strings in which a sequence reads ``a, b``, or ``a and b`` as ``{names:and}``.

    ``{at:moment}`` is a time, ``{count:probe|probes}`` a number with its word.
    """

    def format_field(self, value: Any, spec: str) -> Any:
        if isinstance(value, tuple):
            return joined(value, spec or ",")
        if "|" in spec:
            one, many = spec.split("|")
            return counted(value, one, many) if isinstance(value, int) else f"{value} {many}"
        if spec == "moment":
            return moment(str(value))
        return super().format_field(value, spec)


def joined(items: Sequence[object], with_: str = ",") -> str:
    """``a, b, c``; with a word, ``a, b and c``."""
    texts = [str(item) for item in items]
    if with_ in {",", ";"}:
        return f"{with_} ".join(texts)
    return f" {with_} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


WORDS = _Words()
