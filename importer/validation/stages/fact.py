"""Facts about one exchange, rung by rung: what was compared, and whether the neighbours agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from importer.reasons import Reason


class Rung(StrEnum):
    """The steps from messages to a client's answer, in their order.

    ``files``     the files of the import to those beside the weights.
    ``messages``  the client's request to the one that the server renders.
    ``template``  messages to the text of the prompt.
    ``tokens``    that text to the tokens that the engine counts.
    ``drawn``     the prompt to the text that the model writes.
    ``parsed``    that text to the reading of the parsers in use, run without the engine.
    ``whole``     that reading to the answer in one piece.
    ``stream``    that reading to the streamed answer.
    ``gateway``   the server's answer to the one that the client gets.
    """

    FILES = "files"
    MESSAGES = "messages"
    TEMPLATE = "template"
    TOKENS = "tokens"
    DRAWN = "drawn"
    PARSED = "parsed"
    WHOLE = "whole"
    STREAM = "stream"
    GATEWAY = "gateway"


ORDER = tuple(Rung)
ANSWER = (Rung.DRAWN, Rung.PARSED, Rung.WHOLE, Rung.STREAM)  # between the prompt and the answer


class FactReason(StrEnum):
    """What a comparison of two rungs has shown."""

    RENDERED = "rendered"
    REFUSES = "refuses"
    NO_TEMPLATE_HERE = "no-template-here"
    COUNTED_ALIKE = "counted-alike"
    COUNTED_OTHERWISE = "counted-otherwise"
    NOT_COUNTED = "not-counted"
    WRITTEN = "written"
    WRITTEN_OTHERWISE = "written-otherwise"
    NOT_PROVED = "not-proved"
    READ_RIGHT = "read-right"
    READ_RIGHT_BY = "read-right-by"
    READ_WRONG = "read-wrong"
    NOT_READ = "not-read"
    SERVED_AS_READ = "served-as-read"
    SERVED_OTHERWISE = "served-otherwise"
    OTHER_DRAW = "other-draw"
    STREAMS_APART = "streams-apart"
    STREAMS_ALIKE = "streams-alike"


State = Literal["holds", "broken", "unseen"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One rung of one exchange.

    ``state``   whether it agrees with the rung before it; ``unseen`` where one of the two is not known.
    ``prompt``  the name of the exchange's prompt.
    ``reason``  what was compared.
    """

    rung: Rung
    state: State
    prompt: str
    reason: Reason

    def to_json(self) -> dict[str, Any]:
        """Return the fact for programs; a report adds its text."""
        fields = self.reason.to_json()
        return {
            "rung": self.rung.value,
            "state": self.state,
            "prompt": self.prompt,
            "kind": fields.pop("kind"),
            "fields": fields,
        }


Facts = tuple[Fact, ...]


def by_rung(facts: Iterable[Fact]) -> Mapping[Rung, Fact]:
    """Return the facts by rung, in the order of the rungs."""
    known = {fact.rung: fact for fact in facts}
    return {rung: known[rung] for rung in ORDER if rung in known}


def first_broken(facts: Iterable[Fact]) -> Fact | None:
    """Return the fact of the first broken rung: all that stands behind it follows."""
    return next((fact for fact in by_rung(facts).values() if fact.state == "broken"), None)


def broken_in_answer(facts: Iterable[Fact]) -> Fact | None:
    """Return the fact of the first broken rung behind the prompt."""
    return first_broken(fact for fact in facts if fact.rung in ANSWER)
