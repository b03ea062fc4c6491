"""The other APIs of one server: Anthropic's messages and OpenAI's responses, read into the same ``Reply``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from importer.hub.snapshot import listed, text
from importer.reasons import Reason, ReasonKind
from importer.validation.context import STEADY, TRIALS, WAYS, Context, together
from importer.validation.errors import AnswerFailure, ReplyError
from importer.validation.expectations import CommonReason, Expectations, no_chat
from importer.validation.mutations import told
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, Stage, failing
from importer.validation.prompts import Message, Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import (
    DONE,
    Delta,
    EventParser,
    Reply,
    ReplyReason,
    ToolCall,
    Usage,
    assemble,
    count_field,
    error_message,
    object_of,
    parsed,
    text_field,
)


class FormatReason(ReasonKind):
    """How an answer breaks the format of its API."""

    NOT_OF_FORMAT = "not-of-format", "the answer is not of this API: {words}"
    EVENT_NAME = "event-name", "an event's name is not its type, and clients go by it"
    ORDER = "order", "{event} came at the wrong place of the stream"
    UNENDED = "unended", "the stream ended before all of it was closed"
    WRONG_NUMBER = "wrong-number", "an event has the sequence number {number}, and the one before it {before}"
    OTHER_ITEM = "other-item", "{event} names another response, or another item than the one at its place"
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


def from_response_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its events break the rules of the format."""
    parser = EventParser()
    texts = [text for text in (*parser.feed(body), *parser.close()) if text.strip() != DONE]
    events = [object_of(parsed(text), "an event of the stream") for text in texts]
    names = [name.decode("utf-8", "replace") for name in re.findall(rb"(?m)^event: ?(.*?)\r?$", body)]
    if names and names != [event.get("type") for event in events]:
        raise ReplyError(Reason(FormatReason.EVENT_NAME))
    stream = _ResponseStream()
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
class _ResponseStream:
    """The position in a stream: its response, its items, and the response at its end."""

    id: str = ""
    last: Mapping[str, object] | None = None
    items: list[_Item] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    calls: int = 0
    end: Mapping[str, object] | None = None

    def take(self, event: Mapping[str, object]) -> None:
        """Take the next event; those of unknown types have a number only."""
        kind = text_field(event, "type")
        if kind in BROKEN:
            raise ReplyError(
                Reason(AnswerFailure.REPORTS_ERROR, says=error_message(event.get("response", event)))
            )
        if self.end is not None:
            raise ReplyError(Reason(FormatReason.ORDER, event=kind))
        if self.last is None and kind != "response.created":
            raise ReplyError(Reason(FormatReason.ORDER, event=kind))
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

    def reply(self, events: tuple[Mapping[str, object], ...]) -> Reply:
        """Return the reply that the pieces make; raises ReplyError where the response at the end differs."""
        if self.end is None:
            raise ReplyError(Reason(FormatReason.UNENDED))
        whole = _reply(self.end)
        made = assemble([*(item.streamed for item in self.items), _ending(self.end)], events)
        for part in ("content", "reasoning", "tool_calls"):
            if getattr(whole, part) != getattr(made, part):
                raise ReplyError(Reason(FormatReason.END_DIFFERS, part=part.replace("_", " ")))
        return made

    def _number(self, event: Mapping[str, object]) -> None:
        """Compare the number with that of the event before; an engine may number no event at all."""
        number = count_field(event, NUMBER)
        before = None if self.last is None else count_field(self.last, NUMBER)
        if self.last is not None and number != (None if before is None else before + 1):
            raise ReplyError(Reason(FormatReason.WRONG_NUMBER, number=number, before=before))
        self.last = event

    def _response(self, event: Mapping[str, object], kind: str) -> None:
        response = object_of(event["response"], "`response`")
        found = text_field(response, "id")
        if not found or (self.id and found != self.id):
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=kind))
        self.id = found
        if kind in ENDS:
            if any(item.open for item in self.items):
                raise ReplyError(Reason(FormatReason.UNENDED))
            self.end = response

    def _open(self, event: Mapping[str, object]) -> None:
        value = object_of(event.get("item"), "an item of the output")
        item = _Item(_item_id(value), _item(value, self.calls))
        if event.get("output_index") != len(self.items) or item.id in self.ids:
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=event["type"]))
        self.ids.add(item.id)
        self.calls += len(item.delta.tool_calls)
        self.items.append(item)

    def _close(self, event: Mapping[str, object]) -> None:
        value = object_of(event.get("item"), "an item of the output")
        item = self._item(event, _item_id(value))
        item.open = False
        call = item.delta.tool_calls
        if _item(value, call[0].index if call else 0) != item.streamed:
            raise ReplyError(Reason(FormatReason.PIECES_DIFFER, event=event["type"]))

    def _piece(self, event: Mapping[str, object], stem: str, step: str) -> None:
        item = self._item(event, text_field(event, "item_id"))
        place = stem, str(event.get("content_index", event.get("summary_index")))
        if step == "delta":
            item.pieces.setdefault(place, []).append(text_field(event, "delta"))
            return
        begun = item.delta.tool_calls[0].arguments if item.delta.tool_calls else ""
        if begun + "".join(item.pieces.get(place, ())) != text_field(event, PIECES[stem]):
            raise ReplyError(Reason(FormatReason.PIECES_DIFFER, event=event["type"]))

    def _item(self, event: Mapping[str, object], named: str) -> _Item:
        """Return the open item of an event; its place and its id must name the same one."""
        index = event.get("output_index")
        if not isinstance(index, int) or not 0 <= index < len(self.items):
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=event["type"]))
        item = self.items[index]
        if item.id != named:
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=event["type"]))
        if not item.open:
            raise ReplyError(Reason(FormatReason.ORDER, event=event["type"]))
        return item


