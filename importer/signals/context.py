"""How long a context the model has, as the engine's version derives it from ``config.json``.

vLLM's rule is ``_get_and_verify_max_len`` in ``vllm/config/model.py``; what differs between versions is in
their abilities. For engines without a rule of their own the newest of vLLM's tells the model's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from importer.hub.snapshot import Snapshot, whole
from importer.reasons import Reason
from importer.signals.architecture import FILE, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule

# Where no version's own list is known.
KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
SCALED = frozenset({"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"})
DECIDES = "model_max_length"  # where a config has it, it is heard alone
LARGEST = 100_000_000  # tokens; tokenizer files write 1e30 for "no limit"
ORIGINAL = "original_max_position_embeddings"
ASSUMED = 2048  # by vLLM, for a config that names no length
TOKENIZER, CARD = "tokenizer_config.json", "README.md"
YARN = re.compile(r"\byarn\b", re.IGNORECASE)
FACTOR = re.compile(r"\bfactor\W{1,6}(\d{1,4}(?:\.\d{1,4})?)")
STRETCHED = re.compile(r"\b" + ORIGINAL + r"\W{1,6}(\d{1,9})")
NEAR, MOST_EXAMPLES = 200, 50  # characters around the word, and how often it is looked at


class LengthReason(StrEnum):
    """What bears on the length of a context."""

    NAMED = "named"
    BY_CLASS = "by-class"
    ASSUMED = "assumed"
    IN_IT_ALREADY = "in-it-already"
    MULTIPLIED = "multiplied"
    LONGROPE = "longrope"
    ORIGINAL = "original"
    WINDOW = "window"
    STRETCHABLE = "stretchable"
    TOKENIZER = "tokenizer"


@dataclass(frozen=True, slots=True)
class Length:
    """Tokens, why that many, the words of the config they rest on, and what has to be said of them."""

    tokens: int
    reason: Reason
    quote: str = ""
    notes: tuple[Reason, ...] = ()

    @property
    def named(self) -> bool:
        """Return whether the config itself names a length."""
        return bool(self.quote)


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the length, and a reason for each thing that bears on it; the tokenizer's is shown as
    unheard.
    """
    found = derive(snapshot, able)
    if found is None:
        return []
    rule = Rule.CONFIG if found.named else Rule.ENGINE
    reasons = [found.reason, *found.notes, *_window(snapshot), *_card(snapshot, found)]
    facts = [Evidence(rule, "max_model_len", found.tokens, FILE, r, found.quote) for r in reasons]
    return [*facts, *_tokenizer(snapshot, found)]


def derive(snapshot: Snapshot, able: Abilities) -> Length | None:
    """Return the length that the engine comes to by itself; ``None`` where it cannot be told."""
    config = config_of(snapshot)
    text = text_config(config)
    base = _named(text, able) or _named(config, able) or _assumed(snapshot, able)
    if base is None:
        return None
    ropes = [*_ropes(text)]
    if not ropes or "gemma3" in str(text.get("model_type")):
        return base
    return _long(text, _scaled(base, ropes, able), ropes, able)


def _named(config: Mapping[str, Any], able: Abilities) -> Length | None:
    """Return the smallest of the lengths that a config names or its class has, unless there is one that
    decides.
    """
    by_class = _defaults(config, able)
    found: dict[str, int] = {}
    for key in able.context_keys or KEYS:
        value = _count(config.get(key)) or by_class.get(key)
        if value is not None:
            found[key] = value
    if not found:
        return None
    key = DECIDES if DECIDES in found else min(found, key=found.__getitem__)
    if _count(config.get(key)) is not None:
        quote = f"{key}: {found[key]}"
        return Length(found[key], Reason(LengthReason.NAMED, file=FILE, quote=quote), quote)
    model_type = str(config.get("model_type"))
    return Length(
        found[key],
        Reason(LengthReason.BY_CLASS, file=FILE, key=key, model_type=model_type, tokens=found[key]),
    )


def _defaults(config: Mapping[str, Any], able: Abilities) -> Mapping[str, int]:
    model_type = config.get("model_type")
    return able.lengths.get(model_type, {}) if isinstance(model_type, str) else {}


def _assumed(snapshot: Snapshot, able: Abilities) -> Length | None:
    if able.engine != "vllm" or "model_type" not in snapshot.json(FILE):
        return None
    return Length(ASSUMED, Reason(LengthReason.ASSUMED, file=FILE, engine=able.label, tokens=ASSUMED))


