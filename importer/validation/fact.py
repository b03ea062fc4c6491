"""Facts about one exchange, rung by rung: what was compared, and whether the neighbours agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind


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


def _served_otherwise(fields: Fields) -> str:

    change = f": {fields['change']}" if fields.get("change") else ""
    return f"the answer is not what the parsers read of its tokens{change}"


class FactReason(ReasonKind):
    """What a comparison of two rungs has shown."""

    RENDERED = "rendered", "the template renders it"
    REFUSES = "refuses", "the template refuses it: {says}"
    NO_TEMPLATE_HERE = "no-template-here", "no template is at hand"
    COUNTED_ALIKE = (
        "counted-alike",
        "the engine counts {tokens} tokens, as the tokenizer does in the template's text",
    )
    COUNTED_OTHERWISE = (
        "counted-otherwise",
        "the engine counts {engine} tokens, and the template's text has {template}",
    )
    NOT_COUNTED = "not-counted", "the tokens of the prompt are not known"
    WRITTEN = "written", "the model writes: {text}"
    WRITTEN_OTHERWISE = (
        "written-otherwise",
        "no parser that reads the template's form reads what the model writes: {text}",
    )
    NOT_PROVED = "not-proved", "the form of the template is not proved"
    READ_RIGHT = "read-right", "the configured parsers read this text right (tested without the server)"
    READ_RIGHT_BY = (
        "read-right-by",
        "{parser} reads this text right, and the configured parser does not (tested without the server)",
    )
    READ_WRONG = "read-wrong", "the configured parsers misread this text (tested without the server)"
    NOT_READ = "not-read", "the parsers could not be tested without the server"
    SERVED_AS_READ = "served-as-read", "the answer is what the parsers read of its tokens"
    SERVED_OTHERWISE = "served-otherwise", _served_otherwise
    OTHER_DRAW = "other-draw", "the tokens of this answer are not shown"
    STREAMS_APART = "streams-apart", "in pieces, its parsers read {different} of {of} streams otherwise"
    STREAMS_ALIKE = "streams-alike", "in pieces, its parsers read all {of} streams as they read the whole"


State = Literal["holds", "broken", "unseen"]


@frozen
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

    def to_json(self) -> dict[str, object]:
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
