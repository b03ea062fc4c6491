"""Sampling values the vendor published in ``generation_config.json``, and what of it is no such value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.evidence.fact import Evidence
from importer.evidence.values import is_number, usable
from importer.hub.snapshot import Snapshot

FILE = "generation_config.json"

# transformers' name and LocalAI's YAML name.
KEYS = (
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("repetition_penalty", "repeat_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
)
# transformers' limits on length; what each counts.
LENGTHS = (("max_new_tokens", "new tokens"), ("max_length", "tokens of prompt and answer together"))
# What transformers does and the engines do not, each with the value that asks for nothing.
OTHERS = {
    "num_beams": 1, "typical_p": 1, "epsilon_cutoff": 0, "eta_cutoff": 0, "no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1, "diversity_penalty": 0, "num_beam_groups": 1, "penalty_alpha": 0,
}  # fmt: skip


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """One fact per value that is a number in range; zero is a value, null is not, a count is whole."""
    data = snapshot.json(FILE)
    return [*_greedy(data), *_values(data), *_implied(data), *_lengths(data), *_others(data)]


def _greedy(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """``do_sample: false`` is greedy decoding, whatever temperature stands beside it."""
    if data.get("do_sample") is False:
        yield _fact("parameters.temperature", 0, "do_sample: false")


def _values(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for theirs, ours in KEYS:
        given = data.get(theirs)
        if not is_number(given):
            continue
        said, quote = usable(ours, given), f"{theirs}: {given}"
        if said is not None:
            yield _fact(f"parameters.{ours}", said, quote)
        else:
            says = f"the vendor's {FILE} says {quote:.60}, which is no value that an engine takes"
            yield Evidence("generation-config-unusable", f"parameters.{ours}", None, FILE, says, quote[:60])


def _implied(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """Sampling without a temperature is sampling at 1: the library's default, heard after the tables."""
    if data.get("do_sample") is True and not is_number(data.get("temperature")):
        quote = "do_sample: true"
        says = f"the vendor's {FILE} says {quote} and no temperature, which is 1 in transformers"
        yield Evidence("generation-config-implied", "parameters.temperature", 1.0, FILE, says, quote)


def _lengths(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, counted in LENGTHS:
        said = usable("max_tokens", data.get(key))
        if said is not None:
            quote = f"{key}: {said}"
            says = f"the vendor's {FILE} says {quote} ({counted}), a limit for transformers' own generate()"
            yield Evidence("generation-config-length", "parameters.max_tokens", said, FILE, says, quote)


def _others(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, neutral in OTHERS.items():
        value = data.get(key)
        if is_number(value) and value != neutral:
            quote = f"{key}: {value}"[:60]
            says = f"the vendor's {FILE} says {quote}, which no engine here does"
            yield Evidence("generation-config-other", f"generation_config.{key}", None, FILE, says, quote)


def _fact(key: str, value: float, quote: str) -> Evidence:
    return Evidence("generation-config", key, value, FILE, f"the vendor's {FILE} says {quote}", quote)
