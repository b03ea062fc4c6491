"""Sentences about a document in lists and galleries, made of its facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from importer.messages.words import counted

if TYPE_CHECKING:
    from importer.messages import Text

KINDS: Mapping[str, str] = {
    "base": "base model", "chat": "chat model", "classifier": "classifier", "embedding": "embedding model",
    "reranker": "reranker", "reward": "reward model", "transcription": "model for transcription",
}  # fmt: skip


def _count(number: int) -> str:
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,}"


def _model(fields: Mapping[str, Any]) -> str:
    """Return {kind}, {family}, {parameters}, {active}, {context}, {modalities}, {quantization}, {weights} and {license}."""
    kind = KINDS.get(str(fields["kind"]), "model")
    family = f" of the family {fields['family']}" if fields["family"] else ""
    size = f" with {_count(fields['parameters'])} parameters" if fields["parameters"] else ""
    if size and fields["active"] and fields["active"] < fields["parameters"]:
        size += f", {_count(fields['active'])} of them active"
    inputs = ", ".join(fields["modalities"])
    parts = [
        f"context {fields['context']:,} tokens" if fields["context"] else "",
        f"inputs {inputs}" if inputs not in ("", "text") else "",
        f"quantisation {fields['quantization']}" if fields["quantization"] else "",
        f"weights {fields['weights']}" if fields["weights"] else "",
        f"licence {fields['license']}" if fields["license"] else "",
    ]
    more = "; ".join(part for part in parts if part)
    article = "An" if kind[0] in "aeiou" else "A"
    return f"{article} {kind}{family}{size}{': ' if more else ''}{more}."


def _memory(fields: Mapping[str, Any]) -> str:
    """Return {size} of {cards} cards {device} for {context} tokens."""
    device = fields["device"]
    of = (
        ""
        if device is None
        else f" of {device}"
        if fields["cards"] == 1
        else f" of each of {fields['cards']} {device}"
    )
    tokens = f" for {fields['context']:,} tokens" if fields["context"] else ""
    return f"It needs {fields['size']}{of or ' of memory'}{tokens}."


def _validated(fields: Mapping[str, Any]) -> str:
    """Return {state} on {engine}: how many of {probes} {pass}, {fail}, and are {not_applicable} or {inconclusive}."""
    engine = fields["engine"]
    word = "validated on" if fields["state"] == "passed" else "validation failed on"
    if not fields["probes"]:
        return f"{word} {engine}"
    others = [
        f"{fields[key]} {text}"
        for key, text in (
            ("fail", "failed"),
            ("inconclusive", "inconclusive"),
            ("not_applicable", "not applicable"),
        )
        if fields[key]
    ]
    more = f" ({', '.join(others)})" if others else ""
    return f"{word} {engine}: {fields['pass']} of {counted(fields['probes'], 'probe', 'probes')} passed{more}"


TEXTS: dict[str, dict[str, Text]] = {
    "EntryReason": {"model": _model, "memory": _memory, "validated": _validated},
}
