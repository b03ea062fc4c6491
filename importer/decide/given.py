"""Parsers where the chat template is not the model's own, and the offer of one where a model has no tools.

A template that the user gives says how calls would be written. Rendering it proves its parser, and nothing
about the model: what comes of it is claimed and never proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from importer.decide.decision import Chosen, Decision, Overruled
from importer.decide.target import Target
from importer.evidence.fact import Evidence
from importer.reasons import Reason

FILE = "file"  # a template that is neither the model's nor built on it


class ForeignReason(StrEnum):
    """What a template in place of the model's own means."""

    TOOLS_GIVEN = "tools-given"
    OF_A_FILE = "of-a-file"
    OF_OURS = "of-ours"
    WOULD_OFFER = "would-offer"


def given_template(
    key: str, template: str, claims: Sequence[Evidence], decide: Callable[[Sequence[Evidence]], Decision]
) -> Decision:
    """The decision under a template that the user gave: who knows the model to have no tools is overruled.

    The model's own turns stay as they are under a template of ours, and with them how it reasons.
    """
    if key != "tool_parser":
        return _claimed(decide(claims), template) if template == FILE else decide(claims)
    silent = [e for e in claims if e.value is None]
    decision = decide([e for e in claims if e.value is not None])
    lost = tuple(Overruled(None, e.source, Reason(ForeignReason.TOOLS_GIVEN, said=e.reason)) for e in silent)
    return _claimed(replace(decision, overruled=decision.overruled + lost), template)


def _claimed(decision: Decision, template: str) -> Decision:
    if not isinstance(decision, Chosen) or decision.status == "user":
        return decision
    ours = Reason(ForeignReason.OF_OURS, template=template)
    note = Reason(ForeignReason.OF_A_FILE) if template == FILE else ours
    return replace(decision, status="claimed", why=(note, *decision.why))


def with_offer(decision: Decision, target: Target) -> Decision:
    """A model without tools, with what would offer it some; nothing is applied unasked."""
    if decision.value is not None or not target.templates:
        return decision
    offer = Reason(ForeignReason.WOULD_OFFER, templates=target.templates)
    return replace(decision, why=(*decision.why, offer))
