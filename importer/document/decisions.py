"""Decisions as reports and receipts have them: rendered texts, and in receipts the kinds beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.decide.decision import Decision
from importer.evidence.fact import Severity
from importer.messages import Text, render, rendered
from importer.reasons import key_of

WARNING = key_of(Severity.WARNING)
# How a warning's text begins in receipts that have no kinds.
MARK = "warning: "


def to_json(decision: Decision, instead: Mapping[str, Text] | None = None) -> dict[str, Any]:
    """The frozen form: value, status, why, overruled; ``instead`` holds a front end's own sentences."""
    return {
        "value": decision.value,
        "status": decision.status,
        "why": [render(reason, instead) for reason in decision.why],
        "overruled": [
            {"value": o.value, "source": o.source, "why": render(o.why, instead)} for o in decision.overruled
        ],
    }


def kept(decision: Decision) -> dict[str, Any]:
    """The same with ``reasons``, the kinds and fields of ``why``, which a recheck compares."""
    return to_json(decision) | {"reasons": [reason.to_json() for reason in decision.why]}


def warnings(decision: Mapping[str, Any]) -> Iterator[str]:
    """What a decision in a receipt warns of; receipts that have no kinds mark it in the text."""
    if "reasons" in decision:
        for reason, text in zip(decision["reasons"], decision["why"], strict=False):
            if reason["kind"] == WARNING:
                yield rendered(reason.get("reason", {})) or text
        return
    yield from (text[len(MARK) :] for text in decision["why"] if text.startswith(MARK))
