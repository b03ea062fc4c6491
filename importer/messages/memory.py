"""Sentences about an estimate of memory, and about the devices that it is made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
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
