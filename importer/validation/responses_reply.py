"""OpenAI's responses: the reader of whole and streamed answers into the same ``Reply`` as a chat's.

A stream is held to its own rules: numbered events in their order, items that open and close, pieces that add
up to the item, and the whole response at its end. A break of them raises ReplyError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.errors import AnswerFailure, ReplyError
from importer.validation.reply import (
    DONE,
    Delta,
    EventParser,
    Reply,
    ToolCall,
    Usage,
    assemble,
    count_field,
    error_message,
    object_of,
    parsed,
    text_field,
)


class ResponsesReason(ReasonKind):
    """How an answer breaks the format."""

    NOT_A_RESPONSE = "not-a-response", "the answer is no response: {words}"
    NO_OUTPUT = "no-output", "the response has no list of items, or an item no list of parts"
    NO_ITEM_ID = "no-item-id", "an item of the output has no id: {item}"
    EVENT_NAME = "event-name", "an event's name is not its type"
    NOT_BEGUN = "not-begun", "the stream begins with {event}, not with response.created"
    NOT_ENDED = "not-ended", "the stream ended without response.completed"
    GOES_ON = "goes-on", "{event} came after the end of the response"
    WRONG_NUMBER = "wrong-number", "an event has the sequence number {number}, and the one before it {before}"
    OTHER_RESPONSE = "other-response", "{event} names another response"
    WRONG_INDEX = "wrong-index", "an item has the output_index {index!r}, not {expected}"
    OTHER_ITEM = "other-item", "{event} names another item than its output_index"
    ITEM_CLOSED = "item-closed", "{event} came after the end of its item"
    ITEM_OPEN = "item-open", "the response ended before its item {index}"
    PIECES_DIFFER = "pieces-differ", "the pieces before {event} do not add up to it"
    END_DIFFERS = "end-differs", "the {part} of the whole response at the end is not what was streamed"
    UNNUMBERED = "unnumbered", "no event has a sequence number"


NUMBER = "sequence_number"
ENDS = ("response.completed", "response.incomplete")
BROKEN = ("error", "response.failed")
CUT = {"max_output_tokens": "length"}
# The events with a piece of text, the whole text after them, and the field of that text.
PIECES = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
}
TEXTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}


def from_response(body: bytes) -> Reply:
    """Read an answer that came in one piece; raises ReplyError."""
    return _reply(object_of(parsed(body), "the answer"))


def from_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its events break the rules of the format."""
    parser = EventParser()
    texts = [text for text in (*parser.feed(body), *parser.close()) if text.strip() != DONE]
    events = [object_of(parsed(text), "an event of the stream") for text in texts]
    names = [name.decode("utf-8", "replace") for name in re.findall(rb"(?m)^event: ?(.*?)\r?$", body)]
    if names and names != [event.get("type") for event in events]:
        raise ReplyError(Reason(ResponsesReason.EVENT_NAME))
    stream = _Stream()
    for event in events:
        stream.take(event)
    return stream.reply(tuple(events))


def numbered(reply: Reply) -> bool:
    """Return whether the events of a streamed answer have numbers."""
    return any(NUMBER in event for event in reply.raw)


@dataclass(slots=True)
class _Item:
    """An item of the output, from ``response.output_item.added`` on; ``pieces`` by event and part."""

    id: str
    delta: Delta
    pieces: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    open: bool = True

    def text(self, *events: str) -> str:
        """Return the joined pieces of these events."""
        return "".join(text for (event, _), texts in self.pieces.items() if event in events for text in texts)

    @property
    def streamed(self) -> Delta:
        """Return the item as its pieces make it; a call has the name and the id of its beginning."""
        arguments = self.text("response.function_call_arguments")
        calls = tuple(
            ToolCall(call.index, call.id, call.name, call.arguments + arguments)
            for call in self.delta.tool_calls
        )
        return Delta(
            self.text("response.output_text", "response.refusal"),
            self.text("response.reasoning_text") or self.text("response.reasoning_summary_text"),
            calls,
        )


