"""The probe of the tokenizer beside the weights: it keeps every letter, and uses its vocabulary."""

from __future__ import annotations

from unicodedata import normalize

from importer.engines.tokenizer import Tokenized
from importer.reasons import Reason, ReasonKind
from importer.validation import tokens
from importer.validation.context import Context, together
from importer.validation.expectations import Expectations, no_chat
from importer.validation.fact import Rung
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import SUM
from importer.validation.tokens import KINDS, OWN, TEXT, OtherTokens, letters, round_trip
from importer.validation.tool_markup import call_markup, thinking_markup


class TokenizerReason(ReasonKind):
    """The reasons of ``tokenizer-whole``."""

    KEPT = "kept", "every letter is kept"
    CHANGED = "changed", "the tokenizer makes {back!r} of {text!r}"
    UNUSED = "unused", "of {sampled} words of its vocabulary the tokenizer makes {reached}"
    USED = "used", "{reached} of {sampled} words of the vocabulary are in use"
    IN_PLACE = "in-place", "no marker stands in another's place"
    ADDED_BEHIND = "added-behind", "the tokenizer adds {token} behind each text by itself"
    CROSSED = "crossed", "the model closes a thought with {marker}: added tokens have each other's number"
    BY_CHANCE = "by-chance", "the tokenizer makes other tokens of the same text each time"
    SPLIT = "split", "the marker {marker} is no token of its own within a prompt"
    OTHERS_DRAWN = (
        "others-drawn",
        (
            "the model draws {tokens} tokens, and the tokenizer makes {other} of them otherwise in the same "
            "text, such as {example!r}"
        ),
    )
    AS_DRAWN = "as-drawn", "{same} of {tokens} tokens that the model drew are those of their text"


NAME = "tokenizer-whole"
LESSON = (
    "Tokenizers saved again lost accents, capitals, spaces or merges; the model was blamed for its answers."
)
UNKNOWN = "<unk>"
ENOUGH = 20  # words of a vocabulary; fewer have no verdict
LEAST = 0.05  # of them that a text yields at least; of whole tokenizers it is more than half


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every model has a tokenizer."""
    return None


def run(ctx: Context) -> Outcome:
    """Judge texts after tokenization and back, without the engine, then markers and tokens of answers."""
    result = round_trip(ctx)
    if result is None:
        return NotApplicable(ctx.no_tokenizer)
    outcomes = {"text": judge_text(result.back[0]), "vocabulary": judge_vocabulary(result)}
    outcomes |= {"kinds": judge_kinds(result), "tokens": judge_tokens(result)}
    if not no_chat(ctx.promise):
        outcomes["end"] = judge_end(result)
        seen = ctx.look(SUM)
        outcomes["markers"] = judge_markers(seen.written if seen is not None else ctx.raw(SUM) or "")
        other = tokens.compared_sampled_tokens(ctx)
        outcomes |= {} if other is None else {"drawn": judge_drawn(other)}
    return together(outcomes)


def judge_text(back: str) -> Outcome:
    """Judge ``TEXT`` after tokenization and back; spaces may move, and some vocabularies lack a letter."""
    if UNKNOWN in back or letters(back) == letters(TEXT):
        return Pass(Reason(TokenizerReason.KEPT))
    return Fail(Reason(TokenizerReason.CHANGED, back=back[:80], text=TEXT), "configuration", OWN)


def judge_kinds(result: Tokenized) -> Outcome:
    """Judge ``KINDS`` after tokenization and back: tokens of bytes keep all, accents as they are composed."""
    back = result.back[2]
    if not result.exact or back == normalize("NFC", KINDS):
        return Pass(Reason(TokenizerReason.KEPT))
    return Fail(Reason(TokenizerReason.CHANGED, back=back[:80], text=KINDS), "configuration", OWN)


def judge_tokens(result: Tokenized) -> Outcome:
    """Judge the tokens of the texts: the same each time, and each marker of the template one of its own."""
    if not result.steady:
        return Fail(Reason(TokenizerReason.BY_CHANCE), "configuration", OWN)
    if result.split:
        return Fail(Reason(TokenizerReason.SPLIT, marker=result.split[0]), "configuration", OWN)
    return Pass(Reason(TokenizerReason.IN_PLACE))


def judge_end(result: Tokenized) -> Outcome:
    """Judge what the tokenizer adds behind a text: a text that ends so is not gone on with."""
    if not result.behind:
        return Pass(Reason(TokenizerReason.IN_PLACE))
    reason = Reason(TokenizerReason.ADDED_BEHIND, token=result.behind[0])
    return Fail(reason, "configuration", OWN)


def judge_drawn(other: OtherTokens) -> Outcome:
    """Judge the tokens of greedy answers: a model draws those that it has learnt."""
    if not other.many:
        return Pass(Reason(TokenizerReason.AS_DRAWN, same=other.tokens - other.other, tokens=other.tokens))
    reason = Reason(
        TokenizerReason.OTHERS_DRAWN, rung=Rung.TOKENS, other=other.other, tokens=other.tokens,
        example=other.example,
    )  # fmt: skip
    return Fail(reason, "configuration", OWN)


def judge_vocabulary(result: Tokenized) -> Outcome:
    """Judge the share of the vocabulary that texts can yield."""
    if result.sampled >= ENOUGH and result.reached < LEAST * result.sampled:
        reason = Reason(TokenizerReason.UNUSED, sampled=result.sampled, reached=result.reached)
        return Fail(reason, "configuration", OWN)
    return Pass(Reason(TokenizerReason.USED, reached=result.reached, sampled=result.sampled))


def judge_markers(written: str) -> Outcome:
    """Judge an answer without tools: a call's marker must not close a thought."""
    thought = thinking_markup(written)
    behind = written.partition(thought)[2] if thought is not None and "/" not in thought else ""
    crossed = call_markup(behind) if thinking_markup(behind) is None else None
    if crossed is None:
        return Pass(Reason(TokenizerReason.IN_PLACE))
    reason = Reason(TokenizerReason.CROSSED, marker=crossed)
    return Fail(reason, "configuration", OWN)
