"""What gateways of operators do to chats: operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Broken, Conversation, Data, Operation

ENTITY = re.compile(r"(?<=[a-z,] )[A-Z][^\W\d_]+")  # a word with a capital that begins no sentence
MASK = "<ENTITY_{}>"
ALIKE = 0.7  # of the words of two conversations
WORD = re.compile(r"[^\W_]+")
REPLAYED = 6  # events
MINUTE, QUOTA = 60.0, 10  # seconds, chats
ENDS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


class Exhausted(Broken):
    """A quota is used up."""

    status = 429


def entities_masked(chat: Conversation, _data: Data) -> None:
    """A guardrail hides the names of people and places from the engine."""
    known: dict[str, str] = chat.kept.setdefault("masked", {})

    def hidden(found: re.Match[str]) -> str:
        return known.setdefault(found.group(), MASK.format(len(known) + 1))

    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = ENTITY.sub(hidden, message["content"])


def entities_shown(chat: Conversation, data: Data) -> None:
    """What the guardrail has hidden is put back into content, and into content alone."""
    for part in chat.parts(data):
        for name, mask in chat.kept.get("masked", {}).items():
            if isinstance(part.get("content"), str):
                part["content"] = part["content"].replace(mask, name)


SEEN: list[tuple[frozenset[str], str]] = []  # what whole answers were given to which words


def alike_remembered(chat: Conversation, data: Data) -> None:
    """A cache by likeness: a conversation of nearly the same words gets the answer that another one got."""
    if not chat.whole:
        return
    told = " ".join(str(message.get("content")) for message in chat.request["messages"])
    words = frozenset(WORD.findall(told.lower()))
    for others, answer in SEEN:
        if len(words & others) >= ALIKE * len(words | others):
            data["choices"] = json.loads(answer)
            return
    SEEN.append((words, json.dumps(data["choices"])))


def begun_anew(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream breaks after a few events; the gateway asks again, and passes on the second from its start."""
    first = list[bytes]()
    again = False
    for line in lines:
        yield line
        if not again:
            first.append(line)
            again = sum(one.startswith(b"data: {") for one in first) == REPLAYED and not line.strip()
            yield from first if again else ()


def events_run_together(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A filter of logs drops lines that are empty: those between the events of a stream, too."""
    return (line for line in lines if line.strip())


def ends_in_another_interface(_chat: Conversation, data: Data) -> None:
    """Why an answer ends is told in the words of another maker's interface."""
    for choice in data.get("choices") or ():
        choice["finish_reason"] = ENDS.get(choice.get("finish_reason"), choice.get("finish_reason"))


def replica_chosen(chat: Conversation, _data: Data) -> None:
    """Requests go to two replicas in turns."""
    chat.kept["old"] = chat.state.asked % 2 == 0


def calls_of_the_old_replica(chat: Conversation, data: Data) -> None:
    """One of two replicas was not restarted yet, and reads no calls: they are text there."""
    if not chat.kept.get("old"):
        return
    for choice in data.get("choices") or ():
        part = choice.get("message" if chat.whole else "delta") or {}
        for call in part.pop("tool_calls", None) or ():
            function = call["function"]
            told = f'{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}'
            part["content"] = f"{part.get('content') or ''}<tool_call>\n{told}\n</tool_call>"
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


ASKED: list[float] = []  # when chats came


def quota_of_a_trial(_chat: Conversation, _data: Data) -> None:
    """The plan at the manager of interfaces has room for ten chats a minute."""
    now = time.monotonic()
    ASKED[:] = [then for then in ASKED if now - then < MINUTE]
    if len(ASKED) >= QUOTA:
        raise Exhausted("Rate limit is exceeded. Try again in 60 seconds.")
    ASKED.append(now)


def escapes_told(chat: Conversation, data: Data) -> None:
    """Letters beyond ASCII come out as the escapes that JSON has for them."""

    def escaped(text: str) -> str:
        return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text)

    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = escaped(part["content"])


def thoughts_dropped(chat: Conversation, data: Data) -> None:
    """Members of an answer that the gateway's model of it lacks are dropped: thoughts are one."""
    for part in chat.parts(data):
        for key in ("reasoning", "reasoning_content"):
            part.pop(key, None)


def members_added(chat: Conversation, data: Data) -> None:
    """Members that the makers of the interface have, and this engine leaves out, are there and are null."""
    data["service_tier"] = "default"
    data["id"] = f"gw-{data.get('id')}"
    for part in chat.parts(data):
        part["refusal"] = None
        if chat.whole:
            part["annotations"] = []


def kept_alive(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments between events keep the connection open."""
    yield b": connected\n\n"
    for line in lines:
        yield line
        if not line.strip():
            yield b": ping\n\n"


def spaced(chat: Conversation, data: Data) -> None:
    """Arguments are written again, with other white space and the same values."""
    for call in chat.calls(data) if chat.whole else ():
        function = call.get("function") or {}
        try:
            function["arguments"] = json.dumps(copy.copy(json.loads(function["arguments"])), indent=1)
        except (KeyError, ValueError):
            continue


BEFORE: dict[str, Operation] = {
    "entities_masked": entities_masked,
    "calls_of_the_old_replica": replica_chosen,
    **{o.__name__: o for o in (quota_of_a_trial,)},
}
AFTER: dict[str, Operation] = {
    "entities_masked": entities_shown,
    **{
        o.__name__: o
        for o in (
            alike_remembered,
            ends_in_another_interface,
            calls_of_the_old_replica,
            escapes_told,
            thoughts_dropped,
            members_added,
            spaced,
        )
    },
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "begun_anew": begun_anew,
    "events_run_together": events_run_together,
    "kept_alive": kept_alive,
}
