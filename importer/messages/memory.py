"""Sentences about an estimate of memory, and about the devices that it is made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _too_large(fields: Mapping[str, Any]) -> str:
    each = " on each" if fields["each"] else ""
    over = f"{fields['over']} more than the {fields['budget']} that can be used"
    parts = ", ".join(fields["parts"])
    return "; ".join((f"it does not fit {fields['device']}: {parts}{each}, {over}", *fields["ways"]))


def _several(what: str) -> Text:
    def says(fields: Mapping[str, Any]) -> str:
        of = "" if fields["of"] is None else f" of {fields['of']}"
        return f"{fields['cards']}{of} {what}{fields['device']}, {fields['budget']} of each,"

    return says


def _split(why: str) -> Text:
    def says(fields: Mapping[str, Any]) -> str:
        of = "" if fields["of"] is None else f" of {fields['of']}"
        return f"{fields['cards']}{of} {fields['device']} together hold the model; {why.format_map(fields)}"

    return says


FIT: dict[str, dict[str, Text]] = {
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


MEMORY: dict[str, dict[str, Text]] = {
    "ShapeField": {
        "layers": "the number of layers",
        "hidden": "the hidden size",
        "vocabulary": "the vocabulary's size",
    },
    "UnknownReason": {
        "config": "{label} has no config.json that could be read",
        "shape-field": "config.json does not say {field}",
        "size": "no file says how large the weights are, and {why}",
        "too-many-layers": "config.json says {number} layers, more than {most}",
    },
    "SizeReason": {
        "config": "config.json describes {parameters:,} parameters in {dtype}; "
        "no file says how large they are",
        "config-without-tower": "config.json describes {parameters:,} parameters in {dtype}; "
        "no file says how large they are, nor its tower of vision or sound",
        "files": "as large as its weight files, with their headers: {count} of them",
        "headers": "the headers of its files list {count:,} tensors",
        "hub": "the Hub counts {counts}",
        "index": "{file} says total_size: {size}",
        "no-tower": "{why}; without the tower of vision or sound",
    },
    "TermReason": {
        "activations": "{tokens:,} tokens of one step through the widest layer",
        "arrays": "{sequences} x {tokens:,} tokens in {dtype}: {kinds}",
        "cast": "loaded in {dtype}",
        "drafts-left-out": "without the layers that only draft",
        "engine": "the engine itself, with nothing loaded",
        "engine-and-buffers": "the engine itself, and buffers between cards",
        "graphs": "recorded CUDA graphs; enforce_eager leaves them out",
        "logits": "{rows:,} rows of {values:,} values, in 16 and in 32 bits",
        "pages": "{sequences} x {tokens:,} tokens in {dtype}, {each:,.0f} bytes each: {kinds}",
        "projection-twice": "with MLA's projection kept twice",
        "share": "{share:.0%} of them on each of {devices}",
        "state-arrays": "{sequences} x {size:,} bytes, however long the sequence",
        "state-pages": "{sequences} sequences, {count} pages of {size:,} bytes each",
        "weights": "{parts:;}",
    },
    "ContextReason": {
        "fits": "all {tokens:,} tokens fit",
        "less": "{tokens:,} tokens take {over:,} bytes more than are left",
        "none": "{over:,} bytes too many before any context; {why}",
    },
    "DeviceReason": {
        "count": "from 1 to {most} of a kind",
        "size-form": "it is a number and a unit, such as 48GiB or 800MB",
        "size-range": "from 1 MiB to 1024 TiB",
        "whole-machine": "{device} is a whole machine, and engines do not spread over several",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**FIT, **MEMORY}
