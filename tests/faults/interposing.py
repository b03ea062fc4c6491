"""What stands in the middle may do to requests and answers: operations of ``wire.py``. Only Python's own
library."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, TooLarge

CAP = 24  # tokens
LARGE = 4096  # bytes
WARM = 1.3
PIECE = 61  # bytes
PARTNER = 0.3  # seconds


def _of_texts(chat: Conversation, change: Callable[[str], str]) -> None:
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = change(message["content"])


def letters_dropped(chat: Conversation, _data: Data) -> None:
    """Letters beyond ASCII do not get through."""
    _of_texts(chat, lambda text: text.encode("ascii", "ignore").decode())


def tags_dropped(chat: Conversation, _data: Data) -> None:
    """Whatever looks like markup is taken out, for safety."""
    _of_texts(chat, lambda text: re.sub(r"<[^<>]+>", "", text))


def spaces_collapsed(chat: Conversation, _data: Data) -> None:
    """Runs of white space become one space, to save tokens."""
    _of_texts(chat, lambda text: re.sub(r"\s+", " ", text))


def system_joined(chat: Conversation, _data: Data) -> None:
    """The system's turn becomes the beginning of the first question."""
    first, *rest = chat.request["messages"]
    if first.get("role") == "system" and rest and isinstance(rest[0].get("content"), str):
        rest[0]["content"] = f"{first['content']}\n\n{rest[0]['content']}"
        chat.request["messages"] = rest


def answers_relabelled(chat: Conversation, _data: Data) -> None:
    """Earlier answers get through as turns of the user."""
    for message in chat.request["messages"]:
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            message["role"] = "user"


def words_beside_calls_dropped(chat: Conversation, _data: Data) -> None:
    """Of a turn with calls the calls alone get through."""
    for message in chat.request["messages"]:
        if message.get("tool_calls"):
            message["content"] = None


def large_refused(chat: Conversation, _data: Data) -> None:
    """A body of more than 4 KiB is refused."""
    if len(json.dumps(chat.request)) > LARGE:
        raise TooLarge("Request Entity Too Large")


def answers_capped(chat: Conversation, _data: Data) -> None:
    """No answer is longer than 24 tokens, whatever was allowed."""
    chat.request["max_tokens"] = min(CAP, chat.request.get("max_tokens") or CAP)


def warmed(chat: Conversation, _data: Data) -> None:
    """Every request has the gateway's own temperature."""
    chat.request["temperature"] = WARM


def seed_dropped(chat: Conversation, _data: Data) -> None:
    """A seed does not get through."""
    chat.request.pop("seed", None)


def format_dropped(chat: Conversation, _data: Data) -> None:
    """A response_format does not get through."""
    chat.request.pop("response_format", None)


def logprobs_dropped(chat: Conversation, _data: Data) -> None:
    """Log-probabilities are not asked for."""
    for key in ("logprobs", "top_logprobs"):
        chat.request.pop(key, None)


def stream_options_dropped(chat: Conversation, _data: Data) -> None:
    """The wish for a count at the end of a stream does not get through."""
    chat.request.pop("stream_options", None)


def keys_sorted(chat: Conversation, _data: Data) -> None:
    """Schemas are read and written again, with their keys in order."""
    for tool in chat.request.get("tools") or ():
        schema = tool["function"].get("parameters")
        tool["function"]["parameters"] = json.loads(json.dumps(schema, sort_keys=True))


def strict_dropped(chat: Conversation, _data: Data) -> None:
    """The wish for arguments that a schema binds does not get through."""
    for tool in chat.request.get("tools") or ():
        tool["function"].pop("strict", None)


def refusals_broken(status: int) -> int:
    """A refusal of the server is an error of the gateway's own."""
    return 500 if 400 <= status < 500 else status


WAITING: list[Data] = []
MEETING = threading.Condition()


def answers_crossed(chat: Conversation, data: Data) -> None:
    """Of two clients at the same time each gets the answer of the other."""
    if not chat.whole:
        return
    with MEETING:
        if WAITING:
            other = WAITING.pop()
            mine = dict(data)
            data.clear()
            data.update(other)
            other.clear()
            other.update(mine)
            MEETING.notify_all()
            return
        WAITING.append(data)
        MEETING.wait(PARTNER)
        WAITING[:] = [one for one in WAITING if one is not data]


def stream_kept(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream is passed on when it has ended."""
    yield b"".join(lines)


def letters_halved(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream is read in pieces of a fixed size, and each is decoded by itself."""
    rest = b""
    for line in lines:
        rest += line
        while len(rest) >= PIECE:
            piece, rest = rest[:PIECE], rest[PIECE:]
            yield piece.decode("utf-8", "replace").encode()
    yield rest.decode("utf-8", "replace").encode()
