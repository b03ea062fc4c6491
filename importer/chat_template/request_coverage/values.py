"""Values that hold no nonce: 0, booleans, null and what is empty, in the arguments of an earlier call.

Each stands under a nonce of its own: its spelling is looked for between this name and the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from importer.chat_template.cases import Turn
from importer.chat_template.request_coverage import nonces
from importer.chat_template.request_coverage.compare import called_as_python
from importer.chat_template.request_coverage.conversations import OFFERED, RESULTS, USERS, Conversation, said
from importer.chat_template.request_coverage.findings import WayInField, WayInFinding, WayInKind
from importer.chat_template.samples import SampleCall
from importer.frozen import frozen

# The values of each conversation: one that the template cannot render must not hide the others.
GROUPS: Mapping[str, tuple[tuple[WayInField, Any], ...]] = {
    "zero-and-booleans": (
        (WayInField.NUMBER, 0),
        (WayInField.BOOLEAN, False),
        (WayInField.BOOLEAN, True),
    ),
    "null": ((WayInField.NULL, None),),
    "empty": ((WayInField.EMPTY, ""), (WayInField.EMPTY, []), (WayInField.EMPTY, {})),
}
ADDED = {name: values[0][0] for name, values in GROUPS.items()} | {"zero-and-booleans": WayInField.BOOLEAN}
# The spelling in JSON, and the one of Python where it is another.
SPELT: Mapping[str, tuple[str, str]] = {
    "0": (r"(?<![\w.])-?0(?:\.0)?(?![\w.])", ""),
    "False": (r"(?<!\w)false(?!\w)", r"(?<!\w)False(?!\w)"),
    "True": (r"(?<!\w)true(?!\w)", r"(?<!\w)True(?!\w)"),
    "None": (r"(?<!\w)null(?!\w)", r"(?<!\w)None(?!\w)"),
    "''": ("", ""),  # any text holds it
    "[]": (r"\[\s*\]", ""),
    "{}": (r"\{\s*\}", ""),
}
# The value of a member of a JSON object as text; quotes of JSON inside JSON have escapes.
AS_TEXT = re.compile(r'\\*"\s*:\s*\\*"(?:0|true|false|null|True|False|None|\[\]|\{\})\\*"')
OTHER = re.compile(r'\\*"\s*:\s*[^\s,}]')  # a member of a JSON object with any value
ROOM = 200  # characters behind the last name


@frozen
class Value:
    """A value under the nonce ``name``; ``inner`` inside of another argument."""

    field: WayInField
    name: str
    value: Any
    inner: bool


def _made(group: str) -> tuple[Value, ...]:
    return tuple(
        Value(field, nonces.name(f"value {group} {n} {inner}"), value, inner)
        for inner in (False, True)
        for n, (field, value) in enumerate(GROUPS[group])
    )


VALUES: Mapping[str, tuple[Value, ...]] = {group: _made(group) for group in GROUPS}


def _words(group: str) -> tuple[str, str, str, str]:
    """Return the names of the call, of an object and of a text, and the text."""
    of, held, beside, text = (nonces.name(f"value {group} {what}") for what in ("of", "in", "by", "text"))
    return of, held, beside, text


def conversations() -> tuple[Conversation, ...]:
    """Return one conversation with a call for each group of values."""
    return tuple(map(_conversation, GROUPS))


def _conversation(group: str) -> Conversation:
    called, held, beside, text = _words(group)
    arguments: dict[str, object] = {one.name: one.value for one in VALUES[group] if not one.inner}
    arguments[held] = {one.name: one.value for one in VALUES[group] if one.inner}
    arguments[beside] = text
    turns = (
        said("user", USERS[0]),
        Turn("assistant", "", (SampleCall(called, arguments),)),
        said("tool", RESULTS[0]),
    )
    return Conversation(group, turns, (), OFFERED)


def compare(group: str, prompt: str) -> Iterator[WayInFinding]:
    """Yield what the prompt does to the values of a group; none if it shows no argument of the call."""
    called, held, beside, text = _words(group)
    if text not in prompt:
        return  # arguments with nonces have the finding
    names = [held, beside, *(one.name for one in VALUES[group])]
    stops = sorted(at for name in names if (at := prompt.find(name)) >= 0)
    python = called_as_python(called, prompt)
    for one in VALUES[group]:
        if one.inner and held not in prompt:
            continue
        kind = _judge(one, prompt, stops, python=python)
        if kind is not None:
            yield WayInFinding(kind, one.field, (1,), group)


def _judge(one: Value, prompt: str, stops: list[int], *, python: bool) -> WayInKind | None:
    at = prompt.find(one.name)
    if at < 0:
        return WayInKind.LOST
    begin = at + len(one.name)
    stop = next((place for place in stops if place > at), begin + ROOM)
    written, (as_json, as_python) = prompt[begin:stop], SPELT[repr(one.value)]
    if AS_TEXT.match(written):
        return WayInKind.ALTERED
    if re.search(as_json, written):
        return None
    if as_python and re.search(as_python, written):
        return None if python else WayInKind.REPR
    if OTHER.match(written):
        return WayInKind.ALTERED
    return None if one.field is WayInField.EMPTY else WayInKind.LOST  # nothing between two tags is empty
