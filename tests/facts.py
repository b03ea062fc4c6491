"""Reasons in tests: any text as one, and the texts of those that decisions have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.decisions.decision import Decision
from importer.decisions.proved import Proved
from importer.proof.parser_verdict import ProofReason
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule


def as_reason(text: str) -> Reason:
    """A reason that says the text, as one of an unknown kind has it."""
    return Reason(ProofReason.RECORDED, text=text)


def proof(
    reads: list[str], refuted: Mapping[str, str] | None = None, *, key: str = "tool_parser", **more: Any
) -> Evidence:
    """The verdicts on parsers of which these read every case of a template that shows its tools."""
    asked, no = as_reason("asked the parsers"), {n: as_reason(why) for n, why in (refuted or {}).items()}
    known = {"asked": True, "reads": reads, "complete": reads, "refuted": no, "tools_rendered": True}
    return Evidence(Rule.PROOF, key, Proved(asked, **known | more), "proof", asked)


def whys(decision: Decision) -> list[str]:
    """The texts of a decision's reasons."""
    return [render(reason) for reason in decision.why]


def losses(decision: Decision) -> list[str]:
    """The texts of what lost, and why."""
    return [render(lost.why) for lost in decision.overruled]
