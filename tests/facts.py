"""Reasons in tests: any text as one, and the texts of those that decisions have."""

from __future__ import annotations

from importer.decisions.decision import Decision
from importer.proof.parser_verdict import ProofReason
from importer.reasons import Reason
from importer.sentences import render


def as_reason(text: str) -> Reason:
    """A reason that says the text, as one of an unknown kind has it."""
    return Reason(ProofReason.RECORDED, text=text)


def whys(decision: Decision) -> list[str]:
    """The texts of a decision's reasons."""
    return [render(reason) for reason in decision.why]


def losses(decision: Decision) -> list[str]:
    """The texts of what lost, and why."""
    return [render(lost.why) for lost in decision.overruled]
