"""Sampling values the vendor published in ``generation_config.json``, and what of it is no such value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule
from importer.signals.sampling_values import GenerationReason, is_number, usable

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
# What transformers does and the engines do not, each with the value that asks for nothing.
OTHERS = {
    "num_beams": 1, "typical_p": 1, "epsilon_cutoff": 0, "eta_cutoff": 0, "no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1, "diversity_penalty": 0, "num_beam_groups": 1, "penalty_alpha": 0,
}  # fmt: skip


# transformers' limits on length, each by what it counts: the answer, or prompt and answer together.
LENGTHS = (("max_new_tokens", GenerationReason.NEW_TOKENS), ("max_length", GenerationReason.ALL_TOKENS))


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return one fact per value that is a number in range; zero is a value, null is not, a count is whole."""
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
            reason = Reason(GenerationReason.UNUSABLE, file=FILE, quote=quote[:60])
            key = f"parameters.{ours}"
            yield Evidence(Rule.GENERATION_CONFIG_UNUSABLE, key, None, FILE, reason, quote[:60])


def _implied(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """Yield sampling without a temperature is sampling at 1: the library's default, heard after the
    tables.
    """
    if data.get("do_sample") is True and not is_number(data.get("temperature")):
        quote = "do_sample: true"
        reason = Reason(GenerationReason.IMPLIED, file=FILE, quote=quote)
        yield Evidence(Rule.GENERATION_CONFIG_IMPLIED, "parameters.temperature", 1.0, FILE, reason, quote)


def _lengths(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, kind in LENGTHS:
        said = usable("max_tokens", data.get(key))
        if said is not None:
            quote = f"{key}: {said}"
            reason = Reason(kind, file=FILE, quote=quote)
            yield Evidence(Rule.GENERATION_CONFIG_LENGTH, "parameters.max_tokens", said, FILE, reason, quote)


def _others(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, neutral in OTHERS.items():
        value = data.get(key)
        if is_number(value) and value != neutral:
            quote = f"{key}: {value}"[:60]
            reason = Reason(GenerationReason.NOT_DONE, file=FILE, quote=quote)
            place = f"generation_config.{key}"
            yield Evidence(Rule.GENERATION_CONFIG_OTHER, place, None, FILE, reason, quote)


def _fact(key: str, value: float, quote: str) -> Evidence:
    reason = Reason(GenerationReason.VALUE, file=FILE, quote=quote)
    return Evidence(Rule.GENERATION_CONFIG, key, value, FILE, reason, quote)
