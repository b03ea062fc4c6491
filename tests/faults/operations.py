"""What a server may do to requests and answers: the operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import json
import os
import signal

from tests.faults.conversation import Broken, Busy, Conversation, Data

MIDWAY = 12  # chats
MANY = 5  # requests at once
LONG = 4000  # characters


def finish_is_stop(_chat: Conversation, data: Data) -> None:
    """A call ends with the word for a plain answer."""
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


def finish_is_stop_when_cut(_chat: Conversation, data: Data) -> None:
    """A cut answer ends with the word for a whole one."""
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "length":
            choice["finish_reason"] = "stop"


def arguments_twice(chat: Conversation, data: Data) -> None:
    """Arguments are JSON in JSON; an object where a text belongs is one, too."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if chat.whole and isinstance(function.get("arguments"), str):
            function["arguments"] = json.dumps(function["arguments"])


def values_as_text(chat: Conversation, data: Data) -> None:
    """Every value of the arguments is text, objects and numbers too."""
    chat.rewrite(
        data, lambda given: {k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()}
    )


def streamed_call_as_text(chat: Conversation, data: Data) -> None:
    """Streamed calls arrive as content."""
    if chat.whole:
        return
    for part in chat.parts(data):
        for call in part.pop("tool_calls", None) or ():
            function = call.get("function") or {}
            name = f'{{"name": "{function["name"]}", "arguments": ' if function.get("name") else ""
            part["content"] = (part.get("content") or "") + name + (function.get("arguments") or "")
    finish_is_stop(chat, data)


def streamed_brace_lost(chat: Conversation, data: Data) -> None:
    """The last brace of streamed arguments does not arrive."""
    for call in () if chat.whole else chat.calls(data):
        function = call.get("function") or {}
        if (function.get("arguments") or "").endswith("}"):
            function["arguments"] = function["arguments"][:-1]


def no_ids(chat: Conversation, data: Data) -> None:
    """Calls have no id."""
    for call in chat.calls(data):
        call.pop("id", None)


def one_index(chat: Conversation, data: Data) -> None:
    """All calls of a stream have the same place."""
    for call in () if chat.whole else chat.calls(data):
        call["index"] = 0


def streamed_end_token(chat: Conversation, data: Data) -> None:
    """The token that ends a turn is decoded into a streamed answer."""
    for choice in () if chat.whole else data.get("choices") or ():
        if choice.get("finish_reason") == "stop":
            choice["delta"]["content"] = (choice["delta"].get("content") or "") + "<|im_end|>"


def reasoning_lost_when_streamed(chat: Conversation, data: Data) -> None:
    """Streamed thoughts arrive as content."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("reasoning", "reasoning_content"):
            if thought := part.pop(key, None):
                part["content"] = (part.get("content") or "") + thought


def counts_nothing(_chat: Conversation, data: Data) -> None:
    """The answer's tokens are counted as none."""
    if isinstance(data.get("usage"), dict):
        data["usage"]["completion_tokens"] = 0


def limit_unheard(chat: Conversation, _data: Data) -> None:
    """``max_tokens`` of a request is not heard."""
    chat.request["max_tokens"] = max(chat.request.get("max_tokens") or 0, 400)


def tools_dropped(chat: Conversation, _data: Data) -> None:
    """Tools of a request do not reach the template."""
    chat.request.pop("tools", None)


def system_dropped(chat: Conversation, _data: Data) -> None:
    """The system's turn does not reach the template."""
    chat.request["messages"] = [m for m in chat.request["messages"] if m.get("role") != "system"]


def last_turn_only(chat: Conversation, _data: Data) -> None:
    """Turns before the last of the user do not reach the template."""
    messages = chat.request["messages"]
    asked = [i for i, m in enumerate(messages) if m.get("role") == "user"]
    chat.request["messages"] = messages[asked[-1] :]


