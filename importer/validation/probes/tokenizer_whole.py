"""The tokenizer beside the weights keeps every letter, and its vocabulary is the one that it uses."""

from __future__ import annotations

from enum import StrEnum

from importer.engines.tokenizer import Tokenized
from importer.reasons import Reason
from importer.validation.context import Context, together
from importer.validation.expectations import Expectations, no_chat
from importer.validation.markup import call_markup, thinking_markup
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import SUM
from importer.validation.tokenized import OWN, TEXT, asked, letters


class TokenizerReason(StrEnum):
    """What ``tokenizer-whole`` finds."""

    NO_TOKENIZER = "no-tokenizer"
    KEPT = "kept"
    CHANGED = "changed"
    UNUSED = "unused"
    USED = "used"
    IN_PLACE = "in-place"
    CROSSED = "crossed"


NAME = "tokenizer-whole"
LESSON = (
    "Tokenizers saved again lost accents, capitals, spaces or merges; the model was blamed for its answers."
)
UNKNOWN = "<unk>"
ENOUGH = 20  # words of a vocabulary that say something of it
LEAST = 0.05  # of them that a text yields at least; of whole tokenizers it is more than half


def needs(_promise: Expectations) -> Reason | None:
    """Whatever is served has one."""
    return None


def run(ctx: Context) -> Outcome:
    """Texts to tokens and back, without the engine, which may not offer that; then an answer's markers."""
    found = asked(ctx)
    if found is None:
        return NotApplicable(Reason(TokenizerReason.NO_TOKENIZER))
    judged = {"text": judge_text(found.back[0]), "vocabulary": judge_vocabulary(found)}
    if not no_chat(ctx.promise):
        seen = ctx.look(SUM)
        judged["markers"] = judge_markers(seen.written if seen is not None else ctx.raw(SUM) or "")
    return together(judged)


def judge_text(back: str) -> Outcome:
    """TEXT after it went to tokens and back; spaces may be moved, and some vocabularies lack a letter."""
    if UNKNOWN in back or letters(back) == letters(TEXT):
        return Pass(Reason(TokenizerReason.KEPT))
    return Fail(Reason(TokenizerReason.CHANGED, back=back[:80], text=TEXT), "configuration", OWN)


def judge_vocabulary(found: Tokenized) -> Outcome:
    """Return how many words of the vocabulary a text can yield."""
    if found.sampled >= ENOUGH and found.reached < LEAST * found.sampled:
        reason = Reason(TokenizerReason.UNUSED, sampled=found.sampled, reached=found.reached)
        return Fail(reason, "configuration", OWN)
    return Pass(Reason(TokenizerReason.USED, reached=found.reached, sampled=found.sampled))


def judge_markers(written: str) -> Outcome:
    """Return an answer to which no tool was offered: a thought is not closed with a call's marker."""
    thought = thinking_markup(written)
    behind = written.partition(thought)[2] if thought is not None and "/" not in thought else ""
    crossed = call_markup(behind) if thinking_markup(behind) is None else None
    if crossed is None:
        return Pass(Reason(TokenizerReason.IN_PLACE))
    reason = Reason(TokenizerReason.CROSSED, marker=crossed)
    return Fail(reason, "configuration", OWN)
