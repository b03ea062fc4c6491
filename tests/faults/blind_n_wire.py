"""What gateways do to requests and answers: operations of the round ``n``. Only Python's own library."""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Broken, Conversation, Data, Operation

REPLICAS = 3
BANNED = (346, 410, 459, 496)  # numbers of another vocabulary
NAMES = re.compile(r"(?<=[a-z,] )[A-Z]\w+")
EVERY = 4  # events between two comments
COMMENT = b": OPENROUTER PROCESSING\n\n"


class Unprocessable(Broken):
    """The gateway's own schema does not allow the request."""

    status = 422


def null_content_refused(chat: Conversation, _data: Data) -> None:
    """The gateway's schema wants a text in every message, and a call's has none."""
    for number, message in enumerate(chat.request["messages"]):
        if message.get("content") is None:
            raise Unprocessable(f"messages.{number}.content: Input should be a valid string")


def people_masked(chat: Conversation, _data: Data) -> None:
    """A guard against personal data puts a mask over names, and never takes it off."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = NAMES.sub("<LOCATION>", message["content"])


def one_replica_old(chat: Conversation, _data: Data) -> None:
    """One of three replicas has an old release, which does not know tools."""
    if chat.state.asked % REPLICAS == 0:
        chat.request.pop("tools", None)
        chat.request.pop("tool_choice", None)


def newer_limit_dropped(chat: Conversation, _data: Data) -> None:
    """The gateway lets known parameters alone through, and the limit's newer name is unknown."""
    chat.request.pop("max_completion_tokens", None)


def bias_of_another(chat: Conversation, _data: Data) -> None:
    """The gateway bans tokens by the numbers that they have in another model's vocabulary."""
    chat.request["logit_bias"] = {**(chat.request.get("logit_bias") or {}), **{str(n): -100 for n in BANNED}}


def first_part_only(chat: Conversation, _data: Data) -> None:
    """Of a message in parts the first alone is passed on."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = message["content"][:1]


def same_role_last(chat: Conversation, _data: Data) -> None:
    """Roles have to alternate: of neighbours with the same one the last is left."""
    messages = chat.request["messages"]
    following = [*messages[1:], {}]
    chat.request["messages"] = [
        one for one, other in zip(messages, following, strict=True) if one.get("role") != other.get("role")
    ]


def html_escaped(chat: Conversation, data: Data) -> None:
    """A filter against scripts escapes whatever has a meaning in HTML."""
    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = html.escape(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = html.escape(function["arguments"])


def pieces_trimmed_all(chat: Conversation, data: Data) -> None:
    """Each piece of a stream loses the white space around it."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def pieces_smaller(chat: Conversation, data: Data) -> None:
    """A piece of a streamed answer comes as two; nothing is lost."""
    choices: list[Data] = data.get("choices") or []
    if chat.whole or len(choices) != 1 or choices[0].get("finish_reason"):
        return
    delta = choices[0].get("delta") or {}
    text = delta.get("content")
    if not isinstance(text, str) or len(text) < len("ab") or set(delta) - {"role", "content"}:
        return
    second = copy.deepcopy(data)
    half = len(text) // 2
    delta["content"], second["choices"][0]["delta"] = text[:half], {"content": text[half:]}
    second["choices"][0].pop("logprobs", None)
    chat.kept["more"] = [second]


def comments_as_data(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments that keep a stream alive are passed on as if they were events."""
    for line in lines:
        yield b"data: " + line.removeprefix(b":").lstrip() if line.startswith(b":") else line


def comments_in_between(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments stand between events, as the format of streams allows; nothing is lost."""
    yield COMMENT
    told = 0
    for line in lines:
        yield line
        told += not line.strip()
        if not line.strip() and told % EVERY == 0:
            yield COMMENT


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        null_content_refused,
        people_masked,
        one_replica_old,
        newer_limit_dropped,
        bias_of_another,
        first_part_only,
        same_role_last,
    )
}
AFTER: dict[str, Operation] = {o.__name__: o for o in (html_escaped, pieces_trimmed_all, pieces_smaller)}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (comments_as_data, comments_in_between)
}
