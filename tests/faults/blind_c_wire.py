"""What gateways of a platform do to chats: further operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation

QUOTA = 6  # the request that finds the quota used up
NOTICE = "You have reached your rate limit. Please try again in a minute."
DOUBLED = 4  # the piece that is delivered twice
# Of another vocabulary: there they are brackets, a line's end and short words.
FORBIDDEN = dict.fromkeys(("58", "60", "90", "92", "198", "257", "262", "286", "290", "318"), -100)


def finish_is_empty(chat: Conversation, data: Data) -> None:
    """Events before the last have an empty text for a finish_reason, where null belongs."""
    for choice in () if chat.whole else data.get("choices") or ():
        if choice.get("finish_reason") is None:
            choice["finish_reason"] = ""


def role_of_another_house(chat: Conversation, data: Data) -> None:
    """The role of who answers is the one that another provider gives it."""
    for part in chat.parts(data):
        if "role" in part:
            part["role"] = "model"


def notice_as_answer(chat: Conversation, data: Data) -> None:
    """Where the quota is used up, a sentence about it comes as the answer, with status 200."""
    if not data:  # on the way to the engine
        chat.kept["notice"] = NOTICE if chat.state.asked % QUOTA == 0 else None
        return
    if chat.kept["notice"] is None:
        return
    for choice in data.get("choices") or ():
        part = choice["message" if chat.whole else "delta"]
        for key in ("tool_calls", "content", "reasoning"):
            part.pop(key, None)
        if not chat.kept.get("told"):
            part["content"], chat.kept["told"] = chat.kept["notice"], True
        if choice.get("finish_reason"):
            choice["finish_reason"] = "stop"


def null_as_a_word(chat: Conversation, data: Data) -> None:
    """A gateway that knows texts alone writes null as a word."""
    for part in chat.parts(data) if chat.whole else ():
        if part.get("content") is None:
            part["content"] = "null"


def quotes_made_typographic(chat: Conversation, _data: Data) -> None:
    """Straight quotation marks in messages become curved ones."""

    def curved(text: str) -> str:
        text = re.sub(r'(^|(?<=[\s(\[{:,]))"', "“", text).replace('"', "”")
        return text.replace("'", "’")

    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = curved(message["content"])


def tokens_forbidden(chat: Conversation, _data: Data) -> None:
    """Each request forbids tokens, by their numbers in another model's vocabulary."""
    chat.request["logit_bias"] = FORBIDDEN | (chat.request.get("logit_bias") or {})


def text_ends_at_an_emoji(chat: Conversation, _data: Data) -> None:
    """Messages pass through a table whose letters have three bytes: a text ends before one of four."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = re.split("[\U00010000-\U0010ffff]", message["content"], maxsplit=1)[0]


def results_as_objects(chat: Conversation, _data: Data) -> None:
    """What a tool has said is read where it is JSON, and sent on as an object."""
    for message in chat.request["messages"]:
        if message.get("role") == "tool" and str(message.get("content")).startswith(("{", "[")):
            try:
                message["content"] = json.loads(message["content"])
            except ValueError:
                continue


def piece_delivered_twice(chat: Conversation, data: Data) -> None:
    """A queue delivers at least once: the fourth piece of text of a stream comes twice."""
    for part in () if chat.whole else chat.parts(data):
        if part.get("content"):
            chat.kept["pieces"] = chat.kept.get("pieces", 0) + 1
            if chat.kept["pieces"] == DOUBLED:
                again = copy.deepcopy(data)
                again["choices"][0]["finish_reason"] = None
                chat.kept["more"] = [again]


def system_put_last(chat: Conversation, _data: Data) -> None:
    """What the system says is kept apart, as another interface has it, and put behind the conversation."""
    messages = chat.request["messages"]
    system = [m for m in messages if m.get("role") == "system"]
    chat.request["messages"] = [m for m in messages if m.get("role") != "system"] + system


def requests_tagged(chat: Conversation, _data: Data) -> None:
    """Harmless: the gateway says for whom it asks."""
    chat.request |= {"user": "team-7", "metadata": {"cost_center": "4711"}}


def lines_of_windows(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Harmless: lines of a stream end as the standard allows, too."""
    for piece in lines:
        yield piece.replace(b"\n", b"\r\n")


def letters_as_numbers(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Harmless: letters beyond ASCII come as JSON may write them."""
    for piece in lines:
        yield re.sub(r"[^\x00-\x7f]", lambda m: json.dumps(m[0])[1:-1], piece.decode()).encode()


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        notice_as_answer,
        quotes_made_typographic,
        tokens_forbidden,
        text_ends_at_an_emoji,
        results_as_objects,
        system_put_last,
        requests_tagged,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        finish_is_empty,
        role_of_another_house,
        notice_as_answer,
        null_as_a_word,
        piece_delivered_twice,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (lines_of_windows, letters_as_numbers)
}
