"""The other APIs of one server: Anthropic's messages and OpenAI's responses, read into the same ``Reply``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.frozen import frozen
from importer.hub.snapshot import listed
from importer.reasons import Reason, ReasonKind
from importer.validation.context import STEADY, TRIALS, WAYS, Context, together
from importer.validation.diagnosis import STREAMED
from importer.validation.errors import AnswerFailure, ReplyError
from importer.validation.mutations import told
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, Stage, differs, failing, note
from importer.validation.prompts import Message, Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import (
    DONE,
    Delta,
    Reply,
    ToolCall,
    Usage,
    assemble,
    count_field,
    error_message,
    event_texts,
    not_of,
    object_of,
    parsed,
    text_field,
)


class FormatReason(ReasonKind):
    """How an answer breaks the format of its API."""

    NOT_OF_FORMAT = "the answer is not of this API: {words}"
    EVENT_NAME = "an event's name is not its type, and clients go by it"
    ORDER = "the events of the stream are not in the order of this API, or its end is missing"
    OTHER_ITEM = "{event} names another item than the one at its place"
    PIECES_DIFFER = "the pieces before {event} do not add up to its {part}"


Event = Mapping[str, object]
PARTS = ("content", "reasoning", "tool_calls")


def _events(body: bytes, *, named: bool) -> list[Event]:
    """Return the events of a stream; ``named`` where each needs the name of its type."""
    texts = [text for text in event_texts((body,)) if text.strip() != DONE]
    found = [object_of(parsed(text), "an event of the stream") for text in texts]
    names = [name.decode("utf-8", "replace") for name in re.findall(rb"(?m)^event: ?(.*?)\r?$", body)]
    if (names or named) and names != [str(event.get("type")) for event in found]:
        raise ReplyError(Reason(FormatReason.EVENT_NAME))
    broken = next((one for one in found if one.get("type") in ("error", "response.failed")), None)
    if broken is not None:
        says = error_message(broken.get("response", broken))
        raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=says))
    return found


def _in_order(events: Sequence[Event], letters: Mapping[str, str], form: str) -> None:
    """Raise ReplyError where the types of events, each by its letter, are not of a form."""
    if not re.fullmatch(form, "".join(letters.get(str(event.get("type")), "") for event in events)):
        raise ReplyError(Reason(FormatReason.ORDER))


# OpenAI's responses.
CUT = {"max_output_tokens": "length"}
TEXT, REFUSAL = "response.output_text.delta", "response.refusal.delta"
THOUGHT, SUMMARY = "response.reasoning_text.delta", "response.reasoning_summary_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"
PIECES = (TEXT, REFUSAL, THOUGHT, SUMMARY, ARGUMENTS)
ADDED, ITEM_DONE = "response.output_item.added", "response.output_item.done"
ENDS = ("response.completed", "response.incomplete")
TEXTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
RESPONSE_LETTERS = {
    "response.created": "c", ADDED: "a", ITEM_DONE: "o", **dict.fromkeys(PIECES, "p"),
    **dict.fromkeys(ENDS, "e"),
}  # fmt: skip


def from_response(body: bytes) -> Reply:
    """Read an answer that came in one piece; raises ReplyError."""
    return _response(object_of(parsed(body), "the answer"))


def from_response_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its pieces do not make it."""
    events = _events(body, named=False)
    _in_order(events, RESPONSE_LETTERS, "c[apo]*e")
    ids: dict[str, str] = {}
    begun: dict[str, Delta] = {}
    pieces: dict[str, dict[str, str]] = {}
    for event in events:
        kind, place = str(event.get("type")), json.dumps(event.get("output_index"))
        if kind not in (ADDED, ITEM_DONE, *PIECES):
            continue
        item = event if kind in PIECES else object_of(event.get("item"), "an item of the output")
        named = text_field(item, "item_id" if kind in PIECES else "id")
        if kind == ADDED:
            ids[place], begun[place], pieces[place] = named, _item(item, len(begun)), {}
        elif ids.get(place) != named:
            raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=kind))
        elif kind == ITEM_DONE:
            _alike(_item(item, [*begun].index(place)), _joined(begun[place], pieces[place]), kind)
        else:
            pieces[place][kind] = pieces[place].get(kind, "") + text_field(event, "delta")
    end = object_of(events[-1].get("response"), "`response`")
    made = assemble([*(_joined(begun[p], pieces[p]) for p in begun), _ending(end)], tuple(events))
    _alike(_response(end), made, events[-1].get("type"))
    return made


