"""What an engine reports in its log: its memory and its settings."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from importer.engines.logs import bounded
from importer.frozen import frozen
from importer.memory.devices import GIB
from importer.memory.measured import Reported

HEAD = 1024 * 1024  # bytes of a log: memory is reported before the first request
NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
WEIGHTS = re.compile(rf"Model loading took {NUMBER} GiB")
CACHE = re.compile(rf"Available KV cache memory: {NUMBER} GiB|(?:Explicitly|Auto) set \({NUMBER}/")
# One line of vLLM 0.12 and later has them all, behind the graphs.
DEVICE = re.compile(rf"Free memory on device [^(\n]{{0,20}}\({NUMBER}/{NUMBER} GiB\) on startup")
REQUESTED = re.compile(
    rf"tilization (?:is )?\([0-9.]{{1,8}}, {NUMBER} GiB\)|, with {NUMBER} GiB requested memory"
)
ACTIVATIONS = re.compile(rf"{NUMBER} GiB for peak activation")
GRAPHS = re.compile(rf"{NUMBER} GiB for CUDAGraph memory|Estimated CUDA graph memory: {NUMBER} GiB")
CONSUMED = re.compile(rf"{NUMBER} GiB for consumed memory|{NUMBER} GiB memory was consumed by non-kv")
TOKENS = re.compile(r"KV cache size: ([0-9][0-9,]{0,18}) tokens")
CONTEXT = re.compile(r"Maximum concurrency for ([0-9][0-9,]{0,18}) tokens")  # on the same line from 0.32 on
# vLLM: its arguments, its effective settings, and the sampling of requests without values.
# Only the first match in a line counts: where nothing follows it, nothing follows a later one.
NON_DEFAULT = re.compile(r"^(?>.*?non-default args: (?=\{))(\{.*\})", re.MULTILINE)
CONFIG = re.compile(r"engine \(v\S+\) with config: .*")
SAMPLING = re.compile(r"^(?>.*?ampling param\S* ).*?(\{[^{}\n]*\})", re.MULTILINE)
# vllm-mlx, one line each.
BANNER = r"^ *{}: (?:ENABLED \(parser: (?P<name>[^\s)]+)\)|Use --)"
SHORTEST = 4  # letters of an abbreviated flag
REPORTED_LONGEST = 20_000  # characters of a line that are read


def read_memory(log: Path) -> Reported:
    """Return the memory in the beginning of a log (for now of vLLM); ``None`` for each missing figure."""
    with log.open("rb") as file:
        return memory_of(bounded(file.read(HEAD).decode(errors="replace")))


def memory_of(text: str) -> Reported:
    """Return the memory that the text of a log reports."""

    def most(pattern: re.Pattern[str]) -> int | None:
        found = [float(next(filter(None, match.groups()))) for match in pattern.finditer(text)]
        return None if not found else int(max(found) * GIB)

    tokens, context = (p.search(text) for p in (TOKENS, CONTEXT))
    rooms = [float(next(filter(None, match.groups()))) for match in CACHE.finditer(text)]
    device = DEVICE.search(text)
    free, total = (None, None) if device is None else (int(float(n) * GIB) for n in device.groups())
    return Reported(
        weights=most(WEIGHTS),
        cache=int(min(rooms) * GIB) if rooms else None,  # that of the device with the least
        tokens=None if tokens is None else int(tokens[1].replace(",", "")),
        context=None if context is None else int(context[1].replace(",", "")),
        activations=most(ACTIVATIONS), graphs=most(GRAPHS), consumed=most(CONSUMED),
        free=free, total=total, requested=most(REQUESTED),
    )  # fmt: skip


@frozen
class EffectiveSettings:
    """The settings of a running engine, ``None`` where it does not report one; an empty name is no parser.

    ``infers``    the engine chose its parsers by itself.
    ``sampling``  by the names of requests, from the model's files or the start; other values are vLLM's own.
    """

    tool_parser: str | None = None
    reasoning_parser: str | None = None
    sampling: Mapping[str, float] | None = None
    prefix_caching: bool | None = None
    infers: bool = False


def read_settings(log: str, health: bytes = b"") -> EffectiveSettings:
    """Return the settings in the beginning of a log, else in the answer of ``/health``."""
    if (non_default := NON_DEFAULT.search(log)) is None:
        tools, thoughts = (_banner(log, what) for what in ("Tool calling", "Reasoning"))
        return _from_health(health) if tools is None else EffectiveSettings(tools, thoughts)
    line, config = non_default[1][:REPORTED_LONGEST], CONFIG.search(log)
    cached = re.search(r"\benable_prefix_caching=(True|False)\b", config[0]) if config else None
    return EffectiveSettings(
        tool_parser=_named(line, "tool_call_parser"),
        reasoning_parser=_named(line, "reasoning_parser"),
        sampling=_sampling(log),
        prefix_caching=cached[1] == "True" if cached else None,
    )


def _banner(log: str, feature: str) -> str | None:
    match = re.search(BANNER.format(feature), log, re.MULTILINE)
    return None if match is None else match["name"] or ""


def mentions(argv: Sequence[str], name: str) -> bool:
    """Return whether a command line, or a file on it, has a sampling value.

    ``--temp 1``, ``--default-temperature=1`` and ``{"temperature": 1.0}`` all set ``temperature``.
    """
    flags = (word.partition("=")[0].lstrip("-").replace("-", "_") for word in argv if word.startswith("--"))
    if any(flag.endswith(name) or (len(flag) >= SHORTEST and name.startswith(flag)) for flag in flags):
        return True
    return any(f'"{name}"' in word for word in argv)


def _named(line: str, key: str) -> str:
    match = re.search(rf"'{key}': '([^'\n]*)'", line)
    return match[1] if match else ""


def _sampling(log: str) -> dict[str, float] | None:
    match = SAMPLING.search(log)
    if match is None or len(match[1]) > REPORTED_LONGEST:
        return None
    try:
        values = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    numbers = (int, float)
    return {k: v for k, v in values.items() if isinstance(k, str) and isinstance(v, numbers)}


def _from_health(body: bytes) -> EffectiveSettings:
    """Return the parser and the state of the prefix cache that mlx-vlm reports."""
    try:
        health: Any = json.loads(body)
    except (ValueError, RecursionError):
        return EffectiveSettings()
    if not isinstance(health, dict):
        return EffectiveSettings()
    cached = health.get("apc_enabled")
    parser = health.get("loaded_tool_parser", False)
    return EffectiveSettings(
        tool_parser=(parser or "") if parser is None or isinstance(parser, str) else None,
        prefix_caching=cached if isinstance(cached, bool) else None,
        infers=True,
    )
