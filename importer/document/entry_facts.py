"""What lists and galleries show of a document: description, licence, sizes, context, inputs, validation.

The facts are those of the receipt: its decisions, its fit, its runs, and the paragraph of the card that the
import has read. A sentence of facts describes a document without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import Any, Literal

from importer import backends
from importer.document.build import imported_description
from importer.document.document import Document
from importer.document.document_keys import digest, parser
from importer.document.receipt import Receipt
from importer.document.validation_state import validation
from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping, text, whole
from importer.memory.estimate_types import CACHES
from importer.memory.plan_settings import gib
from importer.memory.planner import SHORTEST
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import TASKS

LONGEST = 1000  # characters of a description
LONG_CONTEXT = 128_000  # tokens
SEES = ("image", "video")
Described = Literal["person", "card", "facts"]
OUTCOMES = ("pass", "fail", "inconclusive", "not-shown", "not-applicable")
KINDS: Mapping[str, str] = {
    "base": "base model", "chat": "chat model", "classifier": "classifier", "embedding": "embedding model",
    "reranker": "reranker", "reward": "reward model", "transcription": "model for transcription",
}  # fmt: skip


def _count(number: int) -> str:
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,}"


def _model(fields: Fields) -> str:
    """Return {kind}, {family}, {parameters}, {active}, {context}, {modalities}, {quantization}, {weights} and
    {license}.
    """
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


def _memory_text(fields: Fields) -> str:
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


def _validated_text(fields: Fields) -> str:
    """Return {state} on {engine}: how many of {probes} {pass}, {fail}, and are {not_applicable}, {not_shown}
    or {inconclusive}.
    """
    engine = fields["engine"]
    word = "validated on" if fields["state"] == "passed" else "validation failed on"
    if not fields["probes"]:
        return f"{word} {engine}"
    apart = fields["not_applicable"]
    asked = fields["probes"] - apart
    share = f"all {asked}" if fields["pass"] == asked > 1 else f"{fields['pass']} of {asked}"
    others = [
        f"{fields[key]} {text}"
        for key, text in (
            ("fail", "failed"),
            ("inconclusive", "without a verdict"),
            ("not_shown", "not shown by the model"),
            ("not_applicable", "does not apply" if apart == 1 else "do not apply"),
        )
        if fields[key]
    ]
    more = f" ({', '.join(others)})" if others else ""
    probes = f"{'applicable ' if apart else ''}{'probe' if asked == 1 else 'probes'}"
    return f"{word} {engine}: {share} {probes} passed{more}"


class EntryReason(ReasonKind):
    """Sentences about a document, made of its facts."""

    MODEL = (_model,)
    MEMORY = (_memory_text,)
    VALIDATED = (_validated_text,)
    UNVALIDATED = "It is not validated."


@frozen
class DeviceMemory:
    """The memory of one device that an engine needs, in ``bytes``, with one sequence of ``context`` tokens.

    ``device`` is ``None`` where the import named none; ``cards`` counts the devices. ``whole`` and ``part``
    are bytes of all of them together that must be there: for the whole context, and for a short one.
    """

    bytes: int
    device: str | None
    cards: int
    context: int | None
    whole: int
    part: int


@frozen
class ValidationRecord:
    """The run on the document's engine: how many of its probes had each outcome, and when it began (UTC)."""

    engine: str
    version: str | None
    state: str
    outcomes: Mapping[str, int]
    at: str | None

    @property
    def probes(self) -> int:
        """Return how many probes the run had."""
        return sum(self.outcomes.values())

    @property
    def label(self) -> str:
        """Return engine and version, such as ``mlx-lm 0.32.2``."""
        program = backends.serving(self.engine).program or self.engine
        return " ".join(filter(None, (program, self.version)))

    @property
    def message(self) -> str:
        """Return ``validated on mlx-lm 0.32.2: all 40 applicable probes passed (14 do not apply)``."""
        counts = {name.replace("-", "_"): count for name, count in self.outcomes.items()}
        fields = {"state": self.state, "engine": self.label, "probes": self.probes}
        return render(Reason(EntryReason.VALIDATED, **fields, **counts))


