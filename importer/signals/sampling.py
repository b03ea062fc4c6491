"""Evidence from ``generation_config.json``: sampling values, limits of length, and unusable values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import GenerationReason
from importer.signals.sampling_values import is_number, usable

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
# Settings of transformers that the engines lack, each with its neutral value.
OTHERS = {
    "num_beams": 1, "typical_p": 1, "epsilon_cutoff": 0, "eta_cutoff": 0, "no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1, "diversity_penalty": 0, "num_beam_groups": 1, "penalty_alpha": 0,
}  # fmt: skip


# transformers' limits on length, each by what it counts: the answer, or prompt and answer together.
LENGTHS = (("max_new_tokens", GenerationReason.NEW_TOKENS), ("max_length", GenerationReason.ALL_TOKENS))


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return one fact for each number in range; zero is a value, null is not, a count is whole."""
    data = snapshot.json(FILE)
    return [*_greedy(data), *_values(data), *_implied(data), *_lengths(data), *_others(data)]


def _greedy(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """Yield temperature 0 for ``do_sample: false``: greedy decoding, with any temperature beside it."""
    if data.get("do_sample") is False:
        yield _fact("parameters.temperature", 0, "do_sample: false")


def _values(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for source_key, key in KEYS:
        value = data.get(source_key)
        if not is_number(value):
            continue
        number, quote = usable(key, value), f"{source_key}: {value}"
        if number is not None:
            yield _fact(f"parameters.{key}", number, quote)
        else:
            reason = Reason(GenerationReason.UNUSABLE, file=FILE, quote=quote[:60])
            place = f"parameters.{key}"
            yield Evidence(Rule.GENERATION_CONFIG_UNUSABLE, place, None, FILE, reason, quote[:60])


def _implied(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """Yield temperature 1 for sampling without one: the library's default, below the tables in precedence."""
    if data.get("do_sample") is True and not is_number(data.get("temperature")):
        quote = "do_sample: true"
        reason = Reason(GenerationReason.IMPLIED, file=FILE, quote=quote)
        yield Evidence(Rule.GENERATION_CONFIG_IMPLIED, "parameters.temperature", 1.0, FILE, reason, quote)


def _lengths(data: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, kind in LENGTHS:
        tokens = usable("max_tokens", data.get(key))
        if tokens is not None:
            quote = f"{key}: {tokens}"
            reason = Reason(kind, file=FILE, quote=quote)
            yield Evidence(
                Rule.GENERATION_CONFIG_LENGTH, "parameters.max_tokens", tokens, FILE, reason, quote
            )


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
