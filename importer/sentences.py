"""Sentences of reasons for all front ends alike; numbers, times and foreign text as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from string import Formatter
from typing import Any

from importer.reasons import Fields, Reason, ReasonKind, Text, key_of


def render(reason: Reason, instead: Mapping[str, Text] | None = None) -> str:
    """Return the sentence of a reason. ``instead`` holds a front end's own texts by key."""
    return sentence(reason.kind, reason.fields, instead)


def sentence(kind: ReasonKind, fields: Fields, instead: Mapping[str, Text] | None = None) -> str:
    """Return the sentence of a kind over ``fields``; reasons among them become sentences first."""
    return worded((instead or {}).get(key_of(kind)) or kind.text, fields, instead)


def value_text(data: object) -> str:
    """Return a value for people, as YAML words it; a map's entries one below the other."""
    if isinstance(data, Mapping):
        return "\n".join(f"{k}: {_in_line(v)}" for k, v in data.items())
    if isinstance(data, list | tuple):
        between = "; " if any(isinstance(one, Mapping) for one in data) else ", "
        return between.join(map(_in_line, data)) or "none"
    if isinstance(data, bool):
        return str(data).lower()
    return "–" if data is None else str(data)


def _in_line(data: object) -> str:
    return value_text(data).replace("\n", ", ")


def short(reason: Reason) -> str | None:
    """Return the short form of a reason; ``None`` for a kind that decides nothing."""
    return _filled(reason.kind.short, {name: _short(value) for name, value in reason.fields.items()}) or None


def _short(value: object) -> Any:
    return short(value) or "" if isinstance(value, Reason) else worded_field(value)


def rendered(kept: Mapping[str, object]) -> str | None:
    """Return the sentence of a reason as ``Reason.to_json`` gave it; ``None`` for an unknown kind."""
    name, _, value = str(kept.get("kind")).partition(".")
    kinds = _loaded(name) or _found(name)
    if kinds is None or value not in {*kinds}:
        return None
    fields = {name: _worded_kept(value) for name, value in kept.items() if name != "kind"}
    return worded(kinds(value).text, fields)


def _loaded(name: str) -> type[ReasonKind] | None:
    return next((kinds for kinds in ReasonKind.__subclasses__() if kinds.__name__ == name), None)


def _found(name: str) -> type[ReasonKind] | None:
    """Import the module that declares an enumeration: its source is searched for the name."""
    from pathlib import Path

    head, package = f"\nclass {name}(ReasonKind):\n", Path(__file__).parent
    for path in package.rglob("*.py"):
        if head in path.read_text(encoding="utf-8"):
            place = path.relative_to(package.parent).with_suffix("")
            import_module(".".join(place.parts).removesuffix(".__init__"))
    return _loaded(name)


def _worded_kept(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        return rendered(value) or ""
    return tuple(_worded_kept(item) for item in value) if isinstance(value, list) else value


def worded(text: Text, fields: Fields, instead: Mapping[str, Text] | None = None) -> str:
    """Return a text over ``fields``; reasons among them become sentences first."""
    return _filled(text, {name: worded_field(value, instead) for name, value in fields.items()})


def worded_field(value: object, instead: Mapping[str, Text] | None = None) -> Any:
    """Return a field as sentences show it: reasons as sentences, sequences element by element.

    A member of an enumeration is shown by the text under its key in ``instead``, where there is one.
    """
    if isinstance(value, Reason):
        return render(value, instead)
    if isinstance(value, StrEnum):
        return (instead or {}).get(key_of(value), str(value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(worded_field(item, instead) for item in value)
    return value


def row(text: Text) -> str:
    """Return a text with the names of its fields, as tables show it; a function's is its docstring."""
    if callable(text):
        return str(text.__doc__)
    return "".join(literal + _placeholder(name, spec) for literal, name, spec, _ in _WORDS.parse(text))


def _placeholder(name: str | None, spec: str | None) -> str:
    words = f" {spec.rpartition('|')[2]}" if spec and "|" in spec else ""
    return f"{{{name}}}{words}" if name else ""


def placeholders(text: Text) -> tuple[str, ...]:
    """Return the fields that a text shows; a function names them in braces in its docstring."""
    shown = text.__doc__ or "" if callable(text) else text
    names = (re.split(r"[.\[]", name)[0] for _, name, _, _ in _WORDS.parse(shown) if name)
    return tuple(dict.fromkeys(names))


def _filled(text: Text, fields: Fields) -> str:
    return text(fields) if callable(text) else _WORDS.vformat(text, (), fields)


class _Words(Formatter):
    """Format strings in which a sequence reads ``a, b``, or ``a and b`` as ``{names:and}``.

    ``{at:moment}`` is a time, ``{count:probe|probes}`` a number with its word, ``{near:?}`` asks for one of
    the names, where there are some.
    """

    def format_field(self, value: Any, spec: str) -> Any:
        if spec == "?":
            return f" (did you mean {joined(value)}?)" if value else ""
        if isinstance(value, tuple):
            return joined(value, spec or ",")
        if "|" in spec:
            one, many = spec.split("|")
            return counted(value, one, many) if isinstance(value, int) else f"{value} {many}"
        if spec == "moment":
            return moment(str(value))
        return super().format_field(value, spec)


_WORDS = _Words()


def joined(items: Sequence[object], with_: str = ",") -> str:
    """Return ``a, b, c``; with a word, ``a, b and c``."""
    texts = [str(item) for item in items]
    if with_ in {",", ";"}:
        return f"{with_} ".join(texts)
    return f" {with_} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def moment(text: str) -> str:
    """Return a UTC time of a receipt as text: ``2026-11-21 12:36 UTC``; another text stays."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00", text)
    return f"{match[1]} {match[2]} UTC" if match else text


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 probe`` or ``1,204 probes``."""
    return f"{number:,} {one if number == 1 else many}"


def printable(text: str) -> str:
    """Return text with a space for each character that nobody sees: for comments and descriptions."""
    return "".join(c if c.isprintable() else " " for c in text)


def plain(text: str) -> str:
    """Return text with control characters escaped: text of a repository must not steer a terminal."""
    return "".join(map(_escaped, text))


@lru_cache(4096)
def _escaped(letter: str) -> str:
    if letter in "\n " or letter.isprintable() or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape").decode()
