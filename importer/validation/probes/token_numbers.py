"""The probe of token numbers: each has a row in the embedding of the served weights."""

from __future__ import annotations

from importer.engines.tokenizer import TokenTable
from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class TokenRowReason(ReasonKind):
    """The reasons of ``token-numbers``."""

    UNKNOWN = "unknown", "the numbers of the tokens, or the rows of the embedding, are unknown"
    INSIDE = "inside", "the highest number is {highest}, and the embedding has {rows} rows"
    BEYOND = "beyond", "the embedding has {rows} rows, and none for {tokens:and}"


NAME = "token-numbers"
LESSON = "A token's number lay beyond the embedding: one message with it ended the engine for everybody."
TASKS = evidence.TASKS  # of every model
SHOWN = 3  # tokens of a reason


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every model has tokens."""
    return None


def run(ctx: Context) -> Outcome:
    """Compare the tokenizer's numbers with the embedding's rows; no request is sent."""
    if ctx.table is None:
        return NotApplicable(Reason(TokenRowReason.UNKNOWN))
    return judge(ctx.table)


def judge(table: TokenTable) -> Outcome:
    """Judge the tokens that a message may hold."""
    if not table.beyond:
        return Pass(Reason(TokenRowReason.INSIDE, highest=table.highest, rows=table.rows))
    tokens = tuple(token.content or str(token.number) for token in table.beyond[:SHOWN])
    reason = Reason(TokenRowReason.BEYOND, tokens=tokens, rows=table.rows)
    return Fail(reason, "configuration", Reason(Remedy.TAKE_OUT_ADDED, tokens=tokens))