def _reply(data: Mapping[str, object]) -> Reply:
    """Return the reply of a whole response."""
    if data.get("error"):
        raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(data)))
    if data.get("object") != "response":
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=error_message(data)))
    return assemble([*_response_items(data), _ending(data)], (data,))


def _response_items(data: Mapping[str, object]) -> Iterator[Delta]:
    output, calls = data.get("output"), 0
    if not isinstance(output, list):
        raise ReplyError(Reason(ReplyReason.NOT_LIST, key="output"))
    for value in output:
        item = object_of(value, "an item of the output")
        _item_id(item)
        delta = _item(item, calls)
        calls += len(delta.tool_calls)
        yield delta


def _item(item: Mapping[str, object], calls: int) -> Delta:
    """Return an item as a delta; ``calls`` stand before it. Other kinds of items have no part of a reply."""
    kind = item.get("type")
    if kind == "function_call":
        named = (text_field(item, key) for key in ("call_id", "name", "arguments"))
        return Delta(tool_calls=(ToolCall(calls, *named),))
    if kind == "reasoning":
        return Delta(reasoning=_texts(item, "content") or _texts(item, "summary"))
    return Delta(_texts(item, "content")) if kind == "message" else Delta()


def _texts(item: Mapping[str, object], key: str) -> str:
    """Return the texts of the parts of an item."""
    parts = item.get(key) or ()
    if not isinstance(parts, list | tuple):
        raise ReplyError(Reason(ReplyReason.NOT_LIST, key="output"))
    found = (object_of(part, "a part of an item") for part in parts)
    return "".join(
        text_field(part, TEXTS[kind]) for part in found if (kind := str(part.get("type"))) in TEXTS
    )


def _item_id(item: Mapping[str, object]) -> str:
    named = text_field(item, "id")
    if not named:
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=f"{item.get('type')} without id"))
    return named


def _ending(data: Mapping[str, object]) -> Delta:
    """Return why a response ended, in the words of the chat, and its counts of tokens."""
    details = object_of(data.get("incomplete_details") or {}, "`incomplete_details`")
    called = any(item.get("type") == "function_call" for item in listed(data.get("output")))
    status = text_field(data, "status")
    if status == "completed":
        finish = "tool_calls" if called else "stop"
    else:
        finish = CUT.get(text_field(details, "reason"), status)
    return Delta(finish_reason=finish, usage=_response_usage(data.get("usage")))


def _response_usage(value: Any) -> Usage | None:
    if value is None:
        return None
    usage = object_of(value, "`usage`")
    details = object_of(usage.get("input_tokens_details") or {}, "`input_tokens_details`")
    prompt, completion = (count_field(usage, key) for key in ("input_tokens", "output_tokens"))
    return Usage.of(prompt, completion, count_field(details, "cached_tokens"))