def _alike(whole: Delta | Reply, made: Delta | Reply, event: object) -> None:
    part = next((one for one in PARTS if getattr(whole, one) != getattr(made, one)), None)
    if part is not None:
        raise ReplyError(Reason(FormatReason.PIECES_DIFFER, event=event, part=part.replace("_", " ")))


def _joined(begun: Delta, pieces: Mapping[str, str]) -> Delta:
    """Return an item as its pieces make it; a call has the name and the id of its beginning."""
    more = pieces.get(ARGUMENTS, "")
    calls = tuple(replace(call, arguments=call.arguments + more) for call in begun.tool_calls)
    thought = pieces.get(THOUGHT) or pieces.get(SUMMARY, "")
    return Delta(pieces.get(TEXT, "") + pieces.get(REFUSAL, ""), thought, calls)


def _response(data: Event) -> Reply:
    """Return the reply of a whole response."""
    if data.get("error"):
        raise ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says=error_message(data)))
    if data.get("object") != "response":
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=error_message(data)))
    output = data.get("output")
    if not isinstance(output, list):
        raise not_of("`output`", "a list")
    items = [_item(object_of(item, "an item of the output"), place) for place, item in enumerate(output)]
    return assemble([*items, _ending(data)], (data,))


def _item(item: Event, place: int) -> Delta:
    """Return an item of the output at its place; other kinds than these have no part of a reply."""
    kind = item.get("type")
    if not text_field(item, "id"):
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=f"{kind} without id"))
    if kind == "function_call":
        named = (text_field(item, key) for key in ("call_id", "name", "arguments"))
        return Delta(tool_calls=(ToolCall(place, *named),))
    if kind == "reasoning":
        return Delta(reasoning=_texts(item, "content") or _texts(item, "summary"))
    return Delta(_texts(item, "content")) if kind == "message" else Delta()


def _texts(item: Event, key: str) -> str:
    """Return the texts of the parts of an item."""
    parts = item.get(key) or ()
    if not isinstance(parts, list | tuple):
        raise not_of("`output`", "a list")
    found = (object_of(part, "a part of an item") for part in parts)
    return "".join(
        text_field(part, TEXTS[kind]) for part in found if (kind := str(part.get("type"))) in TEXTS
    )


def _ending(data: Event) -> Delta:
    """Return why a response ended, in the words of the chat, and its counts of tokens."""
    details = object_of(data.get("incomplete_details") or {}, "`incomplete_details`")
    called = any(item.get("type") == "function_call" for item in listed(data.get("output")))
    status = text_field(data, "status")
    finish = CUT.get(text_field(details, "reason"), status)
    if status == "completed":
        finish = "tool_calls" if called else "stop"
    if data.get("usage") is None:
        return Delta(finish_reason=finish)
    usage = object_of(data["usage"], "`usage`")
    cached = object_of(usage.get("input_tokens_details") or {}, "`input_tokens_details`")
    prompt, completion = (count_field(usage, key) for key in ("input_tokens", "output_tokens"))
    counts = Usage.of(prompt, completion, count_field(cached, "cached_tokens"))
    return Delta(finish_reason=finish, usage=counts)


def response_body(prompt: Prompt) -> dict[str, object]:
    """Return the body of a request for a prompt; each call and each result is an item of its own."""
    body: dict[str, object] = {"input": items_of(prompt), "store": False}  # no server keeps it
    if prompt.tools:
        body["tools"] = [{"type": "function", **tool["function"]} for tool in prompt.tools]
    if prompt.switches:
        body["chat_template_kwargs"] = dict(prompt.switches)
    return body


