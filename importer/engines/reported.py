"""What an engine's log says of the memory it took, in bytes; for now vLLM's does."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.memory.devices import GIB

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


def read_memory(log: Path) -> Reported:
    """Return what stands in the beginning of a log; nothing of what does not."""
    with log.open("rb") as file:
        text = file.read(HEAD).decode(errors="replace")
    weights, cache, tokens = (pattern.search(text) for pattern in (WEIGHTS, CACHE, TOKENS))
    return Reported(
        weights=None if weights is None else int(float(weights[1]) * GIB),
        cache=None if cache is None else int(float(cache[1] or cache[2]) * GIB),
        tokens=None if tokens is None else int(tokens[1].replace(",", "")),
        context=None if tokens is None else int(tokens[2].replace(",", "")),
    )


# vLLM: what it was started with, what it made of that, and the sampling of requests that send none.
# Of a line only the first place is looked at: where nothing follows there, nothing follows a later one.
GIVEN = re.compile(r"^(?>.*?non-default args: (?=\{))(\{.*\})", re.MULTILINE)
MADE = re.compile(r"engine \(v\S+\) with config: .*")
SAMPLING = re.compile(r"^(?>.*?ampling param\S* ).*?(\{[^{}\n]*\})", re.MULTILINE)
# vllm-mlx, one line each.
BANNER = r"^ *{}: (?:ENABLED \(parser: (?P<name>[^\s)]+)\)|Use --)"
SHORTEST = 4  # letters of a flag that stands for a longer name
LONGEST = 20_000  # characters of a line that are looked at


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """Each is ``None`` where the engine does not say; an empty name is its word that it has no parser.

    ``infers``    the engine chose its parsers by itself.
    ``sampling``  has the request's names and what the model's files or the start say; the rest is vLLM's own.
    """

    tool_parser: str | None = None
    reasoning_parser: str | None = None
    sampling: Mapping[str, float] | None = None
    prefix_caching: bool | None = None
    infers: bool = False


def read_settings(log: str, health: bytes = b"") -> EffectiveSettings:
    """Return what stands in the beginning of a log, and else in the answer of ``/health``."""
    if (given := GIVEN.search(log)) is None:
        tools, thoughts = (_banner(log, what) for what in ("Tool calling", "Reasoning"))
        return _from_health(health) if tools is None else EffectiveSettings(tools, thoughts)
    line, made = given[1][:LONGEST], MADE.search(log)
    cached = re.search(r"\benable_prefix_caching=(True|False)\b", made[0]) if made else None
    return EffectiveSettings(
        tool_parser=_named(line, "tool_call_parser"),
        reasoning_parser=_named(line, "reasoning_parser"),
        sampling=_sampling(log),
        prefix_caching=cached[1] == "True" if cached else None,
    )


def _banner(log: str, what: str) -> str | None:
    found = re.search(BANNER.format(what), log, re.MULTILINE)
    return None if found is None else found["name"] or ""


def mentions(told: Sequence[str], name: str) -> bool:
    """Return whether a command's words, or the files that they name, speak of a sampling value.

    ``--temp 1``, ``--default-temperature=1`` and ``{"temperature": 1.0}`` all speak of ``temperature``.
    """
    flags = (word.partition("=")[0].lstrip("-").replace("-", "_") for word in told if word.startswith("--"))
    if any(flag.endswith(name) or (len(flag) >= SHORTEST and name.startswith(flag)) for flag in flags):
        return True
    return any(f'"{name}"' in word for word in told)


def _named(line: str, key: str) -> str:
    found = re.search(rf"'{key}': '([^'\n]*)'", line)
    return found[1] if found else ""


def _sampling(log: str) -> dict[str, float] | None:
    found = SAMPLING.search(log)
    if found is None or len(found[1]) > LONGEST:
        return None
    try:
        values = ast.literal_eval(found[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    numbers = (int, float)
    return {k: v for k, v in values.items() if isinstance(k, str) and isinstance(v, numbers)}


def _from_health(body: bytes) -> EffectiveSettings:
    """mlx-vlm tells its parser and whether its prefix cache is on."""
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        return EffectiveSettings()
    if not isinstance(told, dict):
        return EffectiveSettings()
    cached = told.get("apc_enabled")
    parser = told.get("loaded_tool_parser", False)
    return EffectiveSettings(
        tool_parser=(parser or "") if parser is None or isinstance(parser, str) else None,
        prefix_caching=cached if isinstance(cached, bool) else None,
        infers=True,
    )
