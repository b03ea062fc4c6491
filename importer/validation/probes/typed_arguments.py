"""The probe of typed arguments: every type, nested and beyond ASCII, arrives unchanged, encoded once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.calls import both_ways, judge_call
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import TRIP, TRIP_TOOL


class TypedArgumentsReason(ReasonKind):
    """The reasons of ``typed-arguments``."""

    POINTED = "pointed", "a whole number arrives as {number}, and the model did not write it so"


NAME = "typed-arguments"
LESSON = "Values from XML were always text: arrays and objects came encoded twice, numbers in quotes."
FEATURE = "tools-as-sent"  # a small model fills in what it was trained to read
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Judge the call, whole and streamed, by the tool's schema; it accepts 2.0 for a whole number."""
    outcome = both_ways(ctx, TRIP, lambda reply: judge_call(reply, TRIP))
    if not isinstance(outcome, Pass):
        return outcome
    calls = [call for stream in (False, True) for call in ctx.first(TRIP, stream=stream).tool_calls]
    pointed = [number for call in calls for number in whole_with_point(call.arguments)]
    seen = ctx.look(TRIP) if pointed else None
    return (judge_pointed(pointed, seen.written) if seen is not None else None) or outcome


def whole_with_point(arguments: str) -> list[str]:
    """Return whole numbers spelled with a point or an exponent, where the tool has an integer."""

    class Spelled(str):
        """A number with a point or an exponent."""

    def spellings(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
        if isinstance(value, Spelled) and schema.get("type") == "integer" and float(value).is_integer():
            yield str(value)
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield from spellings(inner, schema.get("properties", {}).get(key, {}))

    try:
        return list(
            spellings(json.loads(arguments, parse_float=Spelled), TRIP_TOOL["function"]["parameters"])
        )
    except (ValueError, RecursionError):
        return []


def judge_pointed(pointed: Sequence[str], written: str) -> Fail | None:
    """Return the fault of whole numbers with a point; ``None`` if the model wrote them so."""
    number = next((n for n in pointed if n not in written), None)
    if number is None or not written.strip():
        return None
    return Fail(Reason(TypedArgumentsReason.POINTED, number=number), "engine", trials=2)
