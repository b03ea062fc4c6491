"""A response template derived from a chat template: a parser as data, in the language of transformers.

transformers (5.13 and later) and vLLM's ``hf`` parsers read model output by ``response_template`` of the
tokenizer's configuration: fields with delimiters and one of a few readers of their content. Everything it
needs is learnt from the samples; the proof decides whether it is right.

Fields ``tool_calls`` of a response template, learnt from the rendered calls of a chat template.

Four encodings of arguments, each a rule about text and none about a family: one JSON value with the name in
it, one JSON value behind the name, a pair of tags around each argument, values in JSON's or Python's spelling
behind their keys. Each yields candidates; the proof chooses among them.

Delimiters of calls in a response template: the call's own, or the next call's opening.

The text around the parts of a call, learnt from renderings: sections, calls, names, arguments.

Everything follows from three texts: before the first part, between two parts, and behind the last. What the
first two end with opens a part; what the last two begin with closes one; the rest opens and closes the
section. No format is known by name.

Regular expressions of learnt text, in the syntax that Python's and Rust's engines share.

vLLM's Rust frontend compiles a response template with Rust's ``regex``: no look-around, no group twice, and
a delimiter must begin with literal text. A backslash before ``<`` is an anchor there, so only characters with
a meaning in both are escaped.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from importer.chat_template.cases import ANSWER, FOLLOW_UP, ONE, OTHER, QUESTION, REASONING, RESULT
from importer.chat_template.markers import SHAPE, Marks, common_prefix
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.frozen import frozen
from importer.hub.snapshot import listed

ANY_ID = "\ue000"  # in place of a call's id, or of a name that is repeated
ANY_NUMBER = "\ue001"  # in place of a count, such as a call's index
NAME = r"[\w.\-]+"
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
PIECE = re.compile(rf"(\s+)|([{ANY_ID}{ANY_NUMBER}])")
STRING = r'"(?:[^"\\]|\\.)*"'
DEPTH = 6  # levels of nested brackets; neither engine's syntax for recursion is shared


def escaped(text: str) -> str:
    """Return the expression of exactly this text."""
    return SPECIAL.sub(lambda m: "\\" + m[0], text).replace("\n", r"\n").replace("\t", r"\t")


def flexible(text: str) -> str:
    """Return the expression of learnt text: any white space where some stands, any id, any number."""
    return "".join(_pieces(text, r"\s*"))


def beside_value(text: str) -> str:
    """Return the expression of text that touches a value: its white space is optional, no other is taken."""
    return "".join(_pieces(text, None))


def _pieces(text: str, space: str | None) -> list[str]:
    written = []
    end = 0
    for match in PIECE.finditer(text):
        written.append(escaped(text[end : match.start()]))
        if match[1]:
            written.append(space or "".join(f"{escaped(c)}?" for c in match[1]))
        else:
            written.append(NAME if match[2] == ANY_ID else r"\d+")
        end = match.end()
    return [*written, escaped(text[end:])]


def optional(text: str) -> str:
    """Return the expression of learnt text that may be absent; empty for no text."""
    return f"(?:{flexible(text)})?" if text.strip() else ""


def json_value() -> str:
    """Return the expression of one JSON value, nested to a bounded depth."""
    nested = rf'[\[{{](?:[^\[\]{{}}"]|{STRING})*[\]}}]'
    for _ in range(DEPTH):
        nested = rf'[\[{{](?:[^\[\]{{}}"]|{STRING}|{nested})*[\]}}]'
    return rf'{STRING}|{nested}|[^\[\]{{}}",\s()]+'


IDS = re.compile(r"c4ll\d{5}")  # the ids of ``chat_template.cases``
NUMBER = re.compile(r"\d+")


@frozen
class Frame:
    """The text around the parts of a list: ``outer_open open PART close separator open PART close
    outer_close``.
    """

    outer_open: str = ""
    open: str = ""
    close: str = ""
    outer_close: str = ""
    separator: str = ""


def frame(before: str, between: str | None, behind: str, marks: Marks) -> Frame:
    """Return the frame of the parts; without two parts to compare, all of it belongs to the one."""
    if between is None:
        return Frame(open=before, close=behind)
    opens = marks.suffix(before, between)
    closes = between[: marks.prefix(between[: len(between) - len(opens)], behind)]
    return Frame(
        outer_open=before[: len(before) - len(opens)],
        open=opens,
        close=closes,
        outer_close=behind[len(closes) :],
        separator=between[len(closes) : len(between) - len(opens)],
    )


def general(text: str, *names: str) -> str:
    """Return learnt text without what another call would write otherwise: ids, counts, repeated names."""
    text = IDS.sub(ANY_ID, text)
    for name in names:
        text = text.replace(name, ANY_ID)
    written, end = [], 0
    for marker in SHAPE.finditer(text):
        written += [NUMBER.sub(ANY_NUMBER, text[end : marker.start()]), marker[0]]
        end = marker.end()
    return "".join([*written, NUMBER.sub(ANY_NUMBER, text[end:])])


@frozen
class Located:
    """One call in a completion: the places of its name, and of each key with its value."""

    text: str
    name: tuple[int, int]
    arguments: tuple[tuple[int, int, int, int], ...]

    @property
    def end(self) -> int:
        """Return the place behind the last value, without arguments behind the name."""
        return self.arguments[-1][3] if self.arguments else self.name[1]


def written_calls(sample: Sample) -> str:
    """Return the completion without the reasoning before the calls."""
    return sample.completion[sample.lead :]


def locate(text: str, name: str, values: Mapping[str, str], start: int = 0) -> Located | None:
    """Return the places of a call from ``start`` on; ``values`` maps each key to its written value.

    Of a name that is repeated, the last before the first key counts.
    """
    first = text.find(name, start)
    if first < 0:
        return None
    places: list[tuple[int, int, int, int]] = []
    at = first + len(name)
    for key, value in values.items():
        key_at = text.find(key, at)
        value_at = text.find(value, key_at + len(key)) if key_at >= 0 else -1
        if value_at < 0:
            return None
        places.append((key_at, key_at + len(key), value_at, value_at + len(value)))
        at = places[-1][3]
    last = text.rfind(name, first, places[0][0]) if places else first
    return Located(text, (last, last + len(name)), tuple(places))


Field = Mapping[str, object]
SECTION = "section"  # of a candidate: the marks around all calls, for the field of the answer


def delimited(around: Frame, head: str, body: Field) -> Iterator[Field]:
    """Yield the body with its delimiters: the call's own, else the next call's opening cut in two."""
    opening, close = around.open.lstrip(), around.close.lstrip()
    if close and opening:
        opened = _outer(around) + flexible(opening) + head
        ends = _marked(close) if body["content"] == "json" else flexible(close)
        yield {**_opened(opened), "close_pattern": ends + _apart(around), **body, **_silent(around)}
    elif close and around.outer_open.strip():
        either = "|".join(flexible(t.strip()) for t in (around.outer_open, around.separator) if t.strip())
        ends = rf"(?:\s*{flexible(around.outer_close.strip())})?" if around.outer_close.strip() else ""
        yield {**_opened(rf"(?:{either})\s*" + head), "close_pattern": flexible(close) + ends, **body}
    elif opening:
        yield from _cut(around, opening, head, body)


def _apart(around: Frame) -> str:
    """Return the expression of what parts two calls; in a stream one character alone is waited for."""
    text = around.separator.strip()
    return rf"(?:\s*{escaped(text)})?\s*" if len(text) == 1 else r"\s*"


def _silent(around: Frame) -> Field:
    """Return the marks of the section around calls, that belong to no call and to no answer."""
    texts = (around.outer_open.strip(), around.separator.strip(), around.outer_close.strip())
    literal = [t for t in texts if SHAPE.search(t) and not _varies(t)]
    return {SECTION: literal} if literal else {}


def _marked(close: str) -> str:
    """Return the expression of a call's end; text before its marker may be missing, as in a broken call."""
    marker = SHAPE.search(close)
    if marker is None or not close[: marker.start()].strip():
        return flexible(close)
    return rf"(?:{flexible(close[: marker.start()].rstrip())}\s*)?{flexible(close[marker.start() :])}"


