"""OpenAI's responses: requests, and the judge of whole and streamed answers beside the chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.reasons import Reason
from importer.validation import beside_chat
from importer.validation.beside_chat import Judge
from importer.validation.context import WAYS, Context
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Outcome
from importer.validation.prompts import Message, Prompt
from importer.validation.reply import Reply
from importer.validation.responses_reply import from_events, from_response

PATH = "/v1/responses"
NAMES = {"max_tokens": "max_output_tokens"}  # fields of a chat's request under another name here


def needs(promise: Expectations) -> Reason | None:
    """Return why the engine is not probed: no chat, or no endpoint of this format."""
    return no_chat(promise) or promise.unsure("responses")


def request(prompt: Prompt) -> dict[str, Any]:
    """Return the body of a request for a prompt; each call and each result is an item of its own."""
    body: dict[str, Any] = {"input": [item for message in prompt.messages for item in _items(message)]}
    if prompt.tools:
        body["tools"] = [{"type": "function", **tool["function"]} for tool in prompt.tools]
    if prompt.switches:
        body["chat_template_kwargs"] = dict(prompt.switches)
    return body


def ask(ctx: Context, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
    """Send a prompt and read the answer; no server keeps it. Raises ExchangeError."""
    sent = {NAMES.get(key, key): value for key, value in ctx.promise.client_sampling.items()}
    body = {"model": ctx.model, "max_output_tokens": ctx.promise.max_tokens, "store": False, **sent}
    body |= request(prompt) | extra
    read = from_events if stream else from_response
    return read(ctx.client.read(PATH, {**body, "stream": True} if stream else body, ctx.log))


def judged(ctx: Context, prompt: Prompt, judge: Judge, ways: Mapping[str, bool] = WAYS) -> Outcome:
    """Judge the whole and the streamed answer beside the same chat."""
    return beside_chat.judged(ctx, prompt, lambda stream: ask(ctx, prompt, stream=stream), judge, ways)


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """Yield the items of one message of a chat."""
    if message["role"] == "tool":
        yield output(message["tool_call_id"], message["content"])
        return
    if message["content"]:
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def output(call_id: str, text: str) -> dict[str, Any]:
    """Return the item with the result of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}
