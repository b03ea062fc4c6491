"""Fields ``tool_calls`` of a response template, learnt from the rendered calls of a chat template.

Four encodings of arguments, each a rule about text and none about a family: one JSON value with the name in
it, one JSON value behind the name, a pair of tags around each argument, values in JSON's or Python's spelling
behind their keys. Each yields candidates; the proof chooses among them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.chat_template.cases import ONE, OTHER
from importer.chat_template.markers import SHAPE, Marks, common_prefix
from importer.chat_template.samples import Sample
from importer.proof.delimiters import Field, delimited, ended_by_next
from importer.proof.frames import Frame, Located, frame, general, locate, written_calls
from importer.proof.wire_regex import NAME, STRING, beside_value, flexible, json_value

CALL: Field = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
KEY = r"(?P<key>[\w.\-]+)"
QUOTES = {'"': STRING, "'": r"'(?:[^'\\]|\\.)*'"}
TEXT = {"city": "Paris"}
PAIR = {"area": "harbour", "stars": "4"}
NUMBERS = {"count": "-3", "ratio": "0.25"}
MOST_OPENINGS = 32  # brackets at which a call's JSON value may begin; each is read to the text's end
DEEPEST = 8  # levels of a JSON value with the name or the arguments


@dataclass(frozen=True, slots=True)
class Calls:
    """The rendered calls to learn from: one call, the texts of two, and a call of two arguments."""

    one: Located
    first: Located | None
    second: Located | None
    numbers: Located | None
    marks: Marks

    @property
    def pair(self) -> Located | None:
        """Return a call with two arguments."""
        return self.second or self.numbers


def learn(samples: Sequence[Sample], marks: Marks) -> Iterator[Field]:
    """Yield candidate fields, the most literal first."""
    calls = _calls({s.case: s for s in samples}, marks)
    if calls is None:
        return
    seen = []
    for encoding in (_json_call, _json_arguments, _tagged, _spelled):
        for field in encoding(calls):
            if field not in seen:
                seen.append(field)
                yield {"repeats": True, **field}


def _calls(samples: Mapping[str, Sample], marks: Marks) -> Calls | None:
    if "one-call" not in samples:
        return None
    one = locate(written_calls(samples["one-call"]), ONE.name, TEXT)
    if one is None:
        return None
    first = second = numbers = None
    if "parallel" in samples:
        text = written_calls(samples["parallel"])
        first = locate(text, ONE.name, TEXT)
        second = None if first is None else locate(text, OTHER.name, PAIR, first.end)
    if "numbers" in samples:
        numbers = locate(written_calls(samples["numbers"]), "set_reading", NUMBERS)
    return Calls(one, first if second is not None else None, second, numbers, marks)


def _json_call(calls: Calls) -> Iterator[Field]:
    """Yield fields for one JSON value that holds name and arguments: an object, or a list of them."""
    one = _container(calls.one, 0, calls.one.name[0])
    if one is None:
        return
    start, stop, value = one
    item = value[0] if isinstance(value, list) else value
    name, arguments = _path(item, ONE.name), _path(item, dict(ONE.arguments))
    before, behind = calls.one.text[:start], calls.one.text[stop:]
    if name is None or arguments is None or not before.strip():
        return
    if isinstance(value, list):
        function = {"name": f"{{{name}}}", "arguments": f"{{{arguments}}}"}
        body: Field = {"content": "json", "transform": _called(function), "transform_each": True}
        whole = Frame(open=general(before), close=general(behind))
    else:
        function = {"name": f"{{content.{name}}}", "arguments": f"{{content.{arguments}}}"}
        body = {"content": "json", "transform": _called(function)}
        whole = _frame_of(calls, before, _between(calls), behind)
    yield from delimited(whole, "", body)


def _called(function: Field) -> Field:
    return {"type": "function", "function": function}


def _between(calls: Calls) -> str | None:
    """Return the text between the JSON values of two calls, where they have one each."""
    if calls.first is None or calls.second is None:
        return None
    first = _container(calls.first, 0, calls.first.name[0])
    second = _container(calls.second, calls.first.end, calls.second.name[0])
    if first is None or second is None or first[1] > second[0]:
        return None
    return calls.first.text[first[1] : second[0]]


def _container(call: Located, start: int, latest: int) -> tuple[int, int, Any] | None:
    """Return place and value of the outermost JSON value from ``start`` on that holds the call's values."""
    openings = re.compile(r"[{\[]").finditer(call.text, start, latest + 1)
    for at in (found.start() for found in itertools.islice(openings, MOST_OPENINGS)):
        try:
            value, stop = json.JSONDecoder(strict=False).raw_decode(call.text, at)
        except (ValueError, RecursionError):
            continue
        if stop >= call.end and value:
            return at, stop, value
    return None


