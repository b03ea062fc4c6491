"""Sentences about memory: what fits a device, and what was chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _too_large(told: Mapping[str, Any]) -> str:
    each = " on each" if told["each"] else ""
    over = f"{told['over']} more than the {told['budget']} that can be used"
    parts = ", ".join(told["parts"])
    return "; ".join((f"it does not fit {told['device']}: {parts}{each}, {over}", *told["ways"]))


def _several(what: str) -> Text:
    def says(told: Mapping[str, Any]) -> str:
        of = "" if told["of"] is None else f" of {told['of']}"
        return f"{told['cards']}{of} {what}{told['device']}, {told['budget']} of each,"

    return says


def _split(why: str) -> Text:
    def says(told: Mapping[str, Any]) -> str:
        of = "" if told["of"] is None else f" of {told['of']}"
        return f"{told['cards']}{of} {told['device']} together hold the model; {why.format_map(told)}"

    return says


TEXTS: dict[str, dict[str, Text]] = {
    "AmountReason": {
        "of-nodes": _several("memory nodes of "),
        "of-one": "{budget} of {device}",
        "of-several": _several(""),
        "cache": "KV cache {size} per token",
        "rest": "the rest {likely:.1f} to {high}",
        "weights": "weights {size}",
    },
    "FitReason": {
        "holds": "{usable} hold {tokens:,} tokens: {parts}",
        "would-hold-all": "{held}; {devices:or} would hold all {tokens:,}",
        "too-large": _too_large,
        "would-hold": "{devices:or} would hold {tokens:,} tokens",
        "quantised-is-smaller": "a repository with quantised weights takes less",
        "tensor-split": _split("{heads} heads divide by it"),
        "pipeline-split": _split("no wider split divides the layers"),
        "share": "{budget} of the {memory} of {device}",
        "larger-share": "{budget} of the {memory} of {device}; with the usual {usual} the context would be "
        "shorter",
        "cache": "{count} x {tokens:,} tokens; left to itself, vLLM would take all memory",
        "no-bfloat16": "{device} does not calculate in bfloat16; warning: float16 ends at 65,504",
        "no-bfloat16-overflows": "{device} does not calculate in bfloat16, and float16 overflows with this "
        "model",
        "halved": "the weights are in {stored}; vLLM takes {usual}, which takes half the memory",
        "overflows": "the weights are in {stored}; vLLM takes {usual}, since float16 overflows with this "
        "model",
        "stored": "{file} says the weights are in {stored}",
        "not-known": "not known what {device} holds: {why}",
        "no-length": "no file names a context length",
    },
}