def _cut(around: Frame, opening: str, head: str, body: Field) -> Iterator[Field]:
    """Yield the body where nothing closes a call but the next one: its marker is cut in two.

    The first half closes a call, the second half opens the next; a delimiter that consumes nothing is not in
    the language of both engines.
    """
    marker = SHAPE.search(opening)
    start, stop = marker.span() if marker else (0, len(opening.rstrip()))
    middle = (start + stop) // 2
    ends = [e for e in (opening[:middle].strip(), around.outer_close.strip()) if e]
    if middle - start < 2:
        yield {**_opened(_outer(around) + flexible(opening) + head), **body, **_silent(around)}
        return
    first = f"(?:{_outer(around)}{flexible(opening[:middle])})?"
    literal = not any(_varies(e) for e in ends)
    closes: Field = {"close": ends} if literal else {"close_pattern": "|".join(flexible(e) for e in ends)}
    yield {**_opened(first + flexible(opening[middle:]) + head), **closes, **body, **_silent(around)}


def ended_by_next(around: Frame, head: str, body: Field) -> Iterator[Field]:
    """Yield the body closed only where another call or the section's end follows, else by the text's end."""
    close, opening = around.close.lstrip(), around.open.lstrip()
    ends = [t.strip() for t in (around.separator, around.outer_close) if t.strip()]
    if not close or not opening:
        return
    opened = _opened(_outer(around) + flexible(opening) + head)
    if ends:
        after = "|".join(flexible(e) for e in ends)
        yield {**opened, "close_pattern": rf"{_spaced(close)}\s*(?:{after})\s*", **body}
    else:  # white space parts two calls, or nothing does; it never stands between brackets of one value
        apart = r"\s+" if around.separator else ""
        yield {**opened, **({"close_pattern": _spaced(close) + apart} if apart else {}), **body}


