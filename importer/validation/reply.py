"""One reply for every engine: deltas of content, reasoning and tool calls, assembled once.

A whole answer is one delta, a streamed one is many; both become the same ``Reply``. All input comes from
outside: a wrong format raises ReplyError and nothing else.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import chain
from typing import Any

from importer.engines.tokenizer import byte_of_character
from importer.frozen import frozen
from importer.hub.snapshot import listed
from importer.reasons import Reason, ReasonKind
from importer.validation.errors import AnswerFailure, ReplyError, StreamCut


class ReplyReason(ReasonKind):
    """Why an answer is not read."""

    NOT_UTF8 = "the stream is not UTF-8"
    GOES_ON = "the stream goes on after [DONE]"
    CUT = "the stream was cut before its end"
    TOO_LONG = "the texts of the answer have more than {limit:,} characters"
    NOT_JSON = "the engine sent what is not JSON: {start!r}"
    EVENTS_JOINED = "no empty line stands between the events of a stream"
    OF_ANOTHER_TYPE = "{part} is not {type}"
    NO_CHOICES = "what has no list of choices stands for an answer or a piece of one: {start}"
    NO_CHOICE = "the answer has no choice"
    CALL_NULLED = "a piece of a streamed call has null for {key!r}, which belongs left out"
    NAME_IN_PIECES = "the name {name!r} comes in {pieces} pieces, and clients read one"
    OTHER_ROLE = "the role of an answer is {role!r}"
    CALL_WITHOUT_INDEX = "a streamed tool call has no index"
    CALLS_MISCOUNTED = "streamed tool calls have the indexes {places}, and none is {missing}"


LONGEST = 65_536  # characters of all texts of an answer: 2,048 tokens of any model have fewer
DONE = "[DONE]"
NO_JSON = object()
SHOWN = 20  # indexes of calls in a reason
QUOTED = 80  # characters of what is no answer
OLD_FIELD = "function_call"  # of an answer, before tool_calls
SPACE = "\u2581"  # how sentencepiece vocabularies write it
BYTE_LEVEL = "\u0120\u010a"  # how byte-level vocabularies write a space and a newline


def event_texts(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each server-sent event; the borders of chunks make no difference.

    The WHATWG rules for lines (LF, CR, CRLF), comments and fields; only ``data`` is used. The end of the
    stream completes an event. Raises ReplyError for bytes that are not UTF-8.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    line: list[str] = []
    data: list[str] = []
    for chunk in chain(filter(None, chunks), (b"",)):
        try:
            text = decoder.decode(chunk) if chunk else decoder.decode(b"", final=True) + "\n\n"
        except UnicodeDecodeError:
            raise ReplyError(Reason(ReplyReason.NOT_UTF8)) from None
        piece, *further = text.split("\n")
        line.append(piece)
        for following in further:
            whole, line = "".join(line), [following]
            name, _, value = whole.partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif not whole and data:
                yield "\n".join(data)
                data = []


@frozen
class ToolCall:
    """A tool call; ``arguments`` is the JSON text as it arrived, never re-encoded."""

    index: int
    id: str
    name: str
    arguments: str


@frozen
class Usage:
    """Token counts of the engine; ``None`` where it reports none.

    ``uncounted``  it reports 0 tokens of a prompt: no prompt has none, so that is no count to compare.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    uncounted: bool = False

    @classmethod
    def of(cls, prompt: int | None, completion: int | None, cached: int | None) -> Usage:
        """Return the counts of an answer."""
        return cls(prompt or None, completion, cached, uncounted=prompt == 0)