def names_invented(chat: Conversation, data: Data) -> None:
    """A refusal comes out as a call of a tool that nobody offered."""
    for choice in data.get("choices") or ():
        part = choice.get("message") or {}
        if chat.request.get("tools") and "cannot" in (part.get("content") or ""):
            function = {"name": "look_up", "arguments": "{}"}
            part["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
            part["content"], choice["finish_reason"] = None, "tool_calls"


def dies_midway(chat: Conversation, _data: Data) -> None:
    """Somebody kills the engine while it is asked, as the system does where the memory runs out."""
    if chat.state.asked == MIDWAY:
        os.kill(chat.state.engine, signal.SIGKILL)


def breaks_on_results(chat: Conversation, _data: Data) -> None:
    """A conversation in which a tool has spoken ends in an error of the server."""
    if any(m.get("role") == "tool" for m in chat.request["messages"]):
        raise Broken("TypeError: can only concatenate str (not 'NoneType') to str")


def arguments_again(chat: Conversation, data: Data) -> None:
    """Streamed arguments come once more, whole, when the call ends."""
    texts = chat.kept.setdefault("texts", {})
    for call in () if chat.whole else chat.calls(data):
        index = call.get("index", 0)
        texts[index] = texts.get(index, "") + ((call.get("function") or {}).get("arguments") or "")
    for choice in () if chat.whole else data.get("choices") or ():
        if choice.get("finish_reason") and texts:
            again = [{"index": i, "function": {"arguments": text}} for i, text in texts.items()]
            delta = choice.setdefault("delta", {})
            delta["tool_calls"] = [*(delta.get("tool_calls") or ()), *again]


def one_id(chat: Conversation, data: Data) -> None:
    """Every call has the same id."""
    for call in chat.calls(data):
        if call.get("id"):
            call["id"] = "call_0"


def no_finish(chat: Conversation, data: Data) -> None:
    """No event of a stream says why it ends."""
    for choice in () if chat.whole else data.get("choices") or ():
        choice["finish_reason"] = None


def first_call_only(chat: Conversation, data: Data) -> None:
    """Of several calls in an answer the first alone comes out."""
    for part in chat.parts(data):
        calls = part.get("tool_calls")
        if calls:
            part["tool_calls"] = calls[:1] if chat.whole else [c for c in calls if not c.get("index")]


def history_as_text(chat: Conversation, _data: Data) -> None:
    """Calls and results of earlier turns are told to the template in words."""
    for message in chat.request["messages"]:
        calls = message.pop("tool_calls", None)
        if calls:
            told = [f"[Called {c['function']['name']} with {c['function']['arguments']}]" for c in calls]
            message["content"] = "\n".join(told)
        if message.get("role") == "tool":
            message["role"] = "user"
            message["content"] = f"[Tool result: {message.get('content')}]"
            message.pop("tool_call_id", None)


def prompt_counted_twice(_chat: Conversation, data: Data) -> None:
    """usage counts the prompt twice."""
    if isinstance(data.get("usage"), dict):
        data["usage"]["prompt_tokens"] = 2 * (data["usage"].get("prompt_tokens") or 0)


def stop_kept_aside(chat: Conversation, _data: Data) -> None:
    """Stop strings are the server's to find."""
    given = chat.request.pop("stop", None)
    chat.kept["stop"] = [given] if isinstance(given, str) else given or []


def stop_shown(chat: Conversation, data: Data) -> None:
    """Answers end behind a stop string, not before it."""
    for part in chat.parts(data):
        text = part.get("content")
        if not isinstance(text, str):
            continue
        told = chat.kept.get("told", "")
        ends = [(told + text).find(s) + len(s) for s in chat.kept.get("stop", ()) if s in told + text]
        if ends:
            part["content"] = (told + text)[: min(ends)][len(told) :]
        if not chat.whole:
            chat.kept["told"] = told + text


def letters_cut(chat: Conversation, data: Data) -> None:
    """In streams each letter of several bytes is decoded byte by byte."""

    def cut(text: str) -> str:
        return "".join(c if c.isascii() else "\ufffd" * len(c.encode()) for c in text)

    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = cut(part["content"])
    for call in () if chat.whole else chat.calls(data):
        function = call.get("function") or {}
        if function.get("arguments"):
            function["arguments"] = cut(function["arguments"])


def long_prompts_cut(chat: Conversation, _data: Data) -> None:
    """Of a long message the end alone is read, and nobody is told."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = message["content"][-LONG:]


def answers_swapped(chat: Conversation, _data: Data) -> None:
    """Where many ask at once, one gets the answer of another."""
    if len(chat.state.flying) > MANY:
        chat.request["messages"] = chat.state.flying[0]["messages"]


def turned_away(chat: Conversation, _data: Data) -> None:
    """Where many ask at once, the last are told to come again."""
    if len(chat.state.flying) > MANY:
        raise Busy("too many requests are running")


def slot_kept(chat: Conversation, _data: Data) -> None:
    """The only slot is still taken when a client has left in the middle of a stream."""
    if chat.state.left:
        raise Busy("no slot is free")


def answer_as_thought(chat: Conversation, data: Data) -> None:
    """What is not thought comes as a thought, too."""
    for part in chat.parts(data):
        if part.get("content") and not any(part.get(k) for k in ("reasoning", "reasoning_content")):
            part["reasoning"] = part["reasoning_content"] = part["content"]


def choice_unheard(chat: Conversation, _data: Data) -> None:
    """A request that names the tool to call is taken for one that leaves it open."""
    if isinstance(chat.request.get("tool_choice"), dict):
        chat.request["tool_choice"] = "auto"


def schema_unheard(chat: Conversation, _data: Data) -> None:
    """Nobody heeds the shape that a request wants."""
    for key in ("response_format", "structured_outputs", "guided_json"):
        chat.request.pop(key, None)


def arguments_as_object(chat: Conversation, data: Data) -> None:
    """Arguments of whole answers are an object, not a text that holds one."""
    for call in chat.calls(data) if chat.whole else ():
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = json.loads(function["arguments"] or "{}")


def names_prefixed(chat: Conversation, data: Data) -> None:
    """A namespace stands before each name."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if function.get("name"):
            function["name"] = f"functions.{function['name']}"


def cached_above_prompt(_chat: Conversation, data: Data) -> None:
    """More tokens come from the cache than the prompt has."""
    usage = data.get("usage")
    if isinstance(usage, dict):
        usage["prompt_tokens_details"] = {"cached_tokens": (usage.get("prompt_tokens") or 0) + 16}


def one_token_more(chat: Conversation, _data: Data) -> None:
    """The limit of tokens is counted without the first."""
    if chat.request.get("max_tokens"):
        chat.request["max_tokens"] += 1


def switches_unheard(chat: Conversation, _data: Data) -> None:
    """Template variables of a request do not reach the template."""
    chat.request.pop("chat_template_kwargs", None)


def last_words_lost(chat: Conversation, data: Data) -> None:
    """The last text of a stream is held back, and never comes."""
    for choice in () if chat.whole else data.get("choices") or ():
        delta = choice.get("delta") or {}
        text = delta.get("content")
        if isinstance(text, str):
            delta["content"], chat.kept["held"] = chat.kept.get("held", ""), text


def calls_shown_too(chat: Conversation, data: Data) -> None:
    """A call that was read stands in the content, too."""
    for part in chat.parts(data):
        for call in part.get("tool_calls") or ():
            function = call.get("function") or {}
            told = f'{{"name": "{function.get("name")}", "arguments": {function.get("arguments")}}}'
            part["content"] = f"{part.get('content') or ''}<tool_call>\n{told}\n</tool_call>"


def tool_names_forgotten(chat: Conversation, _data: Data) -> None:
    """Descriptions and parameters of tools do not reach the template."""
    for tool in chat.request.get("tools") or ():
        tool["function"] = {"name": tool["function"]["name"]}