def _spaced(text: str) -> str:
    """Return the expression of brackets with any white space between them."""
    return r"\s*".join(escaped(c) for c in text if not c.isspace())


def _outer(around: Frame) -> str:
    """Return the expression of a section's opening without a marker, such as the bracket of a list."""
    text = around.outer_open.strip()
    if SHAPE.search(text) and not _varies(text):
        return ""
    return optional(text)[:-2] + r"\s*)?" if text else ""


def _opened(pattern: str) -> Field:
    return {"open_pattern": pattern}


def _varies(text: str) -> bool:
    """Return whether another call would write the text otherwise."""
    return ANY_ID in text or ANY_NUMBER in text


CALL: Field = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
KEY = r"(?P<key>[\w.\-]+)"
QUOTES = {'"': STRING, "'": r"'(?:[^'\\]|\\.)*'"}
TEXT = {"city": "Paris"}
PAIR = {"area": "harbour", "stars": "4"}
NUMBERS = {"count": "-3", "ratio": "0.25"}
MOST_OPENINGS = 32  # brackets at which a call's JSON value may begin; each is read to the text's end
DEEPEST = 8  # levels of a JSON value with the name or the arguments


@frozen
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


def learn_call_fields(samples: Sequence[Sample], marks: Marks) -> Iterator[Field]:
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
    body: dict[str, object] = {"content": "json", "transform": CALL}
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
    args: dict[str, object] = {"unquoted_keys": call.text[key_at - 1] != '"'}
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
    delimiters = {} if spelled.quote == '"' else {"string_delims": [[spelled.quote, spelled.quote]]}
    reader = {"name": "json", "args": {"allow_non_json": True, **delimiters}}
    pattern = flexible(tags.open.lstrip()) + KEY + spelled.lead + f"(?P<value>{value})"
    body = {
        "content": "xml-inline",
        "content_args": {"tag_pattern": pattern, "value_parser": reader},
        "transform": CALL,
    }
    head = f"(?P<name>{NAME})" + flexible(tags.outer_open.rstrip())
    yield from delimited(_with_close(whole, close), head, body)
    yield from ended_by_next(_with_close(whole, close), head, body)


@frozen
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


class ResponseTemplate(TypedDict):
    """A response template of transformers: the start of the model's turn, and a field for each part of it."""

    start_anchor: str | list[str]
    fields: Mapping[str, Field]


SPOKEN = (QUESTION, RESULT, FOLLOW_UP)  # the texts of others that a prompt can end with
ANSWERS = ("no-call", "answer-after-result", "plain", "thinking-off", "thinking-none")
LONGEST = 8  # candidates of one chat template
FEW = 32  # markers at the end of a head, at which an anchor may begin


def derive(analysis: TemplateAnalysis, declared: Sequence[str]) -> Iterator[ResponseTemplate]:
    """Yield candidates, the most literal first; ``declared`` are the tokens of the repository.

    A candidate without ``tool_calls`` or ``thinking`` has none to read. There is no candidate without the
    start of the model's turn.
    """
    marks = Marks(declared)
    anchors = start_anchors(analysis, marks)
    if not anchors:
        return
    anchor: str | list[str] = anchors[0] if len(anchors) == 1 else anchors
    for calls in [*learn_call_fields(analysis.samples, marks)][:LONGEST] or [{}]:
        sections = listed(calls.get(SECTION))
        fields: dict[str, Field] = {**_thinking(analysis), "content": _content(analysis, sections)}
        if calls:
            fields["tool_calls"] = _at_end({k: v for k, v in calls.items() if k != SECTION}, analysis)
        if set(fields) != {"content"}:
            yield ResponseTemplate(start_anchor=anchor, fields=fields)


