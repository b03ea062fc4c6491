"""The model's context length, derived from ``config.json`` by the rule of the engine's version.

vLLM's rule is ``_get_and_verify_max_len`` in ``vllm/config/model.py``; the versions differ in their
abilities. For engines without a rule of their own, vLLM's newest rule applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, whole
from importer.reasons import Reason
from importer.signals.architecture import FILE, WIDEST, architectures, config_of, object_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import LengthReason

# For versions without a known list of their own.
KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
SCALED = frozenset({"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"})
DECIDES = "model_max_length"  # where a config has it, it decides alone
LARGEST = 100_000_000  # tokens; tokenizer files write 1e30 for "no limit"
ORIGINAL = "original_max_position_embeddings"
ASSUMED = 2048  # by vLLM, for a config that names no length
TOKENIZER = "tokenizer_config.json"
SENTENCE = re.compile(r"sentence_[\w-]+_config\.json")  # of sentence-transformers, by the kind of encoder
ABSOLUTE = "absolute"  # of ``position_embedding_type``: each position has a row of a table
# vLLM's classes (``models/roberta.py``) whose first position is the padding token's number, and one more.
AFTER_PADDING = re.compile(r"roberta|bgem3", re.IGNORECASE)
PADDING = 1  # of RoBERTa, for a config that names no padding token


@frozen
class Length:
    """A length in tokens, its reason, the quote of the config and further notes; ``file`` names it."""

    tokens: int
    reason: Reason
    quote: str = ""
    notes: tuple[Reason, ...] = ()
    file: str = FILE

    @property
    def named(self) -> bool:
        """Return whether the config itself names a length."""
        return bool(self.quote)


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the length with all its reasons."""
    length = _sentence(snapshot, able) or derive(snapshot, able)
    if length is None:
        return []
    rule = Rule.CONFIG if length.named else Rule.ENGINE
    reasons = [length.reason, *length.notes]
    return [Evidence(rule, "max_model_len", length.tokens, length.file, r, length.quote) for r in reasons]


def _sentence(snapshot: Snapshot, able: Abilities) -> Length | None:
    """Return the length of sentence-transformers, if any; vLLM puts it in place of its own."""
    if not backends.of(able.engine).tasks:
        return None
    file = next(filter(SENTENCE.fullmatch, sorted(snapshot.texts)), "")
    tokens = whole(object_of(snapshot, file).get("max_seq_length"), 1, WIDEST)
    if tokens is None:
        return None
    quote = f"max_seq_length: {tokens}"
    return Length(tokens, Reason(LengthReason.NAMED, file=file, quote=quote), quote, (), file)


def derive(snapshot: Snapshot, able: Abilities) -> Length | None:
    """Return the length that the engine derives by itself; ``None`` where it is unknown."""
    text = text_config(config_of(snapshot))
    base = _base(snapshot, able) or _assumed(snapshot, able)
    ropes = [*_stretching(text)]
    return None if base is None else _long(text, _scaled(base, ropes, able), ropes, able) if ropes else base


def longest(snapshot: Snapshot, able: Abilities) -> int | None:
    """Return the most tokens that vLLM takes from a person; ``None`` where the config names no length."""
    sentence, base = _sentence(snapshot, able), _base(snapshot, able)
    if sentence is not None or base is None:
        return None if sentence is None else sentence.tokens
    return _scaled(base, [*_stretching(text_config(config_of(snapshot)))], able).tokens


def reach(rope: Mapping[str, object], base: int | None, able: Abilities) -> int | None:
    """Return the tokens that YaRN reaches where the version does not multiply by its factor, or ``None``."""
    factor, original = _factor(rope.get("factor")), _count(rope.get(ORIGINAL)) or base
    if "yarn" not in _kind(rope) or not _contained(_kind(rope), able):
        return None
    return None if factor is None or original is None else int(original * factor)


def _base(snapshot: Snapshot, able: Abilities) -> Length | None:
    """Return the length that the config names, or its class has."""
    config = config_of(snapshot)
    base = _named(text_config(config), able) or _named(config, able)
    return None if base is None else _by_positions(snapshot, able, base)


def _by_positions(snapshot: Snapshot, able: Abilities, base: Length) -> Length:
    """Return the length of a model that pools and has a table of positions.

    vLLM takes the tokenizer's length where that is less (``get_and_verify_max_len``). Its RoBERTa begins
    behind the padding token, so the first rows of the table hold no position of a text.
    """
    config, named = config_of(snapshot), architectures(snapshot)
    if not backends.of(able.engine).tasks or not any(a in able.pooling for a in named):
        return base
    tokens = _count(snapshot.json(TOKENIZER).get("model_max_length"))
    if config.get("position_embedding_type") == ABSOLUTE and tokens is not None and tokens < base.tokens:
        quote = f"model_max_length: {tokens}"
        reason = Reason(LengthReason.NAMED, file=TOKENIZER, quote=quote)
        base = Length(tokens, reason, quote, (base.reason,), TOKENIZER)
    return _after_padding(config, named, able, base)


