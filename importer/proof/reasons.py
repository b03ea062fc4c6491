"""Why a parser does not read a template, or was not asked; and these reasons as receipts keep them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from importer.engines.failures import Accident, ParserFailure
from importer.reasons import Reason


class JudgeReason(StrEnum):
    """How a reading differs from what was written."""

    ERROR = "error"  # in the parser's own words
    ACCIDENT = "accident"  # a busy or full machine may have stopped it
    OTHER_COUNT = "other-count"
    NO_ANSWER = "no-answer"
    NO_REASONING = "no-reasoning"
    OTHER_REASONING = "other-reasoning"
    NO_CONTENT = "no-content"
    OTHER_CONTENT = "other-content"
    OTHER_NAME = "other-name"
    NOT_JSON = "not-json"
    NOT_AN_OBJECT = "not-an-object"
    LOST_ARGUMENT = "lost-argument"
    OTHER_VALUE = "other-value"
    INVENTED_ARGUMENT = "invented-argument"


class ProofReason(StrEnum):
    """What a proof found, or why there is none."""

    READ = "read"
    NOT_PROVED = "not-proved"
    NOTHING_RENDERED = "nothing-rendered"
    NO_CALLS = "no-calls"
    NO_THINKING = "no-thinking"
    OWN_RENDERER = "own-renderer"
    ENGINE_FAILED = "engine-failed"
    CASE = "case"
    WHOLE_ONLY = "whole-only"
    NOT_REPLAYED = "not-replayed"
    SPLITS_DIFFER = "splits-differ"
    RECORDED = "recorded"  # an older receipt has its text alone


KINDS: Mapping[str, type[StrEnum]] = {
    kinds.__name__: kinds for kinds in (JudgeReason, ProofReason, Accident, ParserFailure)
}


def recorded(text: str, twin: Any = None) -> Reason:
    """The reason that a receipt keeps; where it has no kind that is known here, its text."""
    found = _read(twin)
    return found if isinstance(found, Reason) else Reason(ProofReason.RECORDED, text=text)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    name, _, kind = str(value.get("kind")).partition(".")
    if name not in KINDS or kind not in {*KINDS[name]}:
        return None
    return Reason(KINDS[name](kind), **{k: _read(v) for k, v in value.items() if k != "kind"})