def _ropes(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of the rotary embedding: one map, or one for each kind of layer."""
    told = next((t for k in ("rope_parameters", "rope_scaling") if isinstance(t := text.get(k), Mapping)), {})
    inner = [v for v in told.values() if isinstance(v, Mapping)]
    if inner and len(inner) == sum(v is not None for v in told.values()):
        yield from inner
    elif told:
        yield told


def _kind(rope: Mapping[str, Any]) -> str:
    told = rope.get("rope_type", rope.get("type"))
    return {"su": "longrope", "mrope": "default"}.get(str(told), str(told))


def _scaled(base: Length, ropes: list[Mapping[str, Any]], able: Abilities) -> Length:
    unscaled = able.unscaled_ropes or SCALED
    tokens, factor, notes = base.tokens, 1.0, list[Reason]()
    for rope in ropes:
        kind, told = _kind(rope), _factor(rope.get("factor"))
        if kind in unscaled and told not in (None, 1.0):
            notes.append(Reason(LengthReason.IN_IT_ALREADY, rope=kind, factor=told))
        elif kind not in unscaled and told is not None:
            factor = told
        original = _count(rope.get(ORIGINAL))
        if kind == "yarn" and able.yarn_from_original and kind not in unscaled and original is not None:
            tokens = original
    if factor != 1.0 or tokens != base.tokens:
        length = max(1, int(tokens * factor))
        kind = _kind(ropes[-1])
        notes.append(Reason(LengthReason.MULTIPLIED, rope=kind, tokens=tokens, factor=factor))
        return replace(base, tokens=length, notes=(*base.notes, *notes))
    return replace(base, notes=(*base.notes, *dict.fromkeys(notes)))


def _long(text: Mapping[str, Any], found: Length, ropes: list[Mapping[str, Any]], able: Abilities) -> Length:
    """LongRoPE: vLLM starts with the original length, so that short prompts keep their quality."""
    original = _count(text.get(ORIGINAL)) or _defaults(text, able).get(ORIGINAL)
    if original is None or all(_kind(rope) != "longrope" for rope in ropes):
        return found
    note, quote = Reason(LengthReason.LONGROPE, tokens=found.tokens), f"{ORIGINAL}: {original}"
    if found.named:
        return Length(original, Reason(LengthReason.NAMED, file=FILE, quote=quote), quote, (note,))
    return Length(original, Reason(LengthReason.ORIGINAL, key=ORIGINAL, tokens=original), "", (note,))


def _window(snapshot: Snapshot) -> Iterator[Reason]:
    """Yield a sliding window limits how far layers look back, and no engine's length."""
    text = text_config(config_of(snapshot))
    window = _count(text.get("sliding_window"))
    if window is not None and text.get("use_sliding_window") is not False:
        yield Reason(LengthReason.WINDOW, tokens=window)


def _card(snapshot: Snapshot, found: Length) -> Iterator[Reason]:
    """Yield what the card tells how to stretch; never switched on here, since it changes short prompts
    too.
    """
    told = next((t for t in _told(snapshot.texts.get(CARD, "")) if t > found.tokens), None)
    if told is not None:
        yield Reason(LengthReason.STRETCHABLE, tokens=told)


def _told(card: str) -> Iterator[int]:
    """Lengths by the settings of YaRN in a card's examples: factor by original length."""
    for match in islice(YARN.finditer(card), MOST_EXAMPLES):
        near = card[max(0, match.start() - NEAR) : match.end() + NEAR]
        factor, original = FACTOR.search(near), STRETCHED.search(near)
        if factor and original:
            yield min(int(float(factor[1]) * int(original[1])), LARGEST)


def _tokenizer(snapshot: Snapshot, found: Length) -> Iterator[Evidence]:
    told = _count(snapshot.json(TOKENIZER).get("model_max_length"))
    if told is not None and told != found.tokens:
        reason = Reason(LengthReason.TOKENIZER, file=TOKENIZER, tokens=told)
        yield Evidence(Rule.TOKENIZER, "max_model_len", told, TOKENIZER, reason, f"model_max_length: {told}")


def _count(value: object) -> int | None:
    return whole(value, 1, LARGEST - 1)


def _factor(value: object) -> float | None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and 0 < value < 1e6 else None  # type: ignore[arg-type, operator]
