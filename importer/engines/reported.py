"""What an engine's log says of the memory it took, in bytes; for now vLLM's does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from importer.fit.devices import GIB

HEAD = 1024 * 1024  # bytes of a log: all of it is said before the first request
NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
WEIGHTS = re.compile(rf"Model loading took {NUMBER} GiB")
CACHE = re.compile(rf"Available KV cache memory: {NUMBER} GiB|(?:Explicitly|Auto) set \({NUMBER}/")
TOKENS = re.compile(
    r"KV cache size: ([0-9][0-9,]{0,18}) tokens, Maximum concurrency for ([0-9][0-9,]{0,18}) tokens"
)


@dataclass(frozen=True, slots=True)
class Reported:
    """Bytes of weights and KV cache on one device; tokens in that cache, and of one sequence."""

    weights: int | None = None
    cache: int | None = None
    tokens: int | None = None
    context: int | None = None


def read(log: Path) -> Reported:
    """What stands in the beginning of a log; nothing of what does not."""
    with log.open("rb") as file:
        text = file.read(HEAD).decode(errors="replace")
    weights, cache, tokens = (pattern.search(text) for pattern in (WEIGHTS, CACHE, TOKENS))
    return Reported(
        weights=None if weights is None else int(float(weights[1]) * GIB),
        cache=None if cache is None else int(float(cache[1] or cache[2]) * GIB),
        tokens=None if tokens is None else int(tokens[1].replace(",", "")),
        context=None if tokens is None else int(tokens[2].replace(",", "")),
    )
