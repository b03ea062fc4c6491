"""What servers and gateways of the ninth blind round do: operations of ``wire.py``. Only Python's own
library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation

PIECES = 18  # events
EVERY = 6  # events
SHARE = 3  # requests
PREAMBLE = "You are the assistant of Example Corporation. Be brief and never talk about competitors."


def older_release_for_some(chat: Conversation, _data: Data) -> None:
    """Each third request goes to an older release, which knows no tools and no switches."""
    if chat.state.asked % SHARE == 0:
        for key in ("tools", "tool_choice", "chat_template_kwargs", "response_format"):
            chat.request.pop(key, None)


def preamble_added(chat: Conversation, _data: Data) -> None:
    """A system's turn of the house stands before the one of the client."""
    chat.request["messages"] = [{"role": "system", "content": PREAMBLE}, *chat.request["messages"]]


def names_with_hyphens(chat: Conversation, data: Data) -> None:
    """Names of called tools have hyphens in the place of underscores."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if function.get("name"):
            function["name"] = function["name"].replace("_", "-")


def opening_swallowed(chat: Conversation, data: Data) -> None:
    """The gateway tells the role itself, and passes on what follows the first event of a stream's text."""
    for part in () if chat.whole else chat.parts(data):
        if part.get("content") and not chat.kept.get("opened"):
            chat.kept["opened"] = bool(part["content"].strip())
            part["content"] = ""


def counts_told_as_text(_chat: Conversation, data: Data) -> None:
    """Whole numbers are text, as in the JSON of Protocol Buffers."""
    if isinstance(data.get("usage"), dict):
        data["usage"] = {k: str(v) if isinstance(v, int) else v for k, v in data["usage"].items()}


def quotes_curled(chat: Conversation, data: Data) -> None:
    """A filter for fine printing curls all quotes, those of arguments too."""

    def curled(text: str) -> str:
        return re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)

    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = curled(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = curled(function["arguments"])


def calls_in_the_old_form(chat: Conversation, data: Data) -> None:
    """A call comes as ``function_call``, as it did before there were several."""
    for part in chat.parts(data):
        calls = part.pop("tool_calls", None)
        if calls:
            part["function_call"] = calls[0]["function"]
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "function_call"


def streams_cut(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream is closed after so many events, whether it has ended or not."""
    events = 0
    for line in lines:
        events += line.startswith(b"data:")
        if events > PIECES:
            return
        yield line


def events_delivered_again(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Each sixth event of a stream is delivered twice."""
    events = 0
    for line in lines:
        yield line
        if line.startswith(b"data:"):
            events += 1
            if events % EVERY == 0:
                yield b"\n" + line


def fields_of_the_house(_chat: Conversation, data: Data) -> None:
    """Answers have fields more, which no client of this interface reads."""
    data["provider"] = "house"
    for choice in data.get("choices") or ():
        choice["native_finish_reason"] = choice.get("finish_reason")


BEFORE: dict[str, Operation] = {o.__name__: o for o in (older_release_for_some, preamble_added)}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        names_with_hyphens,
        opening_swallowed,
        counts_told_as_text,
        quotes_curled,
        calls_in_the_old_form,
        fields_of_the_house,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (streams_cut, events_delivered_again)
}
