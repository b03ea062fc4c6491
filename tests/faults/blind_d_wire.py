"""What a fleet's gateways do, by another author who had not read the probes: more operations of ``wire.py``.

Only Python's own library.
"""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Broken, Conversation, Data, Operation

PATIENCE = 40  # tokens of a whole answer that are written before the gateway gives up
FILLERS = (
    "a an the of is are was be to in on at and or not no do does it its with for from this that your you"
)
FILLER = re.compile(rf"\b(?:{'|'.join(FILLERS.split())})\b ?", re.IGNORECASE)
RUDE = re.compile("hell|damn|ass|tit|cum", re.IGNORECASE)
FOUND = "Opening hours: Monday to Friday, nine to five. Returns within thirty days."


class GaveUp(Broken):
    """The gateway has waited long enough for an answer."""

    status = 504


def questions_escaped(chat: Conversation, _data: Data) -> None:
    """Whatever is said is escaped as for a web page."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = html.escape(message["content"])


def prompts_compressed(chat: Conversation, _data: Data) -> None:
    """Words that stand in every sentence are taken out, to save tokens."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = FILLER.sub("", message["content"])


def documents_put_before(chat: Conversation, _data: Data) -> None:
    """The last question is wrapped into what a search has found for it."""
    last = chat.request["messages"][-1]
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        last["content"] = f"Context:\n[1] {FOUND}\n\nQuestion: {last['content']}"


def system_as_developer(chat: Conversation, _data: Data) -> None:
    """The role system is renamed as a newer interface of another provider names it."""
    for message in chat.request["messages"]:
        if message.get("role") == "system":
            message["role"] = "developer"


LATEST: list[Data] = []  # the turns of the latest chat, of the whole process


def others_remembered(chat: Conversation, _data: Data) -> None:
    """All clients share one session: the turns of the latest other chat come before the own ones."""
    own = chat.request["messages"]
    chat.kept["question"] = next((m for m in reversed(own) if m.get("role") == "user"), None)
    headed = 1 if own[0].get("role") == "system" else 0
    chat.request["messages"] = [*own[:headed], *copy.deepcopy(LATEST), *own[headed:]]


def kept_for_others(chat: Conversation, data: Data) -> None:
    """Remembers the question and its answer for the next chat."""
    question: Data = chat.kept.get("question") or {}
    for part in chat.parts(data) if chat.whole and question else ():
        if part.get("content"):
            LATEST[:] = [copy.deepcopy(question), {"role": "assistant", "content": part["content"]}]


def words_masked(chat: Conversation, data: Data) -> None:
    """Rude words are masked in answers, also where they are a part of others."""

    def masked(text: str) -> str:
        return RUDE.sub(lambda found: "*" * len(found[0]), text)

    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = masked(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = masked(function["arguments"])


def answers_as_a_page(chat: Conversation, data: Data) -> None:
    """Answers are rendered for a web page, with its tags and entities."""
    for part in chat.parts(data):
        text = part.get("content")
        if isinstance(text, str) and text:
            text = html.escape(text).replace("\n", "<br>")
            opened, chat.kept["opened"] = chat.kept.get("opened"), True
            part["content"] = text if opened else f"<p>{text}"
    for choice in data.get("choices") or ():
        part = choice.get("message" if chat.whole else "delta") or {}
        if choice.get("finish_reason") and chat.kept.get("opened"):
            part["content"] = (part.get("content") or "") + "</p>"


def equal_pieces_once(chat: Conversation, data: Data) -> None:
    """A broker keeps no event that it has had before, and tells them by their text."""
    seen: set[str] = chat.kept.setdefault("seen", set())
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            text = part.get(key)
            if isinstance(text, str) and text:
                part[key] = "" if key + text in seen else text
                seen.add(key + text)


def long_answers_given_up(chat: Conversation, data: Data) -> None:
    """A whole answer that takes long comes too late for the gateway; in streams something comes at once."""
    written = (data.get("usage") or {}).get("completion_tokens") or 0
    if chat.whole and written > PATIENCE:
        raise GaveUp("upstream request timeout")


def behind_a_disclaimer(chat: Conversation, data: Data) -> None:
    """Behind each answer in words stands a sentence of the company's."""
    for choice in data.get("choices") or ():
        part = choice.get("message" if chat.whole else "delta") or {}
        chat.kept["worded"] = chat.kept.get("worded") or bool(part.get("content"))
        if choice.get("finish_reason") and chat.kept["worded"]:
            part["content"] = (part.get("content") or "") + "\n\nAI-generated. Please check the facts."


def events_named(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Events have a name, and lines end with CR LF, both as the standard has it: harms nobody."""
    for line in lines:
        name = b"event: message\r\n" if line.startswith(b"data:") else b""
        yield name + line.replace(b"\n", b"\r\n")


def told_more(_chat: Conversation, data: Data) -> None:
    """Answers carry the time that the gateway took: harms nobody."""
    data["gateway"] = {"upstream": "engine-3", "waited": 0.004}


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        questions_escaped,
        prompts_compressed,
        documents_put_before,
        system_as_developer,
        others_remembered,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        kept_for_others,
        words_masked,
        answers_as_a_page,
        equal_pieces_once,
        long_answers_given_up,
        behind_a_disclaimer,
        told_more,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {o.__name__: o for o in (events_named,)}