def items_of(prompt: Prompt) -> list[dict[str, object]]:
    """Return the items of a prompt."""
    return [item for message in prompt.messages for item in _items(message)]


def _items(message: Message) -> Iterator[dict[str, object]]:
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


# Anthropic's messages.
STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
MESSAGE_LETTERS = {
    "message_start": "s", "content_block_start": "b", "content_block_delta": "d", "content_block_stop": "t",
    "message_delta": "m", "message_stop": "e",
}  # fmt: skip
COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def from_message(body: bytes) -> Reply:
    """Read an answer that came in one piece; raises ReplyError."""
    data = object_of(parsed(body), "the answer")
    if data.get("type") != "message" or data.get("role") != "assistant":
        raise ReplyError(Reason(FormatReason.NOT_OF_FORMAT, words=error_message(data)))
    blocks = data.get("content")
    if not isinstance(blocks, list):
        raise not_of("`content`", "a list")
    deltas = [_block(block, index) for index, block in enumerate(blocks)]
    end = Delta(finish_reason=_stop(data), usage=_usage(data.get("usage")))
    return assemble([*deltas, end], (data,))


def from_events(body: bytes) -> Reply:
    """Read a streamed answer; raises ReplyError where its events do not come in the format's order."""
    events = _events(body, named=True)
    _in_order(events, MESSAGE_LETTERS, "s(?:bd*t)*m+e")
    deltas, usage, place = [], Usage(), -1
    for event in events:
        kind = str(event.get("type"))
        if kind.startswith("content_block"):
            place += kind == "content_block_start"
            if event.get("index") != place:
                raise ReplyError(Reason(FormatReason.OTHER_ITEM, event=kind))
        if kind == "content_block_start":
            deltas.append(_block(event.get("content_block"), place, opening=True))
        elif kind == "content_block_delta":
            deltas.append(_piece(object_of(event.get("delta"), "a delta"), place))
        elif kind == "message_start":
            usage = _usage(object_of(event.get("message"), "`message`").get("usage")) or usage
        elif kind == "message_delta":  # it counts the answer, and may count the prompt again
            deltas.append(Delta(finish_reason=_stop(object_of(event.get("delta"), "a delta"))))
            ended = _usage(event.get("usage")) or Usage()
            known = ended if ended.prompt or not usage.prompt else usage
            usage = replace(known, completion=ended.completion or usage.completion)
    return assemble([*deltas, Delta(usage=usage)], tuple(events))


def _block(block: Any, index: int, *, opening: bool = False) -> Delta:
    """Return the delta of one content block; the input of a tool that only opens comes later."""
    block = object_of(block, "a block of the message")
    if block.get("type") != "tool_use":
        return _piece(block, index)
    value = object_of(block.get("input"), "`input`")
    arguments = "" if opening and not value else json.dumps(value, ensure_ascii=False)
    return Delta(tool_calls=(ToolCall(index, _text(block, "id"), _text(block, "name"), arguments),))


def _piece(delta: Event, index: int) -> Delta:
    """Return the delta of a piece of a block, or of a block of text; other kinds are no part of a reply."""
    kind = delta.get("type")
    if kind in ("text", "text_delta"):
        return Delta(content=_text(delta, "text"))
    if kind in ("thinking", "thinking_delta"):
        return Delta(reasoning=_text(delta, "thinking"))
    if kind == "input_json_delta":
        return Delta(tool_calls=(ToolCall(index, "", "", _text(delta, "partial_json")),))
    return Delta()


def _usage(value: Any) -> Usage | None:
    """Return the counts, prompt tokens with those from a cache."""
    if not isinstance(value, dict):
        return None
    prompt = [v if isinstance(v := value.get(key), int) else None for key in COUNTED]
    answer = value.get("output_tokens")
    whole = None if prompt[0] is None else sum(count or 0 for count in prompt)
    return Usage.of(whole, answer if isinstance(answer, int) else None, prompt[1])


def _stop(holder: Event) -> str:
    reason = holder.get("stop_reason")
    return STOPS.get(str(reason), str(reason))


def _text(holder: Event, key: str) -> str:
    if holder.get(key) is None:
        raise not_of(f"`{key}`", "text")
    return text_field(holder, key)


