"""Sentences about an estimate of memory, and about the devices that it is made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def _neutral(fields: Mapping[str, Any]) -> str:
    holds = f"; {_or(fields['devices'])} hold {fields['tokens']:,} tokens" if fields["devices"] else ""
    return f"for no device in particular: {', '.join(fields['parts'])}{holds}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


def _stages(fields: Mapping[str, Any]) -> str:
    where = ": one or more for each machine" if fields["machines"] else ""
    return f"{fields['stages']} stages of layers, {fields['cards']} x {fields['device']} for each{where}"


def _copies(fields: Mapping[str, Any]) -> str:
    each = "one card holds" if fields["each"] == 1 else f"{fields['each']} cards hold"
    return f"{each} the model; {fields['copies']} copies share the requests"


def _experts(fields: Mapping[str, Any]) -> str:
    copies = f"; attention is copied {fields['copies']} times" if fields["copies"] > 1 else ""
    return f"whole experts are dealt out over {fields['cards']} cards{copies}"


def _slots(fields: Mapping[str, Any]) -> str:
    each = f" in each of {fields['copies']} copies" if fields["copies"] > 1 else ""
    return f"{fields['count']} sequences at the same time{each}, as requested"


def _sums(fields: Mapping[str, Any]) -> str:
    over = "their links" if fields["linked"] else "PCIe: this slows each token"
    return f"{fields['cards']} cards add up twice in each layer, over {over}"


FIT: dict[str, dict[str, Text]] = {
    "AmountReason": {
        "of-nodes": _several("memory nodes of "),
        "of-one": "{budget} of {device}",
        "of-several": _several(""),
        "cache": "KV cache {size} per token",
        "states": "states {size}",
        "rest": "the rest {likely:.1f} to {high}",
        "weights": "weights {size}",
    },
    "FitReason": {
        "holds": "{usable} hold {tokens:,} tokens: {parts}",
        "would-hold-all": "{held}; {devices:or} would hold all {tokens:,}",
        "too-large": _too_large,
        "would-hold": "{devices:or} would hold {tokens:,} tokens",
        "quantised-is-smaller": "a repository with quantised weights takes less",
        "neutral": _neutral,
        "more-cards": "{problem}; the document is for {more}",
        "no-bfloat16": "{device} does not calculate in bfloat16; warning: float16 ends at 65,504",
        "no-bfloat16-overflows": "{device} does not calculate in bfloat16, and float16 overflows with this "
        "model",
        "halved": "the weights are in {stored}; vLLM takes {usual}, which takes half the memory",
        "overflows": "the weights are in {stored}; vLLM takes {usual}, since float16 overflows with this "
        "model",
        "stored": "{file} says the weights are in {stored}",
        "stored-otherwise": "{file} describes other weights than are published: {why}",
        "not-known": "not known what {device} holds: {why}",
        "no-length": "no file names a context length",
    },
}


PLAN: dict[str, dict[str, Text]] = {
    "AimReason": {
        "no-goal": "it is one of {known}",
        "no-count": "it must be a whole number above zero",
    },
    "PlanReason": {
        "goal-latency": "goal latency: the least time for a token",
        "goal-throughput": "goal throughput: the most tokens a second of all sequences",
        "decoding-alone": "steps of decoding alone are compared; with long prompts and short answers, copies "
        "gain",
        "pooled": "each text is read in one step: copies share the texts",
        "goal-context": "goal context: the longest sequences, then the most of them",
        "tensor": "{cards} x {device} share each layer; {heads} heads divide by it",
        "experts-whole": "{cards} x {device} share attention and keep experts whole, since the blocks of "
        "their scales do not divide",
        "stages": _stages,
        "copies": _copies,
        "experts": _experts,
        "servers": "{servers:server|servers} of {cards:card|cards}: start the document once for each, with a balancer "
        "before them",
        "share": "{budget} of the {memory} of {device}",
        "larger-share": "{budget} of the {memory} of {device}; with the usual {usual} the context would be "
        "shorter",
        "cache": "{count} x {tokens:,} tokens; left to itself, vLLM would take all memory",
        "fp8-cache": "keys and values in 8 bits, in which {device} calculates: half the memory for each token",
        "slots": _slots,
        "few-slots": "{count:sequence|sequences} at the same time: the logits of more leave no room for the context",
        "batched-less": "{tokens:,} tokens of prompts in one step, so that running answers wait less",
        "batched-more": "{tokens:,} tokens of prompts in one step, so that more prompts are read at once",
        "sequences": "it holds {count:sequence|sequences} of {tokens:,} tokens at the same time",
        "asked": "{tokens:,} tokens were requested",
        "beyond": "{wanted:,} tokens were requested; the model has {most:,}",
        "fewer": "it holds {held:,} of the {wanted:,} requested sequences of {tokens:,} tokens at the same "
        "time; the others wait",
        "idle": "{count} x {device} have no part",
        "keys-copied": "{heads} heads of keys on {cards} cards: copies take memory",
        "encoder": "each of {cards} cards reads whole pictures, and nothing is added up between them; its whole "
        "encoder takes {size} more of each card",
        "encoder-copied": "each of {cards} cards keeps the whole encoder of pictures: {size} more",
        "tokens-parted": "each of {parts} cards keeps a part of the tokens of a sequence; without that the request "
        "does not fit",
        "gathered": "queries and results pass between {parts} cards in each layer: this slows each token",
        "latent-copied": "each of {cards} cards keeps the whole latent cache",
        "sums": _sums,
        "bubbles": "a token passes {stages} stages one after the other",
        "machines": "vLLM is started on each of {count} machines, with Ray or with nnodes, node_rank and "
        "master_addr",
        "local-copies": "{copies} copies on each of {machines} machines",
        "copies-of-machines": "vLLM is started on each of {count} machines, with data_parallel_address and "
        "data_parallel_start_rank",
        "rounded": "answers may differ a little from those with keys and values in 16 bits; not measured",
        "sisters": "the card names quantised repositories of it: {names:and}",
        "listed": "the Hub lists quantised repositories of it, not checked: {names:and}",
        "sister-holds": "on {device}, by the Hub's list and not checked: {name}",
        "not-even": "states or blocks of scales do not divide by {cards}: vLLM ends while it loads the model",
        "more-than-device": "it takes {needed} cards, and {device} has {count}",
        "other-engine": "{device} is served by {engine}, not by the released {backend}",
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
        "otherwise": "{why}; these are {bits} bits a parameter, where config.json describes {expected}",
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
        "state-pages": "{sequences:sequence|sequences}, {count:page|pages} of {size:,} bytes each",
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

TEXTS: dict[str, dict[str, Text]] = {**FIT, **PLAN, **MEMORY}