@frozen
class EntryFacts:
    """The facts of one document; what is unknown is ``None``.

    ``description``   a person's, else that of the card, else the sentence of facts: ``described_by``.
    ``summary``       the sentence of facts.
    ``parameters``    all, and ``active`` those that one token visits.
    ``weights``       bytes as published; ``memory`` those of a device.
    ``modalities``    the inputs; ``license`` as the Hub names it.
    ``last_checked``  the day of the validation's run (UTC).
    """

    description: str
    described_by: Described
    summary: str
    license: str | None = None
    family: str | None = None
    kind: str = "chat"
    parameters: int | None = None
    active: int | None = None
    context: int | None = None
    modalities: tuple[str, ...] = ("text",)
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    quantization: str | None = None
    weights: int | None = None
    memory: DeviceMemory | None = None
    validated: ValidationRecord | None = None
    last_checked: str | None = None
    tags: tuple[str, ...] = field(default=())

    @property
    def lines(self) -> Iterator[str]:
        """Yield the sentences about the model, its memory and its validation."""
        yield self.summary
        if self.memory is not None:
            yield render(_needs(self.memory))
        if self.validated is None:
            yield render(Reason(EntryReason.UNVALIDATED))
        else:
            yield f"{self.validated.message[:1].upper()}{self.validated.message[1:]}."

    @property
    def text(self) -> str:
        """Return the description, then the sentences that it does not have, as paragraphs."""
        more = [line for line in self.lines if line != self.description]
        return "\n\n".join([self.description, " ".join(more)]).rstrip()

    def to_json(self) -> dict[str, object]:
        """Return the facts as lists and responses have them."""
        data = {key: [*value] if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        record = self.validated
        if record is None:
            return data
        more = {"label": record.label, "probes": record.probes, "message": record.message}
        return data | {"validated": asdict(record) | more}


def entry_facts(document: Document, receipt: Receipt | None) -> EntryFacts:
    """Return the facts of a document; a text of a receipt that is of another type counts as unknown."""
    block = mapping(document.get("importer"))
    fit = mapping(None if receipt is None else receipt.fit)
    weights = mapping(fit.get("weights"))
    facts: dict[str, Any] = {
        "license": text(block.get("license")),
        "family": text(block.get("family")),
        "kind": text(block.get("kind")) or "chat",
        "parameters": whole(weights.get("parameters"), 1),
        "active": whole(weights.get("active"), 1),
        "context": _context(document, fit),
        "modalities": _modalities(block),
        "tool_parser": parser(document, "tool_parser"),
        "reasoning_parser": parser(document, "reasoning_parser"),
        "quantization": _quantization(document, block),
        "weights": whole(weights.get("likely"), 1),
        "memory": device_memory(fit),
        "validated": _validated(document, receipt),
    }
    record: ValidationRecord | None = facts["validated"]
    facts["last_checked"] = None if record is None or record.at is None else record.at[:10]
    summary = render(_sentence(facts))
    description, origin = _description(document, receipt, summary)
    return EntryFacts(
        description=description,
        described_by=origin,
        summary=summary,
        tags=tuple(_tags(document, facts)),
        **facts,
    )


def _description(document: Document, receipt: Receipt | None, summary: str) -> tuple[str, Described]:
    """Return a person's description, else that of the card, else the sentence of facts."""
    own = document.get("description")
    block, parameters = mapping(document.get("importer")), mapping(document.get("parameters"))
    written = {imported_description(str(name)) for name in (block.get("model_id"), parameters.get("model"))}
    if isinstance(own, str) and own.strip() and own not in written:
        return own.strip()[:LONGEST], "person"
    card = None if receipt is None else text(receipt.description)
    return (card[:LONGEST], "card") if card else (summary, "facts")


def _context(document: Document, fit: Mapping[str, object]) -> int | None:
    """Return the tokens of one sequence: those of the document, else those that the fit was made for."""
    named = (document.get("max_model_len"), document.get("context_size"), fit.get("wanted"))
    return next((tokens for one in named if (tokens := whole(one, 1)) is not None), None)


def _modalities(block: Mapping[str, object]) -> tuple[str, ...]:
    named = block.get("modalities")
    more = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    return (*([] if block.get("kind") == "transcription" else ["text"]), *dict.fromkeys(more))


def _quantization(document: Document, block: Mapping[str, object]) -> str | None:
    named = (block.get("quantization_scheme"), document.get("quantization"), block.get("quantization"))
    return next((one for one in named if isinstance(one, str) and one), None)


def device_memory(fit: Mapping[str, object]) -> DeviceMemory | None:
    """Return the memory of a receipt's ``fit``; ``None`` without an estimate."""
    estimate = mapping(fit.get("estimate"))
    needed = whole(mapping(estimate.get("total")).get("likely"), 1)
    if needed is None:
        return None
    device, load = mapping(fit.get("device")), mapping(estimate.get("load"))
    cards = whole(fit.get("cards"), 1) or 1
    context, spare = whole(load.get("context"), 1), whole(fit.get("spare"), 0) or 0
    terms = map(mapping, listed(estimate.get("terms")))
    caches = sum(whole(term.get("likely"), 0) or 0 for term in terms if term.get("part") in CACHES)
    short = needed - int(caches * (1 - min(1.0, SHORTEST / (context or SHORTEST))))
    return DeviceMemory(
        needed, text(device.get("name")), cards, context, (needed + spare) * cards, (short + spare) * cards
    )


def _validated(document: Document, receipt: Receipt | None) -> ValidationRecord | None:
    """Return the run that validated the present data, or failed to."""
    held = None if receipt is None else validation(receipt, document, digest(document))
    if held is None or held.run is None or held.state not in ("passed", "failed"):
        return None
    engine, outcomes = mapping(held.run.get("engine")), held.run.get("outcomes")
    found = [mapping(one).get("outcome") for one in outcomes] if isinstance(outcomes, list) else []
    return ValidationRecord(
        text(engine.get("name")) or "",
        text(engine.get("version")),
        held.state,
        {name: found.count(name) for name in OUTCOMES},
        text(held.run.get("started")),
    )


def _needs(memory: DeviceMemory) -> Reason:
    size = gib(memory.bytes)
    return Reason(
        EntryReason.MEMORY, size=size, device=memory.device, cards=memory.cards, context=memory.context
    )


def _sentence(facts: Mapping[str, Any]) -> Reason:
    shown = ("kind", "family", "license", "parameters", "active", "context", "modalities", "quantization")
    weights = facts["weights"]
    size = None if weights is None else gib(weights)
    return Reason(EntryReason.MODEL, weights=size, **{key: facts[key] for key in shown})


def size_class(parameters: int) -> str:
    """Return the size of a model as names have it: ``8b``, ``0.6b``, ``135m``."""
    if parameters < 1_000_000:
        return f"{max(1, round(parameters / 1e3))}k"
    if parameters < 300_000_000:
        return f"{round(parameters / 1e6)}m"
    billions = parameters / 1e9
    return f"{billions:.0f}b" if billions >= 3 else f"{billions:.1f}b".replace(".0b", "b")


def _tags(document: Document, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield each tag once: task, engine, family, uses, abilities, quantisation and size."""
    parameters, active, inputs = facts["parameters"], facts["active"], facts["modalities"]
    uses = document.get("known_usecases")
    found = [
        None if facts["kind"] in TASKS else "llm",
        document.get("backend"),
        facts["family"],
        *(uses if isinstance(uses, list) else ()),
        "tools" if facts["tool_parser"] else None,
        "reasoning" if facts["reasoning_parser"] else None,
        "vision" if {*SEES} & {*inputs} else None,
        "audio" if "audio" in inputs else None,
        "quantized" if facts["quantization"] else None,
        facts["quantization"],
        "moe" if parameters and active and active < parameters else None,
        size_class(parameters) if parameters else None,
        "long-context" if (facts["context"] or 0) >= LONG_CONTEXT else None,
    ]
    yield from dict.fromkeys(str(tag) for tag in found if tag)