def message_body(prompt: Prompt) -> dict[str, object]:
    """Return the body of a request for a prompt without system and tool turns."""
    body: dict[str, object] = {"messages": list(prompt.messages)}
    if prompt.tools:
        tools = (tool["function"] for tool in prompt.tools)
        names = {"name": "name", "description": "description", "parameters": "input_schema"}
        body["tools"] = [{here: tool[key] for key, here in names.items()} for tool in tools]  # type: ignore[literal-required]
    return body


@frozen
class Api:
    """An API beside the chat.

    ``feature``   its name among the features of a server.
    ``limit``     the field of a request with the most tokens of an answer.
    ``sampling``  the sampling fields that it takes; ``None`` for all of the chat.
    """

    feature: str
    limit: str
    body: Callable[[Prompt], dict[str, object]]
    whole: Callable[[bytes], Reply]
    events: Callable[[bytes], Reply]
    sampling: Collection[str] | None = None

    @property
    def path(self) -> str:
        """Return the path of its requests."""
        return f"/v1/{self.feature}"

    def ask(self, ctx: Context, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
        """Send a prompt and read the answer; raises ExchangeError."""
        sent = ctx.promise.client_sampling
        own = {k: v for k, v in sent.items() if self.sampling is None or k in self.sampling}
        room = ctx.promise.limit(prompt.tokens, tools=bool(prompt.tools))
        limits = {self.limit: own.pop("max_tokens", room)}
        body = {"model": ctx.model, **limits, **own, **self.body(prompt), **extra}
        read = self.events if stream else self.whole
        return read(ctx.client.read(self.path, {**body, "stream": True} if stream else body, ctx.log))


MESSAGES = Api(
    "messages", "max_tokens", message_body, from_message, from_events, ("temperature", "top_p", "top_k")
)
RESPONSES = Api("responses", "max_output_tokens", response_body, from_response, from_response_events)

CHAT_INSTEAD = Reason(Remedy.CHAT_INSTEAD)
Ask = Callable[..., Reply]  # of a streamed answer or a whole one; raises ExchangeError
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
        return failing(outcome, Stage.WHOLE, CHAT_INSTEAD, note("/v1/chat/completions is right"))
    return outcome


def compared(ctx: Context, prompt: Prompt, ask: Ask) -> Outcome | None:
    """Return the fault of counts, or of a stream that is not the whole; ``None`` where both are in order.

    Both are asked for without chance, and again where they differ: a fault of the path repeats itself.
    """
    replies = [ask(ctx, prompt, stream=stream, **STEADY) for stream in WAYS.values()]
    counts = ctx.first(prompt).usage.prompt is not None
    if counts and any(reply.usage.uncounted for reply in replies):
        return differs("tokens of the prompt", 0, "one or more, as in the chat", remedy=CHAT_INSTEAD)
    for _ in range(REPEATS):
        whole, streamed = replies
        change = told(whole, streamed)
        if change is None or len(whole.raw) > 1:
            return None
        replies = [ask(ctx, prompt, stream=stream, **STEADY) for stream in WAYS.values()]
    if replies[0] != whole:
        return None
    remedy = Reason(Remedy.WHOLE_ANSWERS, change=change)
    return differs(
        "a stream, beside the whole answer", change, None, Stage.STREAM, remedy, within=(STREAMED,)
    )


def _tried(ask: Ask, judge: Judge, *, stream: bool) -> Outcome:
    for trial in range(1, TRIALS + 1):
        outcome = judge(ask(stream=stream))
        if not isinstance(outcome, Inconclusive):
            return replace(outcome, trials=trial, agreed=1)
    return replace(outcome, trials=TRIALS, agreed=TRIALS)


def tools_left_out(chat: int | None, here: int | None) -> Fail | None:
    """Return the fault where the prompt is much shorter than the chat's; ``None`` if nothing is counted."""
    if chat is None or here is None or here * 2 > chat:
        return None
    return differs("prompt_tokens with tools", here, f"{chat} as in the chat", remedy=CHAT_INSTEAD)
