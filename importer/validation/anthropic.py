"""Anthropic's messages: requests, the reader of whole and streamed answers, and the judge for both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation import beside_chat
from importer.validation.context import Context
from importer.validation.errors import AnswerFailure, ReplyError
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Outcome
from importer.validation.prompts import Prompt
from importer.validation.reply import Delta, EventParser, Reply, ToolCall, Usage, assemble, error_message


class MessagesReason(ReasonKind):
    """What breaks the format of an answer."""

    NOT_A_MESSAGE = "not-a-message", "the answer is no message of the assistant: {words}"
    NO_BLOCKS = "no-blocks", "the message has no list of blocks"
    EVENT_NAME = "event-name", "an event's name is not its type, and Anthropic's clients go by it"
    NO_STOP = "no-stop", "the stream ended without message_stop"
    WRONG_PLACE = "wrong-place", "{event} came at the wrong place of the stream"
    WRONG_INDEX = "wrong-index", "{name} has the index {index!r}, not {expected}"
    WRONG_BLOCK = "wrong-block", "a {delta} is in a block of {block}"
    BLOCK_NOT_OBJECT = "block-not-object", "a block of the message is not an object"
    INPUT_NOT_OBJECT = "input-not-object", "the input of a tool is not an object: {given}"
    NOT_JSON = "not-json", "the engine sent what is not JSON"
    NOT_OBJECT = "not-object", "the engine sent what is not an object"
    FIELD_NOT_OBJECT = "field-not-object", "`{key}` of {part} is not an object"
    FIELD_NOT_TEXT = "field-not-text", "`{key}` of a block is not text"


PATH = "/v1/messages"
STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
SAMPLING = ("temperature", "top_p", "top_k")  # the sampling fields of this format
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking",
          "input_json_delta": "tool_use", "citations_delta": "text"}  # fmt: skip


def needs(promise: Expectations) -> Reason | None:
    """Return why the engine is not probed: no chat, or no endpoint of this format.

    It is no part of the OpenAI API.
    """
    return no_chat(promise) or promise.unsure("messages")


def request(prompt: Prompt) -> dict[str, Any]:
    """Return the body of a request for a prompt without system and tool turns."""
    body: dict[str, Any] = {"messages": list(prompt.messages)}
    tools = [tool["function"] for tool in prompt.tools]
    if tools:
        body["tools"] = [
            {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]}
            for t in tools
        ]
    return body


def ask(ctx: Context, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
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
    return beside_chat.judged(ctx, prompt, lambda stream: ask(ctx, prompt, stream=stream), judge)


def from_message(body: bytes) -> Reply:
    """Read an answer that came in one piece; raises ReplyError."""
    data = _json(body)
    if data.get("type") != "message" or data.get("role") != "assistant":
        raise ReplyError(Reason(MessagesReason.NOT_A_MESSAGE, words=error_message(data)))
    blocks = data.get("content")
    if not isinstance(blocks, list):
        raise ReplyError(Reason(MessagesReason.NO_BLOCKS))
    deltas = [_block(block, index) for index, block in enumerate(blocks)]
    end = Delta(finish_reason=_stop(data), usage=_usage(data.get("usage")))
    return assemble([*deltas, end], (data,))


def from_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its events do not come in the format's order."""
    parser = EventParser()
    events = [_json(event) for event in (*parser.feed(body), *parser.close())]
    names = re.findall(rb"^event: ?(.*?)\r?$", body, re.MULTILINE)
    if [str(event.get("type")).encode() for event in events] != names:
        raise ReplyError(Reason(MessagesReason.EVENT_NAME))
    stream = _Stream()
    deltas = [delta for event in events for delta in stream.take(event)]
    if stream.place != "over":
        raise ReplyError(Reason(MessagesReason.NO_STOP))
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

    def take(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Yield the deltas of one event; ``ping`` and events of unknown types have none."""
        kind = str(event.get("type"))
        if kind == "error":
            raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(event)))
        if kind not in self._expected:
            return
        if self.place not in self._expected[kind]:
            raise ReplyError(Reason(MessagesReason.WRONG_PLACE, event=kind))
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

    def _inside(self, kind: str, event: Mapping[str, Any]) -> Iterator[Delta]:
        starts = kind == "content_block_start"
        if event.get("index") != self.index + starts:
            raise ReplyError(
                Reason(
                    MessagesReason.WRONG_INDEX,
                    name=kind,
                    index=event.get("index"),
                    expected=self.index + starts,
                )
            )
        if starts:
            block = _object(event, "content_block")
            self.place, self.index, self.kind = "inside", self.index + 1, block.get("type")
            yield _block(block, self.index, opening=True)
        elif kind == "content_block_stop":
            self.place = "between"
        else:
            delta = _object(event, "delta")
            if DELTAS.get(str(delta.get("type")), self.kind) != self.kind:
                raise ReplyError(Reason(MessagesReason.WRONG_BLOCK, delta=delta.get("type"), block=self.kind))
            yield _delta(delta, self.index)

    def _count(self, usage: Any) -> None:
        """Take over the counts: of the prompt at the start or again at the end, of the answer at the end."""
        counted = _usage(usage) or Usage()
        completion = self.usage.completion if counted.completion is None else counted.completion
        known = counted if counted.prompt else self.usage
        self.usage = Usage(known.prompt, completion, known.cached)


def _block(block: Any, index: int, *, opening: bool = False) -> Delta:
    """Return the delta of one content block; the input of a tool that only opens comes later."""
    if not isinstance(block, dict):
        raise ReplyError(Reason(MessagesReason.BLOCK_NOT_OBJECT))
    if block.get("type") == "text":
        return Delta(content=_text(block, "text"))
    if block.get("type") == "thinking":
        return Delta(reasoning=_text(block, "thinking"))
    if block.get("type") != "tool_use":
        return Delta()
    value = block.get("input")
    if not isinstance(value, dict):
        raise ReplyError(Reason(MessagesReason.INPUT_NOT_OBJECT, given=json.dumps(value)[:80]))
    arguments = "" if opening and not value else json.dumps(value, ensure_ascii=False)
    return Delta(tool_calls=(ToolCall(index, _text(block, "id"), _text(block, "name"), arguments),))


def _delta(delta: Mapping[str, Any], index: int) -> Delta:
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
    return Usage(prompt, counts[3], counts[1])


def _stop(holder: Mapping[str, Any]) -> str:
    reason = holder.get("stop_reason")
    return STOPS.get(str(reason), str(reason))


def _json(text: bytes | str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ReplyError(Reason(MessagesReason.NOT_JSON)) from None
    if not isinstance(data, dict):
        raise ReplyError(Reason(MessagesReason.NOT_OBJECT))
    return data


def _object(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if not isinstance(value, dict):
        raise ReplyError(Reason(MessagesReason.FIELD_NOT_OBJECT, key=key, part=holder.get("type")))
    return value


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise ReplyError(Reason(MessagesReason.FIELD_NOT_TEXT, key=key))
    return value
