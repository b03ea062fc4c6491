"""Settings at random: arguments of an engine with values of their types, and the exports that refuse them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from importer.document.argument_check import arguments_of
from importer.document.document import Document
from importer.document.engine_arguments import Argument, Kind, load
from importer.errors import ImporterError
from importer.exports import FORMATS
from importer.exports.base import Options

WORDS = ("auto", "fp8", "a b", "x", "it's", "ü", "{{.N}}", "$HOME", "1e5", "null", "FULL")
NAMES = (
    "VLLM_USE_V2_MODEL_RUNNER",
    "NCCL_DEBUG",
    "OMP_NUM_THREADS",
    "GLOO_SOCKET_IFNAME",
    "VLLM_LOGGING_LEVEL",
)
TEMPLATES = Options()


def value(
    draw: random.Random, kind: Kind, configs: Mapping[str, Mapping[str, Argument]], depth: int = 0
) -> Any:
    """Return a value of a type; not every one is valid, for names and texts have rules of their own."""
    if isinstance(kind, str):
        return _simple(draw, kind)
    if "one_of" in kind:
        return draw.choice(kind["one_of"])
    if "any_of" in kind:
        return value(draw, draw.choice(kind["any_of"]), configs, depth)
    if "list" in kind:
        return [value(draw, kind["list"], configs, depth + 1) for _ in range(draw.randint(1, 3))]
    if "map" in kind or depth > 2:
        return {
            draw.choice(("a", "b.c", "num_frames")): _simple(draw, "any") for _ in range(draw.randint(0, 2))
        }
    fields = configs[kind["config"]]
    chosen = draw.sample(sorted(fields), min(len(fields), draw.randint(1, 3)))
    return {name: value(draw, fields[name].kind, configs, depth + 1) for name in chosen}


def _simple(draw: random.Random, kind: str) -> Any:
    if kind == "bool":
        return draw.random() < 0.5
    if kind in ("int", "size"):
        return draw.choice((0, 1, 2, 8, 64, 1000, 2**33))
    if kind == "float":
        return draw.choice((0, 0.1, 0.5, 1, 1.5, 1e-7, 20))
    return draw.choice(WORDS) if kind == "str" else draw.choice((1, 0.5, True, "x"))


def settings(draw: random.Random, engine: str, version: str | None, count: int) -> Iterator[dict[str, Any]]:
    """Yield maps of ``engine_args`` and ``env``, of which most are valid."""
    registry = load(engine, version)
    configs = {} if registry is None else registry.configs
    known = arguments_of(engine, version)
    for _ in range(count):
        names = draw.sample(sorted(known), draw.randint(1, 4))
        arguments = {name: value(draw, known[name].kind, configs) for name in names}
        variables = (
            {draw.choice(NAMES): draw.choice((1, "0", True, "eth0", "a b"))} if draw.random() < 0.3 else {}
        )
        yield {"engine_args": arguments, "env": variables}


def refused(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the exports of a document's engine that raise for a document that the check accepts."""
    for name, consumer in FORMATS.items():
        try:
            consumer.export(document, None, TEMPLATES)
        except ImporterError as error:
            if error.kind != "cannot-export":
                yield name, str(error)