def start_anchors(analysis: TemplateAnalysis, marks: Marks) -> list[str]:
    """Return the texts directly before the model's own: one, or one for each way that a turn begins."""
    opened = _content(analysis).get("open", "")
    opening = analysis.thinking.markers[0] if analysis.thinking.markers else ""
    starts = [m.strip() for m in (opening, str(opened)) if m.strip()]
    heads = dict.fromkeys(_head(s.prompt, starts) for s in analysis.samples)
    texts = [h for h in heads if h.strip()]
    if not texts:
        return []
    shared = texts[0]
    for text in texts[1:]:
        shared = marks.suffix(shared, text) if shared != text else shared
    ends = [text for s in analysis.samples for text in [s.prompt[_spoken(s.prompt) :]]]
    kinds = [shared] if len(shared.strip()) > 2 else texts
    return list(dict.fromkeys(_shortest(kind, ends) for kind in kinds))


def _spoken(prompt: str) -> int:
    """Return the place behind the last turn of another."""
    return max((at + len(text) for text in SPOKEN if (at := prompt.rfind(text)) >= 0), default=0)


def _head(prompt: str, starts: Sequence[str]) -> str:
    """Return the text between the last turn of another and the model's first own character."""
    rest = prompt[_spoken(prompt) :]
    cuts = [at for start in starts if (at := rest.find(start)) > 0]
    return rest[: min(cuts)].rstrip(" ") if cuts else rest


def _shortest(head: str, ends: Sequence[str]) -> str:
    """Return the shortest end of the head, from a marker on, that never occurs behind the head."""
    begins = [m.start() for m in SHAPE.finditer(head)] or [len(head) - len(head.lstrip("\n"))]
    behind = [end[end.find(head) + len(head) :] for end in ends if head in end]
    for start in reversed(begins[-FEW:]):
        anchor = head[start:]
        if not any(anchor in (anchor[1:] + rest) for rest in behind):
            return anchor
    return head[begins[-FEW:][0] :]


def _thinking(analysis: TemplateAnalysis) -> dict[str, Field]:
    if analysis.thinking.markers is None:
        return {}
    opening, closing = (m.strip() for m in analysis.thinking.markers)
    return {"thinking": {"open": opening, "close": closing}} if opening and closing else {}


def _content(analysis: TemplateAnalysis, sections: Sequence[str] = ()) -> Field:
    """Return the field of the answer: the rest of the text, or what stands between its own markers.

    ``sections`` are marks around all calls. They end the rest of the text, so that they are in no answer.
    """
    around = [_after_reasoning(s).partition(ANSWER) for s in analysis.samples if _answers(s)]
    reasoning = analysis.thinking.markers or ()
    befores = (_without(before, reasoning) for before, _, _ in around)
    opens = next((b for b in befores if b), _after_block(analysis))
    behind = next((b.strip() for _, _, b in around if b.strip()), "")
    silent = () if opens else sections
    ends = [e for e in dict.fromkeys((behind, analysis.end_of_turn.strip(), *silent)) if e]
    closes = {"close": ends if len(ends) > 1 else ends[0]} if ends else {}
    return {**({"open": opens} if opens else {}), **closes}


def _without(text: str, markers: Sequence[str]) -> str:
    for marker in markers:
        text = text.replace(marker.strip(), "")
    return text.strip()


def _answers(sample: Sample) -> bool:
    return sample.case in ANSWERS and ANSWER in sample.completion


def _after_block(analysis: TemplateAnalysis) -> str:
    """Return the marker that a template writes between reasoning and answer."""
    if analysis.thinking.markers is None:
        return ""
    behind = analysis.thinking.block[1].strip().removeprefix(analysis.thinking.markers[1].strip()).strip()
    return behind if SHAPE.search(behind) else ""


def _after_reasoning(sample: Sample) -> str:
    at = sample.completion.find(REASONING)
    return sample.completion[sample.lead :] if at < 0 else sample.completion[max(sample.lead, at) :]


def _at_end(calls: Field, analysis: TemplateAnalysis) -> Field:
    """Return the field with the end of the turn among its literal ends, for texts that still have it."""
    end = analysis.end_of_turn.strip()
    if not end or "close_pattern" in calls:
        return calls
    return {**calls, "close": [*listed(calls.get("close")), end]}
