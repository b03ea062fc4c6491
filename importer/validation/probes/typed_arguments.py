"""Arguments of every type, nested and not in ASCII, arrive as what they are, encoded once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from importer.reasons import Reason
from importer.validation.calls import both_ways, judge_call
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import TRIP, TRIP_TOOL


class TypedArgumentsReason(StrEnum):
    """What ``typed-arguments`` finds."""

    POINTED = "pointed"


NAME = "typed-arguments"
LESSON = "Values from XML were always text: arrays and objects came encoded twice, numbers in quotes."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Return whole and streamed; the tool's schema is the judge, which takes 2.0 for a whole number."""
    found = both_ways(ctx, TRIP, lambda reply: judge_call(reply, TRIP))
    if not isinstance(found, Pass):
        return found
    calls = [call for stream in (False, True) for call in ctx.first(TRIP, stream=stream).tool_calls]
    pointed = [number for call in calls for number in whole_with_point(call.arguments)]
    seen = ctx.look(TRIP) if pointed else None
    return (judge_pointed(pointed, seen.written) if seen is not None else None) or found


def whole_with_point(arguments: str) -> list[str]:
    """Yield whole numbers with a point or an exponent, as they are spelled, where the tool wants an
    integer.
    """

    class Spelled(str):
        """A number with a point or an exponent."""

    def found(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
        if isinstance(value, Spelled) and schema.get("type") == "integer" and float(value).is_integer():
            yield str(value)
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield from found(inner, schema.get("properties", {}).get(key, {}))

    try:
        return list(found(json.loads(arguments, parse_float=Spelled), TRIP_TOOL["function"]["parameters"]))
    except (ValueError, RecursionError):
        return []


def judge_pointed(pointed: Sequence[str], written: str) -> Fail | None:
    """Return whole numbers that arrived with a point, beside what the model wrote; ``None`` if it wrote them
    so.
    """
    number = next((n for n in pointed if n not in written), None)
    if number is None or not written.strip():
        return None
    return Fail(Reason(TypedArgumentsReason.POINTED, number=number), "engine", trials=2)