@frozen
class Delta:
    """The content of one message or chunk."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    logprobs: tuple[Any, ...] = ()


@frozen
class Reply:
    """A chat completion.

    ``raw``     the JSON objects of the answer, one for a whole answer.
    ``behind``  the text after the same rendered prompt without a parser, where it was requested.
    ``ended``   whether the stream had its end marker.

    No judge sees longer texts than ``LONGEST``: ReplyError.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    logprobs: tuple[Any, ...] = ()
    raw: tuple[Mapping[str, object], ...] = field(default=(), compare=False, repr=False)
    behind: str = field(default="", compare=False, repr=False)
    ended: bool = field(default=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        texts = [self.content, self.reasoning, self.finish_reason or "", self.behind]
        texts += [text for call in self.tool_calls for text in (call.id, call.name, call.arguments)]
        tokens = (entry.get("token") for entry in self.logprobs if isinstance(entry, dict))
        texts += [token for token in tokens if isinstance(token, str)]
        if sum(map(len, texts)) > LONGEST:
            raise ReplyError(Reason(ReplyReason.TOO_LONG, limit=LONGEST))

    @property
    def nothing(self) -> bool:
        """Return whether the answer has no text, no call and no token: that of a failed request."""
        parts = self.content or self.reasoning or self.tool_calls or self.logprobs
        return not (parts or self.usage.prompt or self.usage.completion)

    @property
    def written(self) -> str:
        """Return the model's text before any parser: the tokens of its log-probabilities, else ``behind``."""
        spelled = any(
            c in str(e.get("token")) for e in self.logprobs if isinstance(e, dict) for c in BYTE_LEVEL
        )
        tokens = (_token(entry, spelled=spelled) for entry in self.logprobs)
        return b"".join(tokens).decode("utf-8", "replace") or self.behind

    @property
    def old_field(self) -> str | None:
        """Return the field of one call from before there were several, where the answer has it."""
        return OLD_FIELD if any(part.get(OLD_FIELD) for part in self.messages) else None

    @property
    def has_role(self) -> bool:
        """Return whether the answer has a role; clients make no message of one without."""
        return any(part.get("role") for part in self.messages)

    @property
    def choices(self) -> Iterator[Mapping[str, Any]]:
        """Yield the first choice in each object of the answer."""
        choices = (choice for data in self.raw for choice in listed(data.get("choices"))[:1])
        return (choice for choice in choices if isinstance(choice, Mapping))

    @property
    def messages(self) -> Iterator[Mapping[str, Any]]:
        """Yield the message, or the piece of one, in each choice."""
        parts = (choice.get(key) for choice in self.choices for key in ("message", "delta"))
        return (part for part in parts if isinstance(part, Mapping))


def from_whole(body: bytes) -> Reply:
    """Read an answer that came in one piece."""
    data = object_of(parsed(body), "the answer")
    return assemble([_delta(data, "message")], (data,))


def from_stream(chunks: Iterable[bytes]) -> Reply:
    """Read a streamed answer; the borders of its chunks make no difference."""
    deltas, raw, done = [], [], False
    for event in event_texts(chunks):
        if event.strip() == DONE:
            done = True
        elif done:
            raise ReplyError(Reason(ReplyReason.GOES_ON))
        else:
            data = object_of(parsed(event), "an event of the stream")
            raw.append(data)
            deltas.append(_delta(data, "delta"))
    reply = assemble(deltas, tuple(raw))
    if not done and reply.finish_reason is None:
        raise StreamCut(Reason(ReplyReason.CUT))
    places = [call.index for call in reply.tool_calls]
    missing = next((n for n, place in enumerate(places) if n != place), None)
    if missing is not None:  # clients keep calls in a list by that number
        raise ReplyError(Reason(ReplyReason.CALLS_MISCOUNTED, missing=missing, places=places[:SHOWN]))
    named = [part.index for delta in deltas for part in delta.tool_calls if part.name]
    for call in reply.tool_calls:
        if (pieces := named.count(call.index)) > 1:
            raise ReplyError(Reason(ReplyReason.NAME_IN_PIECES, name=call.name[:QUOTED], pieces=pieces))
    return replace(reply, ended=done)


def from_completion(body: bytes) -> Reply:
    """Read a plain completion: its text is the content."""
    data = object_of(parsed(body), "the answer")
    choice, usage = _choice(data)
    if choice is None:
        raise ReplyError(Reason(ReplyReason.NO_CHOICE))
    finish = text_field(choice, "finish_reason") or None
    logprobs = _logprobs(choice.get("logprobs"))
    return assemble([Delta(text_field(choice, "text"), "", (), finish, usage, logprobs)], (data,))


def assemble(deltas: Iterable[Delta], raw: tuple[Mapping[str, object], ...] = ()) -> Reply:
    """Return the reply of the deltas; parts of a tool call are joined as in the client of OpenAI."""
    content: list[str] = []
    reasoning: list[str] = []
    logprobs: list[Any] = []
    calls: dict[int, list[ToolCall]] = {}
    finish: str | None = None
    usage = Usage()
    for delta in deltas:
        content.append(delta.content)
        reasoning.append(delta.reasoning)
        logprobs.extend(delta.logprobs)
        finish = delta.finish_reason or finish
        usage = delta.usage or usage
        for part in delta.tool_calls:
            calls.setdefault(part.index, []).append(part)
    ordered = tuple(_whole(index, calls[index]) for index in sorted(calls))
    return Reply("".join(content), "".join(reasoning), ordered, finish, usage, tuple(logprobs), raw)


def _whole(index: int, parts: list[ToolCall]) -> ToolCall:
    ids, names, arguments = zip(*((p.id, p.name, p.arguments) for p in parts), strict=True)
    return ToolCall(index, "".join(ids), "".join(names), "".join(arguments))


def parsed(text: bytes | str) -> Any:
    """Return the JSON of an answer or an event; raises ReplyError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        if joined(text):
            raise ReplyError(Reason(ReplyReason.EVENTS_JOINED)) from None
        start = text[:QUOTED] if isinstance(text, str) else text[:QUOTED].decode("utf-8", "replace")
        raise ReplyError(Reason(ReplyReason.NOT_JSON, start=start)) from None


def joined(text: bytes | str) -> bool:
    """Return whether each of several lines is JSON by itself: no empty line stands between events."""
    try:
        return len([json.loads(line) for line in text.splitlines() if line.strip() != DONE]) > 1
    except (ValueError, RecursionError):
        return False


def loaded(text: bytes | str, otherwise: Any = None) -> Any:
    """Return the JSON of a text, ``otherwise`` where it is none; ``NO_JSON`` tells that from null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def holds_object(text: str) -> bool:
    """Return whether a text is a JSON object, as the arguments of a call are."""
    return isinstance(loaded(text), dict)


def not_of(part: str, of_type: str) -> ReplyError:
    """Return the failure of a part of an answer that has another type."""
    return ReplyError(Reason(ReplyReason.OF_ANOTHER_TYPE, part=part, type=of_type))


def object_of(value: Any, what: str) -> Mapping[str, object]:
    """Return a JSON object; raises ReplyError, which names the part ``what``."""
    if not isinstance(value, dict):
        raise not_of(what, "an object")
    return value


def _choice(data: Mapping[str, object]) -> tuple[Mapping[str, object] | None, Usage | None]:
    """Return the first choice, if there is one, and the usage."""
    if data.get("error"):
        raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(data)))
    choices = data.get("choices")
    if not isinstance(choices, list):
        raise ReplyError(Reason(ReplyReason.NO_CHOICES, start=json.dumps(data)[:QUOTED]))
    return object_of(choices[0], "the choice") if choices else None, _usage(data.get("usage"))