def _after_padding(
    config: Mapping[str, object], named: tuple[str, ...], able: Abilities, base: Length
) -> Length:
    rows = _count(config.get("max_position_embeddings"))
    table = config.get("position_embedding_type", ABSOLUTE) == ABSOLUTE
    if rows is None or not table or not any(a in able.pooling and AFTER_PADDING.search(a) for a in named):
        return base
    padding = whole(config.get("pad_token_id"), 0, LARGEST)
    held = rows - (PADDING if padding is None else padding) - 1
    if not 0 < held < base.tokens:
        return base
    note = Reason(LengthReason.AFTER_PADDING, rows=rows, first=rows - held)
    return replace(base, tokens=held, notes=(*base.notes, note))


def _stretching(text: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the settings of the rotary embedding, where they change the named length."""
    yield from () if "gemma3" in str(text.get("model_type")) else _ropes(text)


def _named(config: Mapping[str, object], able: Abilities) -> Length | None:
    """Return the length under ``DECIDES``, else the smallest that the config names or its class has."""
    by_class = _defaults(config, able)
    lengths: dict[str, int] = {}
    for key in able.context_keys or KEYS:
        value = _count(config.get(key)) or by_class.get(key)
        if value is not None:
            lengths[key] = value
    if not lengths:
        return None
    key = DECIDES if DECIDES in lengths else min(lengths, key=lengths.__getitem__)
    if _count(config.get(key)) is not None:
        quote = f"{key}: {lengths[key]}"
        return Length(lengths[key], Reason(LengthReason.NAMED, file=FILE, quote=quote), quote)
    model_type = str(config.get("model_type"))
    return Length(
        lengths[key],
        Reason(LengthReason.BY_CLASS, file=FILE, key=key, model_type=model_type, tokens=lengths[key]),
    )


def _defaults(config: Mapping[str, object], able: Abilities) -> Mapping[str, int]:
    model_type = config.get("model_type")
    return able.lengths.get(model_type, {}) if isinstance(model_type, str) else {}


def _assumed(snapshot: Snapshot, able: Abilities) -> Length | None:
    if not backends.of(able.engine).tasks or "model_type" not in snapshot.json(FILE):
        return None
    return Length(ASSUMED, Reason(LengthReason.ASSUMED, file=FILE, engine=able.label, tokens=ASSUMED))


def _ropes(text: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the settings of the rotary embedding: one map, or one for each kind of layer."""
    settings = next(
        (t for k in ("rope_parameters", "rope_scaling") if isinstance(t := text.get(k), Mapping)), {}
    )
    inner = [v for v in settings.values() if isinstance(v, Mapping)]
    if inner and len(inner) == sum(v is not None for v in settings.values()):
        yield from inner
    elif settings:
        yield settings


def _kind(rope: Mapping[str, object]) -> str:
    name = rope.get("rope_type", rope.get("type"))
    return {"su": "longrope", "mrope": "default"}.get(str(name), str(name))


def _contained(kind: str, able: Abilities) -> bool:
    """Return whether the length already contains the factor; vendors' names of YaRN are one to vLLM."""
    kinds = able.unscaled_ropes or SCALED
    return kind in kinds or (kind.endswith("-yarn") and "yarn" in kinds)


def _scaled(base: Length, ropes: list[Mapping[str, object]], able: Abilities) -> Length:
    tokens, factor, notes = base.tokens, 1.0, list[Reason]()
    for rope in ropes:
        kind, rope_factor = _kind(rope), _factor(rope.get("factor"))
        unscaled = _contained(kind, able)
        if unscaled and rope_factor not in (None, 1.0):
            notes.append(Reason(LengthReason.IN_IT_ALREADY, rope=kind, factor=rope_factor))
        elif not unscaled and rope_factor is not None:
            factor = rope_factor
        original = _count(rope.get(ORIGINAL))
        if kind == "yarn" and able.yarn_from_original and not unscaled and original is not None:
            tokens = original
    if factor != 1.0 or tokens != base.tokens:
        length = max(1, int(tokens * factor))
        kind = _kind(ropes[-1])
        notes.append(Reason(LengthReason.MULTIPLIED, rope=kind, tokens=tokens, factor=factor))
        return replace(base, tokens=length, notes=(*base.notes, *notes))
    return replace(base, notes=(*base.notes, *dict.fromkeys(notes)))


def _long(
    text: Mapping[str, object], length: Length, ropes: list[Mapping[str, object]], able: Abilities
) -> Length:
    """Return the original length for LongRoPE: vLLM starts with it to keep the quality of short prompts."""
    original = _count(text.get(ORIGINAL)) or _defaults(text, able).get(ORIGINAL)
    if original is None or all(_kind(rope) != "longrope" for rope in ropes):
        return length
    note, quote = Reason(LengthReason.LONGROPE, tokens=length.tokens), f"{ORIGINAL}: {original}"
    if length.named:
        return Length(original, Reason(LengthReason.NAMED, file=FILE, quote=quote), quote, (note,))
    fields = {"key": ORIGINAL, "model_type": str(text.get("model_type")), "tokens": original}
    return Length(original, Reason(LengthReason.BY_CLASS, file=FILE, **fields), "", (note,))


def _count(value: object) -> int | None:
    return whole(value, 1, LARGEST - 1)


def _factor(value: object) -> float | None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and 0 < value < 1e6 else None  # type: ignore[arg-type, operator]
