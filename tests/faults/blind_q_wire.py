"""The blind round q: what gateways, proxies, caches and replicas do. Only Python's own library."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Broken, Conversation, Data, Operation

ALIKE = 0.6  # share of words that two questions have in common
CHUNKS = 24  # events of a stream until the proxy's time is over
BURST = 2  # requests in a window
WINDOW = 1.0  # seconds


class Unprocessable(Broken):
    """The gateway's model of a request does not know this shape."""

    status = 422


class TooMany(Broken):
    """A limit of requests per time is used up."""

    status = 429


SEEN: list[tuple[set[str], str]] = []


def _words(chat: Conversation) -> set[str]:
    asked = [str(m.get("content")) for m in chat.request["messages"] if m.get("role") == "user"]
    return set(re.findall(r"\w+", " ".join(asked[-1:]).lower()))


def q_alike_remembered(chat: Conversation, data: Data) -> None:
    """A question that is like an earlier one gets the answer of that one."""
    if not chat.whole or any(m.get("role") in ("tool", "assistant") for m in chat.request["messages"]):
        return
    words = _words(chat)
    for known, choices in SEEN:
        if words and len(words & known) / len(words | known) >= ALIKE:
            data["choices"] = json.loads(choices)
            return
    SEEN.append((words, json.dumps(data["choices"])))


def q_null_refused(chat: Conversation, _data: Data) -> None:
    """A message whose content is null, as one with calls has it, does not pass the gateway's model."""
    for number, message in enumerate(chat.request["messages"]):
        if message.get("content") is None:
            raise Unprocessable(f"messages.{number}.content: Input should be a valid string")


def q_pieces_trimmed(chat: Conversation, data: Data) -> None:
    """White space at the ends of each piece of a stream is taken away."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def q_first_piece_lost(chat: Conversation, data: Data) -> None:
    """The first words of a streamed answer are swallowed: they told the gateway that the engine lives."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str) and part["content"].strip() and not chat.kept.get("lives"):
            chat.kept["lives"] = True
            part["content"] = ""


def q_stream_ends_early(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream that lasts longer than the proxy allows is closed in the middle."""
    count = 0
    for line in lines:
        count += line.startswith(b"data:")
        if count > CHUNKS:
            return
        yield line


def q_html_escaped(chat: Conversation, data: Data) -> None:
    """Answers are made safe for web pages, arguments of calls as well."""
    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = html.escape(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = html.escape(function["arguments"])


def q_every_other_old(chat: Conversation, _data: Data) -> None:
    """Every other request reaches a replica of an older release, which does not know tools yet."""
    if chat.state.asked % 2 == 0:
        chat.request.pop("tools", None)


STAMPS: list[float] = []
LOCK = threading.Lock()


def q_rate_limited(_chat: Conversation, _data: Data) -> None:
    """Somebody left a limit of two requests per second in the gateway."""
    with LOCK:
        now = time.monotonic()
        STAMPS[:] = [stamp for stamp in STAMPS if now - stamp < WINDOW]
        if len(STAMPS) >= BURST:
            raise TooMany("Rate limit exceeded, please retry later")
        STAMPS.append(now)


def q_stop_added(chat: Conversation, _data: Data) -> None:
    """The gateway adds a stop string of another application to every request."""
    given = chat.request.get("stop") or []
    chat.request["stop"] = [*([given] if isinstance(given, str) else given), "\n\n"]


def _of_texts(chat: Conversation, change: Callable[[str], str], roles: tuple[str, ...]) -> None:
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str) and message.get("role") in roles:
            message["content"] = change(message["content"])


def q_escaped_again(chat: Conversation, _data: Data) -> None:
    """Texts of a request are escaped as in JSON once more: letters beyond ASCII, quotes and line breaks."""
    _of_texts(chat, lambda text: json.dumps(text)[1:-1], ("system", "user", "assistant", "tool"))


def q_names_masked(chat: Conversation, _data: Data) -> None:
    """What looks like a name or a place is hidden from the model, and not put back."""

    def masked(text: str) -> str:
        return re.sub(r"(?<=[a-z] )[A-ZÄÖÜ]\w+", "<PERSON>", text)

    _of_texts(chat, masked, ("user", "tool"))


def q_named_anew(chat: Conversation, data: Data) -> None:
    """A gateway gives answers ids of its own, and tells who provided them."""
    if chat.kept.setdefault("id", f"chatcmpl-gw{chat.state.asked:08d}"):
        data["id"] = chat.kept["id"]
    data["provider"] = "internal"
    data.pop("system_fingerprint", None)


def q_regrouped(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A proxy passes lines on in twos."""
    held = b""
    for number, line in enumerate(lines):
        held += line
        if number % 2:
            yield held
            held = b""
    yield held


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        q_null_refused,
        q_every_other_old,
        q_rate_limited,
        q_stop_added,
        q_escaped_again,
        q_names_masked,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        q_alike_remembered,
        q_pieces_trimmed,
        q_first_piece_lost,
        q_html_escaped,
        q_named_anew,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (q_stream_ends_early, q_regrouped)
}