def _delta(data: Mapping[str, object], key: str) -> Delta:
    choice, usage = _choice(data)
    if choice is None:  # the last chunk of a stream carries usage alone
        if key == "message":
            raise ReplyError(Reason(ReplyReason.NO_CHOICE))
        return Delta(usage=usage)
    message = object_of(choice.get(key) or {}, f"the {key}")
    if (role := text_field(message, "role")) not in ("", "assistant"):
        raise ReplyError(Reason(ReplyReason.OTHER_ROLE, role=role[:QUOTED]))
    return Delta(
        content=text_field(message, "content"),
        # vLLM and mlx-lm send `reasoning`, others `reasoning_content`, some both alike
        reasoning=text_field(message, "reasoning") or text_field(message, "reasoning_content"),
        tool_calls=_calls(message.get("tool_calls"), streamed=key == "delta"),
        finish_reason=text_field(choice, "finish_reason") or None,
        usage=usage,
        logprobs=_logprobs(choice.get("logprobs")),
    )


def text_field(holder: Mapping[str, object], key: str) -> str:
    """Return a text, empty where there is none; raises ReplyError for any other value."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise not_of(f"`{key}`", "text")
    return value


def _calls(value: Any, *, streamed: bool) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise not_of("`tool_calls`", "a list")
    return tuple(_call(object_of(v, "a tool call"), None if streamed else i) for i, v in enumerate(value))


def _call(value: Mapping[str, object], position: int | None) -> ToolCall:
    index = value.get("index") if position is None else position
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise ReplyError(Reason(ReplyReason.CALL_WITHOUT_INDEX))
    function = object_of(value.get("function") or {}, "a tool call's function")
    if position is None and (nulled := _nulled(value, function)) is not None:
        raise ReplyError(Reason(ReplyReason.CALL_NULLED, key=nulled))
    return ToolCall(
        index, text_field(value, "id"), text_field(function, "name"), text_field(function, "arguments")
    )


def _nulled(value: Mapping[str, object], function: Mapping[str, object]) -> str | None:
    """Return what a piece of a call sets to null, in place of leaving it out: clients take it for a value."""
    of = ((value, "id"), (function, "name"), (function, "arguments"))
    return next((key for holder, key in of if key in holder and holder[key] is None), None)


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    usage = object_of(value, "`usage`")
    details = object_of(usage.get("prompt_tokens_details") or {}, "`prompt_tokens_details`")
    return Usage.of(
        count_field(usage, "prompt_tokens"),
        count_field(usage, "completion_tokens"),
        count_field(details, "cached_tokens"),
    )


def count_field(holder: Mapping[str, object], key: str) -> int | None:
    """Return a number of tokens; raises ReplyError for any other value."""
    value = holder.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise not_of(f"`{key}`", "a number of tokens")
    return value


def _logprobs(value: Any) -> tuple[Any, ...]:
    content = object_of(value, "`logprobs`").get("content") if value is not None else None
    if content is not None and not isinstance(content, list):
        raise not_of("`logprobs.content`", "a list")
    return tuple(content or ())


def _token(entry: Any, *, spelled: bool) -> bytes:
    """Return the bytes of a token, or its text; ``spelled`` for the alphabet of byte-level vocabularies."""
    if not isinstance(entry, dict):
        return b""
    data, token = _bytes(entry), entry.get("token")
    if data is not None and other_bytes(entry) is None:
        return data
    if not isinstance(token, str):
        return b""
    alphabet = byte_of_character()
    if spelled and all(c in alphabet for c in token):
        return bytes(alphabet[c] for c in token)
    return token.replace(SPACE, " ").encode("utf-8", "replace")


def _bytes(entry: Mapping[str, object]) -> bytes | None:
    data = entry.get("bytes")
    inside = isinstance(data, list) and all(isinstance(b, int) and 0 <= b < 256 for b in data)
    return bytes(data) if inside and isinstance(data, list) else None


def other_bytes(entry: Mapping[str, object]) -> str | None:
    """Return the text of the bytes of a token whose own text is other words; letters and signs of ASCII tell.

    A part of a letter has no text, and vocabularies spell a space in ways of their own.
    """
    data, token = _bytes(entry), entry.get("token")
    if data is None or not isinstance(token, str) or not token.isascii() or not token.strip():
        return None
    text = data.decode("utf-8", "replace")
    spelled = token.startswith("bytes:") or "\\" in token or text.strip() == token.strip()
    return None if spelled else text


def error_message(data: Any) -> str:
    """Return the message of an error body of any usual shape, cut to 300 characters."""
    if isinstance(data, dict):
        inner = data.get("error", data.get("message", data.get("detail", data)))
        data = inner.get("message", inner) if isinstance(inner, dict) else inner
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return " ".join(text.split())[:300]