def _path(value: Any, wanted: Any, levels: int = DEEPEST) -> str | None:
    """Return the keys to the wanted value in nested objects, with points between; JSON text counts too."""
    if not isinstance(value, Mapping) or not levels:
        return None
    for key, inner in value.items():
        if not key.isidentifier():
            continue
        if inner == wanted or (isinstance(wanted, dict) and inner == json.dumps(wanted)):
            return str(key)
        below = _path(inner, wanted, levels - 1)
        if below is not None:
            return f"{key}.{below}"
    return None


def _json_arguments(calls: Calls) -> Iterator[Field]:
    """Yield fields for a name, and behind it one JSON value with the arguments."""
    one = calls.one
    at = one.text.find("{", one.name[1])
    if not one.name[1] <= at < one.arguments[0][0]:
        return
    body: Field = {"content": "json", "transform": CALL}
    held = _container(one, at, at)
    if held is None:
        args = _dialect(one)
        if args is None:
            return
        body["content_args"] = args
        stop = _closed(one)
    else:
        stop = held[1]
    tail = one.text[one.end : stop]
    between = None
    if calls.first is not None and calls.second is not None:
        between = calls.first.text[calls.first.end : calls.second.name[0]]
        if not between.startswith(tail):
            return
        between = between[len(tail) :]
    head = f"(?P<name>{NAME})" + flexible(general(one.text[one.name[1] : at], ONE.name))
    around = _frame_of(calls, one.text[: one.name[0]], between, one.text[stop:])
    yield from delimited(around, head, body)


def _dialect(call: Located) -> Field | None:
    """Return the options of the JSON reader for bare keys and strings between marks of their own."""
    key_at, key_end, value_at, value_end = call.arguments[0]
    opening = call.text[key_end:value_at].lstrip(": ")
    closing = call.text[value_end : value_end + len(opening)]
    if not opening or call.text[_closed(call) - 1 : _closed(call)] != "}":
        return None
    args: Field = {"unquoted_keys": call.text[key_at - 1] != '"'}
    if opening != '"':
        args["string_delims"] = [[opening, closing]]
    return args


def _closed(call: Located) -> int:
    return call.text.find("}", call.end) + 1


def _tagged(calls: Calls) -> Iterator[Field]:
    """Yield fields for a pair of tags around each argument."""
    tags = _argument_frame(calls)
    spelled = _value_lead(calls)
    if spelled is None or spelled.quote or not (tags.close.strip() or tags.separator.strip()):
        return
    whole = _call_frame(calls)
    close = _behind(whole.close, tags.close)
    if close is None:
        return
    pattern = (
        beside_value(tags.open.lstrip()) + r"(?P<key>[^\s<>\"']+?)" + spelled.lead
        + "(?P<value>.*?)" + (beside_value(tags.close) or rf"(?:{flexible(tags.separator)}|$)")
    )  # fmt: skip
    body = {"content": "xml-inline", "content_args": {"tag_pattern": pattern}, "transform": CALL}
    head = f"(?P<name>{NAME})" + flexible(tags.outer_open.rstrip())
    yield from delimited(_with_close(whole, close), head, body)