CHAT_INSTEAD = Reason(Remedy.CHAT_INSTEAD)
Ask = Callable[[bool], Reply]  # of a streamed answer or a whole one; raises ExchangeError
Judge = Callable[[Reply], Outcome]
REPEATS = 2  # of two answers that differ


def judged_beside(
    ctx: Context, prompt: Prompt, ask: Ask, judge: Judge, ways: Mapping[str, bool] = WAYS
) -> Outcome:
    """Judge the whole and the streamed answer; the engine is at fault where the same chat is judged right."""
    outcome = together({way: _tried(ask, judge, stream=stream) for way, stream in ways.items()})
    if isinstance(outcome, Pass):
        return outcome
    # An answer without chance is the same here; else the chat has to be right as often as this one was asked.
    times = 0 if ctx.promise.greedy or isinstance(outcome, Fail) else TRIALS
    chats = (ctx.first(prompt), *(ctx.ask(prompt) for _ in range(times)))
    if isinstance(outcome, Fail | Inconclusive) and all(isinstance(judge(chat), Pass) for chat in chats):
        return failing(outcome, Stage.WHOLE, CHAT_INSTEAD, Reason(CommonReason.CHAT_IS_RIGHT))
    return outcome


def compared(ctx: Context, prompt: Prompt, ask: Callable[..., Reply]) -> Outcome | None:
    """Return the fault of counts, or of a stream that is not the whole; ``None`` where both are in order.

    Both are asked for without chance, and again where they differ: a fault of the path repeats itself.
    """
    replies = [ask(ctx, prompt, stream=stream, **STEADY) for stream in WAYS.values()]
    counts = ctx.first(prompt).usage.prompt is not None
    if counts and any(reply.usage.uncounted for reply in replies):
        return Fail(Reason(CommonReason.NO_PROMPT_COUNTED), Stage.WHOLE, CHAT_INSTEAD)
    for _ in range(REPEATS):
        whole, streamed = replies
        change = told(whole, streamed)
        if change is None or len(whole.raw) > 1:
            return None
        replies = [ask(ctx, prompt, stream=stream, **STEADY) for stream in WAYS.values()]
    if replies[0] != whole:
        return None
    remedy = Reason(Remedy.WHOLE_ANSWERS, change=change)
    return Fail(
        Reason(CommonReason.STREAM_DIFFERS, change=change), Stage.STREAM, remedy, within=("streamed",)
    )


def _tried(ask: Ask, judge: Judge, *, stream: bool) -> Outcome:
    for trial in range(1, TRIALS + 1):
        outcome = judge(ask(stream))
        if not isinstance(outcome, Inconclusive):
            return replace(outcome, trials=trial, agreed=1)
    return replace(outcome, trials=TRIALS, agreed=TRIALS)


def tools_left_out(chat: int | None, here: int | None) -> Fail | None:
    """Return the fault where the prompt is much shorter than the chat's; ``None`` if nothing is counted."""
    if chat is None or here is None or here * 2 > chat:
        return None
    return Fail(Reason(CommonReason.TOOLS_LEFT_OUT, here=here, chat=chat), Stage.WHOLE, CHAT_INSTEAD)


PATH = "/v1/messages"
STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
SAMPLING = ("temperature", "top_p", "top_k")  # the sampling fields of this format
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking",
          "input_json_delta": "tool_use", "citations_delta": "text"}  # fmt: skip


def needs_anthropic(promise: Expectations) -> Reason | None:
    """Return why the engine is not probed: no chat, or no endpoint of this format.

    It is no part of the OpenAI API.
    """
    return no_chat(promise) or promise.unsure("messages")


def request(prompt: Prompt) -> dict[str, object]:
    """Return the body of a request for a prompt without system and tool turns."""
    body: dict[str, object] = {"messages": list(prompt.messages)}
    tools = [tool["function"] for tool in prompt.tools]
    if tools:
        body["tools"] = [
            {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]}
            for t in tools
        ]
    return body


