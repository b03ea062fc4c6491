"""The effect of a parser: a digest of everything that the proof observes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from importer.chat_template.samples import Sample
from importer.engines.parsers import Reading, Replay


def effect_of(
    samples: Sequence[Sample],
    readings: Iterable[Reading],
    replays: Mapping[str, Replay],
    setting: Mapping[str, object] | None,
) -> str:
    """Return the digest of all that the proof observes of a parser: whole, in pieces, and its grammar."""
    seen: list[Any] = [dict(setting or {})]
    for sample, reading in zip(samples, readings, strict=True):
        seen.append([sample.case, _observed(reading), reading.forbidden is not None])
    for case, replay in sorted(replays.items()):
        examples = [[e.split, _observed(e.reading)] for e in replay.examples]
        seen.append([case, replay.different, replay.count, examples])
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _observed(reading: Reading) -> Any:
    """Return a reading as a client sees it: white space around texts and inside of JSON does not count."""
    if reading.error is not None:
        return "error"
    calls = [[call.name, _value(call.arguments)] for call in reading.calls]
    return [calls, (reading.reasoning or "").strip(), (reading.content or "").strip()]


def _value(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