def _spelled(calls: Calls) -> Iterator[Field]:
    """Yield fields for values in JSON's or Python's spelling behind their keys."""
    tags, spelled = _argument_frame(calls), _value_lead(calls)
    if spelled is None or spelled.quote not in QUOTES:
        return
    whole = _call_frame(calls)
    close = _behind(whole.close, spelled.quote)
    if close is None:
        return
    value = json_value() if spelled.quote == '"' else f"{QUOTES[spelled.quote]}|{json_value()}"
    reader: Field = {"name": "json", "args": {"allow_non_json": True}}
    if spelled.quote != '"':
        reader["args"]["string_delims"] = [[spelled.quote, spelled.quote]]
    pattern = flexible(tags.open.lstrip()) + KEY + spelled.lead + f"(?P<value>{value})"
    body = {
        "content": "xml-inline",
        "content_args": {"tag_pattern": pattern, "value_parser": reader},
        "transform": CALL,
    }
    head = f"(?P<name>{NAME})" + flexible(tags.outer_open.rstrip())
    yield from delimited(_with_close(whole, close), head, body)
    yield from ended_by_next(_with_close(whole, close), head, body)


@dataclass(frozen=True, slots=True)
class ValueLead:
    """The expression between a key and its value; ``quote`` stands around text but not around numbers."""

    lead: str
    quote: str = ""


def _value_lead(calls: Calls) -> ValueLead | None:
    one = calls.one
    _, key_end, value_at, value_end = one.arguments[0]
    text = general(one.text[key_end:value_at])
    number = _number_lead(calls)
    if number is None or number == text:
        quote = text[-1:] if text[-1:] in QUOTES and one.text[value_end] == text[-1] else ""
        if quote and number is None:
            return ValueLead(flexible(text[:-1]), quote)
        return ValueLead(beside_value(text))
    if text.startswith(number):
        quote = text[len(number) :]
        return ValueLead(flexible(number), quote) if one.text.startswith(quote, value_end) else None
    same = common_prefix(text, number)
    end = common_prefix(text[same:][::-1], number[same:][::-1])
    return ValueLead(flexible(text[:same]) + r"[\w.\-]*" + beside_value(text[len(text) - end :]))


def _number_lead(calls: Calls) -> str | None:
    for call, index in ((calls.numbers, 0), (calls.second, 1)):
        if call is not None:
            return general(call.text[call.arguments[index][1] : call.arguments[index][2]])
    return None


def _argument_frame(calls: Calls) -> Frame:
    """Return the frame of arguments within a call, from a call of two."""
    call = calls.numbers or calls.second
    if call is None:
        key = calls.one.arguments[0][0]
        before = calls.one.text[calls.one.name[1] : key]
        marker = max((m.start() for m in SHAPE.finditer(before)), default=len(before))
        return Frame(outer_open=before[:marker], open=before[marker:])
    (k1, k1_end, _, v1), (k2, k2_end, _, v2) = call.arguments[:2]
    first, second = call.text[k1:k1_end], call.text[k2:k2_end]
    name = call.text[call.name[0] : call.name[1]]
    return frame(
        general(call.text[call.name[1] : k1], name),
        general(call.text[v1:k2], first),
        general(call.text[v2:], second),
        calls.marks,
    )


def _call_frame(calls: Calls) -> Frame:
    """Return the frame of calls; the end of the last argument belongs to it."""
    one, key = calls.one, next(iter(TEXT))
    between = None
    if calls.first is not None and calls.second is not None:
        between = calls.first.text[calls.first.end : calls.second.name[0]]
    return _frame_of(calls, one.text[: one.name[0]], between, one.text[one.end :], key)


def _frame_of(calls: Calls, before: str, between: str | None, behind: str, *keys: str) -> Frame:
    names = (ONE.name, OTHER.name, *keys)
    return frame(
        general(before, *names),
        None if between is None else general(between, *names),
        general(behind, *names),
        calls.marks,
    )


def _behind(text: str, lead: str) -> str | None:
    return text[len(lead) :] if text.startswith(lead) else None


def _with_close(whole: Frame, close: str) -> Frame:
    return Frame(whole.outer_open, whole.open, close, whole.outer_close, whole.separator)