def ask_anthropic(ctx: Context, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
    """Send a prompt and read the answer; raises ExchangeError."""
    sent = {k: v for k, v in ctx.promise.client_sampling.items() if k in SAMPLING}
    body = {
        "model": ctx.model,
        "max_tokens": ctx.promise.limit(prompt.tokens, tools=bool(prompt.tools)),
        **sent,
        **request(prompt),
        **extra,
    }
    read = from_events if stream else from_message
    return read(ctx.client.read(PATH, {**body, "stream": True} if stream else body, ctx.log))


def judged(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome]) -> Outcome:
    """Judge the whole and the streamed answer beside the same chat."""
    return judged_beside(ctx, prompt, lambda stream: ask_anthropic(ctx, prompt, stream=stream), judge)


def from_message(body: bytes) -> Reply:
    """Read an answer that came in one piece; raises ReplyError."""
    data = object_of(parsed(body), "the answer")
    if data.get("type") != "message" or data.get("role") != "assistant":
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=error_message(data)))
    blocks = data.get("content")
    if not isinstance(blocks, list):
        raise ReplyError(Reason(ReplyReason.NOT_LIST, key="content"))
    deltas = [_block(block, index) for index, block in enumerate(blocks)]
    end = Delta(finish_reason=_stop(data), usage=_usage(data.get("usage")))
    return assemble([*deltas, end], (data,))


def from_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its events do not come in the format's order."""
    parser = EventParser()
    texts = (*parser.feed(body), *parser.close())
    events = [object_of(parsed(one), "an event of the stream") for one in texts]
    names = re.findall(rb"^event: ?(.*?)\r?$", body, re.MULTILINE)
    if [str(event.get("type")).encode() for event in events] != names:
        raise ReplyError(Reason(FormatReason.EVENT_NAME))
    stream = _Stream()
    deltas = [delta for event in events for delta in stream.take(event)]
    if stream.place != "over":
        raise ReplyError(Reason(FormatReason.UNENDED))
    return assemble([*deltas, Delta(usage=stream.usage)], tuple(events))


@dataclass(slots=True)
class _Stream:
    """The position in a stream: ``message_start``, one block after another, ``message_delta``,
    ``message_stop``.
    """

    place: str = "before"
    index: int = -1
    kind: str | None = None
    usage: Usage = field(default_factory=Usage)
    _expected: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {
            "message_start": ("before",),
            "content_block_start": ("between",),
            "content_block_delta": ("inside",),
            "content_block_stop": ("inside",),
            "message_delta": ("between", "ended"),
            "message_stop": ("ended",),
        }
    )

    def take(self, event: Mapping[str, object]) -> Iterator[Delta]:
        """Yield the deltas of one event; ``ping`` and events of unknown types have none."""
        kind = str(event.get("type"))
        if kind == "error":
            raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(event)))
        if kind not in self._expected:
            return
        if self.place not in self._expected[kind]:
            raise ReplyError(Reason(FormatReason.ORDER, event=kind))
        if kind.startswith("content_block"):
            yield from self._inside(kind, event)
        elif kind == "message_start":
            self.place = "between"
            self._count(_object(event, "message").get("usage"))
        elif kind == "message_delta":
            self.place = "ended"
            self._count(event.get("usage"))
            yield Delta(finish_reason=_stop(_object(event, "delta")))
        else:
            self.place = "over"

    def _inside(self, kind: str, event: Mapping[str, object]) -> Iterator[Delta]:
        starts = kind == "content_block_start"
        if event.get("index") != self.index + starts:
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=kind))
        if starts:
            block = _object(event, "content_block")
            self.place, self.index, self.kind = "inside", self.index + 1, text(block.get("type"))
            yield _block(block, self.index, opening=True)
        elif kind == "content_block_stop":
            self.place = "between"
        else:
            delta = _object(event, "delta")
            if DELTAS.get(str(delta.get("type")), self.kind) != self.kind:
                raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=delta.get("type")))
            yield _delta(delta, self.index)

    def _count(self, usage: Any) -> None:
        """Take over the counts: of the prompt at the start or again at the end, of the answer at the end."""
        counted = _usage(usage) or Usage()
        completion = self.usage.completion if counted.completion is None else counted.completion
        known = counted if counted.prompt or not self.usage.prompt else self.usage
        self.usage = replace(known, completion=completion)