@dataclass(slots=True)
class _Stream:
    """The position in a stream: its response, its items, and the response at its end."""

    id: str = ""
    last: Mapping[str, Any] | None = None
    items: list[_Item] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    calls: int = 0
    end: Mapping[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event; those of unknown types have a number only."""
        kind = text_field(event, "type")
        if kind in BROKEN:
            raise ReplyError(
                Reason(AnswerFailure.REPORTS_ERROR, says=error_message(event.get("response", event)))
            )
        if self.end is not None:
            raise ReplyError(Reason(ResponsesReason.GOES_ON, event=kind))
        if self.last is None and kind != "response.created":
            raise ReplyError(Reason(ResponsesReason.NOT_BEGUN, event=kind))
        self._number(event)
        stem, _, step = kind.rpartition(".")
        if kind == "response.output_item.added":
            self._open(event)
        elif kind == "response.output_item.done":
            self._close(event)
        elif stem in PIECES and step in ("delta", "done"):
            self._piece(event, stem, step)
        elif "response" in event:
            self._response(event, kind)

    def reply(self, events: tuple[Mapping[str, Any], ...]) -> Reply:
        """Return the reply that the pieces make; raises ReplyError where the response at the end differs."""
        if self.end is None:
            raise ReplyError(Reason(ResponsesReason.NOT_ENDED))
        whole = _reply(self.end)
        made = assemble([*(item.streamed for item in self.items), _ending(self.end)], events)
        for part in ("content", "reasoning", "tool_calls"):
            if getattr(whole, part) != getattr(made, part):
                raise ReplyError(Reason(ResponsesReason.END_DIFFERS, part=part.replace("_", " ")))
        return made

    def _number(self, event: Mapping[str, Any]) -> None:
        """Compare the number with that of the event before; an engine may number no event at all."""
        number = count_field(event, NUMBER)
        before = None if self.last is None else count_field(self.last, NUMBER)
        if self.last is not None and number != (None if before is None else before + 1):
            raise ReplyError(Reason(ResponsesReason.WRONG_NUMBER, number=number, before=before))
        self.last = event

    def _response(self, event: Mapping[str, Any], kind: str) -> None:
        response = object_of(event["response"], "`response`")
        found = text_field(response, "id")
        if not found or (self.id and found != self.id):
            raise ReplyError(Reason(ResponsesReason.OTHER_RESPONSE, event=kind))
        self.id = found
        if kind in ENDS:
            for number, item in enumerate(self.items):
                if item.open:
                    raise ReplyError(Reason(ResponsesReason.ITEM_OPEN, index=number))
            self.end = response

    def _open(self, event: Mapping[str, Any]) -> None:
        if event.get("output_index") != len(self.items):
            index = event.get("output_index")
            raise ReplyError(Reason(ResponsesReason.WRONG_INDEX, index=index, expected=len(self.items)))
        value = object_of(event.get("item"), "an item of the output")
        item = _Item(_item_id(value), _item(value, self.calls))
        if item.id in self.ids:
            raise ReplyError(Reason(ResponsesReason.OTHER_ITEM, event=event["type"]))
        self.ids.add(item.id)
        self.calls += len(item.delta.tool_calls)
        self.items.append(item)

    def _close(self, event: Mapping[str, Any]) -> None:
        value = object_of(event.get("item"), "an item of the output")
        item = self._item(event, _item_id(value))
        item.open = False
        call = item.delta.tool_calls
        if _item(value, call[0].index if call else 0) != item.streamed:
            raise ReplyError(Reason(ResponsesReason.PIECES_DIFFER, event=event["type"]))

    def _piece(self, event: Mapping[str, Any], stem: str, step: str) -> None:
        item = self._item(event, text_field(event, "item_id"))
        place = stem, str(event.get("content_index", event.get("summary_index")))
        if step == "delta":
            item.pieces.setdefault(place, []).append(text_field(event, "delta"))
            return
        begun = item.delta.tool_calls[0].arguments if item.delta.tool_calls else ""
        if begun + "".join(item.pieces.get(place, ())) != text_field(event, PIECES[stem]):
            raise ReplyError(Reason(ResponsesReason.PIECES_DIFFER, event=event["type"]))

    def _item(self, event: Mapping[str, Any], named: str) -> _Item:
        """Return the open item of an event; its place and its id must name the same one."""
        index = event.get("output_index")
        if not isinstance(index, int) or not 0 <= index < len(self.items):
            raise ReplyError(Reason(ResponsesReason.WRONG_INDEX, index=index, expected=len(self.items) - 1))
        item = self.items[index]
        if item.id != named:
            raise ReplyError(Reason(ResponsesReason.OTHER_ITEM, event=event["type"]))
        if not item.open:
            raise ReplyError(Reason(ResponsesReason.ITEM_CLOSED, event=event["type"]))
        return item


def _reply(data: Mapping[str, Any]) -> Reply:
    """Return the reply of a whole response."""
    if data.get("error"):
        raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(data)))
    if data.get("object") != "response":
        raise ReplyError(Reason(ResponsesReason.NOT_A_RESPONSE, words=error_message(data)))
    return assemble([*_items(data), _ending(data)], (data,))


def _items(data: Mapping[str, Any]) -> Iterator[Delta]:
    output, calls = data.get("output"), 0
    if not isinstance(output, list):
        raise ReplyError(Reason(ResponsesReason.NO_OUTPUT))
    for value in output:
        item = object_of(value, "an item of the output")
        _item_id(item)
        delta = _item(item, calls)
        calls += len(delta.tool_calls)
        yield delta


def _item(item: Mapping[str, Any], calls: int) -> Delta:
    """Return an item as a delta; ``calls`` stand before it. Other kinds of items have no part of a reply."""
    kind = item.get("type")
    if kind == "function_call":
        named = (text_field(item, key) for key in ("call_id", "name", "arguments"))
        return Delta(tool_calls=(ToolCall(calls, *named),))
    if kind == "reasoning":
        return Delta(reasoning=_texts(item, "content") or _texts(item, "summary"))
    return Delta(_texts(item, "content")) if kind == "message" else Delta()


def _texts(item: Mapping[str, Any], key: str) -> str:
    """Return the texts of the parts of an item."""
    parts = item.get(key) or ()
    if not isinstance(parts, list | tuple):
        raise ReplyError(Reason(ResponsesReason.NO_OUTPUT))
    found = (object_of(part, "a part of an item") for part in parts)
    return "".join(
        text_field(part, TEXTS[kind]) for part in found if (kind := str(part.get("type"))) in TEXTS
    )


def _item_id(item: Mapping[str, Any]) -> str:
    named = text_field(item, "id")
    if not named:
        raise ReplyError(Reason(ResponsesReason.NO_ITEM_ID, item=str(item.get("type"))))
    return named


def _ending(data: Mapping[str, Any]) -> Delta:
    """Return why a response ended, in the words of the chat, and its counts of tokens."""
    details = object_of(data.get("incomplete_details") or {}, "`incomplete_details`")
    called = any(item.get("type") == "function_call" for item in data.get("output") or ())
    status = text_field(data, "status")
    if status == "completed":
        finish = "tool_calls" if called else "stop"
    else:
        finish = CUT.get(text_field(details, "reason"), status)
    return Delta(finish_reason=finish, usage=_usage(data.get("usage")))


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    usage = object_of(value, "`usage`")
    details = object_of(usage.get("input_tokens_details") or {}, "`input_tokens_details`")
    prompt, completion = (count_field(usage, key) for key in ("input_tokens", "output_tokens"))
    return Usage(prompt, completion, count_field(details, "cached_tokens"))