def _block(block: Any, index: int, *, opening: bool = False) -> Delta:
    """Return the delta of one content block; the input of a tool that only opens comes later."""
    block = object_of(block, "a block of the message")
    if block.get("type") == "text":
        return Delta(content=_text(block, "text"))
    if block.get("type") == "thinking":
        return Delta(reasoning=_text(block, "thinking"))
    if block.get("type") != "tool_use":
        return Delta()
    value = object_of(block.get("input"), "`input`")
    arguments = "" if opening and not value else json.dumps(value, ensure_ascii=False)
    return Delta(tool_calls=(ToolCall(index, _text(block, "id"), _text(block, "name"), arguments),))


def _delta(delta: Mapping[str, object], index: int) -> Delta:
    kind = delta.get("type")
    if kind == "text_delta":
        return Delta(content=_text(delta, "text"))
    if kind == "thinking_delta":
        return Delta(reasoning=_text(delta, "thinking"))
    if kind == "input_json_delta":
        return Delta(tool_calls=(ToolCall(index, "", "", _text(delta, "partial_json")),))
    return Delta()


def _usage(value: Any) -> Usage | None:
    """Return the counts, prompt tokens with those from a cache."""
    if not isinstance(value, dict):
        return None
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = [v if isinstance(v := value.get(key), int) else None for key in keys]
    prompt = None if counts[0] is None else sum(count or 0 for count in counts[:3])
    return Usage.of(prompt, counts[3], counts[1])


def _stop(holder: Mapping[str, object]) -> str:
    reason = holder.get("stop_reason")
    return STOPS.get(str(reason), str(reason))


def _object(holder: Mapping[str, object], key: str) -> Mapping[str, object]:
    return object_of(holder.get(key), f"`{key}` of {holder.get('type')}")


def _text(holder: Mapping[str, object], key: str) -> str:
    if holder.get(key) is None:
        raise ReplyError(Reason(ReplyReason.NOT_TEXT, key=key))
    return text_field(holder, key)


RESPONSES_PATH = "/v1/responses"
NAMES = {"max_tokens": "max_output_tokens"}  # fields of a chat's request under another name here


def needs_responses(promise: Expectations) -> Reason | None:
    """Return why the engine is not probed: no chat, or no endpoint of this format."""
    return no_chat(promise) or promise.unsure("responses")


def request_responses(prompt: Prompt) -> dict[str, object]:
    """Return the body of a request for a prompt; each call and each result is an item of its own."""
    body: dict[str, object] = {"input": items_of(prompt)}
    if prompt.tools:
        body["tools"] = [{"type": "function", **tool["function"]} for tool in prompt.tools]
    if prompt.switches:
        body["chat_template_kwargs"] = dict(prompt.switches)
    return body


def ask_responses(ctx: Context, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
    """Send a prompt and read the answer; no server keeps it. Raises ExchangeError."""
    sent = {NAMES.get(key, key): value for key, value in ctx.promise.client_sampling.items()}
    room = ctx.promise.limit(prompt.tokens, tools=bool(prompt.tools))
    body = {"model": ctx.model, "max_output_tokens": room, "store": False, **sent}
    body |= request_responses(prompt) | extra
    read = from_response_events if stream else from_response
    return read(ctx.client.read(RESPONSES_PATH, {**body, "stream": True} if stream else body, ctx.log))


def judged_responses(ctx: Context, prompt: Prompt, judge: Judge, ways: Mapping[str, bool] = WAYS) -> Outcome:
    """Judge the whole and the streamed answer beside the same chat."""
    return judged_beside(ctx, prompt, lambda stream: ask_responses(ctx, prompt, stream=stream), judge, ways)


def items_of(prompt: Prompt) -> list[dict[str, object]]:
    """Return the items of a prompt."""
    return [item for message in prompt.messages for item in _items(message)]


def _items(message: Message) -> Iterator[dict[str, object]]:
    """Yield the items of one message of a chat."""
    if message["role"] == "tool":
        yield output(message["tool_call_id"], message["content"])
        return
    if message["content"]:
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def output(call_id: str, text: str) -> dict[str, object]:
    """Return the item with the result of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}
