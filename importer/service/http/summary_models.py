"""Documents as lists and cards have them, and the summary of an organisation's import."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel, Field

from importer.app.states import State
from importer.service.http.query import AttentionKind, Size
from importer.storage.documents import KINDS, Summary

PLAIN = (
    "name", "version", "digest", "model", "revision", "backend", "family", "kind", "state", "review",
    "validation", "reason", "release", "created_at", "updated_at", "checked_at", "findings",
)  # fmt: skip


class Link(BaseModel):
    """Where something is."""

    href: str


class ValidationRun(BaseModel):
    """The newest whole run: its engine, when it began, and how many of its probes passed or failed."""

    engine: str | None
    version: str | None
    at: str | None
    passed: int
    failed: int = Field(description="failed or inconclusive; the other probes do not apply")
    total: int
    seconds: float | None


class CardFacts(BaseModel):
    """The facts of a card; an unknown one is null. ``memory`` is the likely one of each device, in bytes."""

    description: str | None
    license: str | None
    tags: list[str]
    quantization: str | None
    modalities: list[str]
    tool_parser: str | None
    reasoning_parser: str | None
    context: int | None = Field(description="tokens")
    parameters: int | None
    size: Size | None
    weights: int | None = Field(description="bytes")
    memory: int | None
    device: str | None = Field(description="that the estimate is for, such as 2xh100-80g")
    devices: int | None
    whole_bytes: int | None = Field(description="that must be there of all devices together")
    part_bytes: int | None = Field(description="the same for a short context")


class DocumentRow(BaseModel):
    """A document and its states; ``reason`` is why its working copy is not what the gallery serves."""

    name: str
    version: int
    digest: str
    model: str | None
    revision: str | None
    backend: str | None
    family: str | None
    kind: str | None
    state: State
    review: str
    validation: str
    reason: str | None
    release: int | None = Field(description="the number of the release that the gallery serves")
    created_at: str
    updated_at: str
    checked_at: str | None = Field(description="its import, its validation or its last recheck")
    attention: list[AttentionKind] = Field(description="why it needs attention, the gravest first")
    findings: int = Field(description="open findings of rechecks")
    run: ValidationRun | None
    links: dict[str, Link]


class DocumentSummary(DocumentRow):
    """A document in a list, with the facts of its card."""

    facts: CardFacts


class DocumentPage(BaseModel):
    """A page of documents, by name."""

    items: list[DocumentSummary]
    total: int
    next: str | None = Field(description="the cursor of the next page")


def config_json(summary: Summary) -> dict[str, object]:
    """Return a document as lists have it."""
    base = f"/v1/configs/{summary.name}"
    parts = ("decisions", "receipt", "history", "releases")
    links = {"self": {"href": base}} | {part: {"href": f"{base}/{part}"} for part in parts}
    if summary.model is not None:
        links["variants"] = {"href": f"/v1/configs?model={quote(summary.model, safe='/')}"}
    if summary.release is not None:
        links["entry"] = {"href": f"/gallery/{summary.name}.yaml"}
    return {**{f: getattr(summary, f) for f in PLAIN}, **_card(summary), "links": links}


def _card(summary: Summary) -> dict[str, object]:
    facts = {f: getattr(summary, f) for f in CardFacts.model_fields}
    words = {name: (facts[name] or "").split() for name in ("tags", "modalities")}
    named = (summary.attention or "").split()
    ran = None
    if summary.run_total is not None:
        ran = {f: getattr(summary, f"run_{f}") for f in ValidationRun.model_fields}
    return {"attention": sorted(named, key=KINDS.index), "facts": facts | words, "run": ran}


class WarningEntry(BaseModel):
    """What needs a person's attention."""

    kind: str = Field(examples=["does-not-fit"])
    key: str = Field(description="the decision that it is about, a path, or `state`")
    reason: dict[str, object] = Field(description="the kind of the reason, with its fields")
    message: str


class Memory(BaseModel):
    """The memory that an engine needs of one device, as estimated at the import."""

    bytes: int
    device: str | None = Field(description="null where the import named none")
    cards: int = Field(description="devices of this kind that the model is laid out on")
    context: int | None = Field(description="tokens of the sequence that it is for")
    whole: int = Field(description="bytes of all cards together that the whole context takes")
    part: int = Field(description="the same for a short context")


class ValidationFacts(BaseModel):
    """The run of the present data on the document's engine."""

    engine: str
    version: str | None
    label: str = Field(examples=["mlx-lm 0.32.2"])
    state: Literal["passed", "failed"]
    outcomes: dict[str, int] = Field(description="how many probes had each outcome")
    probes: int
    at: str | None = Field(description="start time")
    message: str = Field(
        examples=["validated on mlx-lm 0.32.2: all 45 applicable probes passed (22 do not apply)"]
    )


class Facts(BaseModel):
    """What lists and galleries show of a document; null is unknown."""

    description: str
    described_by: Literal["person", "card", "facts"] = Field(
        description="whose the description is: a person's, the card's, or a sentence of these facts"
    )
    summary: str = Field(description="these facts in a sentence")
    license: str | None
    family: str | None
    kind: str
    parameters: int | None
    active: int | None = Field(description="parameters that one token visits")
    context: int | None = Field(description="tokens of one sequence")
    modalities: list[str] = Field(description="inputs", examples=[["text", "image"]])
    tool_parser: str | None
    reasoning_parser: str | None
    quantization: str | None
    weights: int | None = Field(description="bytes as published")
    memory: Memory | None
    validated: ValidationFacts | None = Field(description="null without a validation of the present data")
    last_checked: str | None = Field(description="the day of that validation (UTC)")
    tags: list[str]


class Described(BaseModel):
    """What a document shows in an overview."""

    about: Facts | None = Field(
        default=None, description="all facts, with sentences; `facts` has those of a row"
    )
    needs_attention: list[WarningEntry] = Field(
        default=[],
        description="what a person has to act on, the state first; an approval settles the import's warnings",
    )


Counts = dict[str, int]


class ImportSummary(BaseModel):
    """Counts of the models that have ended; each map has the most frequent values first."""

    job: str
    organisation: str
    state: str
    waiting: int = Field(description="models that wait or are imported at the moment")
    listed: int = Field(description="models that have ended: imported, skipped, failed and cancelled")
    imported: int
    kind: Counts
    family: Counts
    backend: Counts
    tool_parser: Counts
    reasoning_parser: Counts
    findings: Counts = Field(description="documents with a warning of this kind")
    unknown: Counts = Field(description="documents in which this decision is unknown")
    skipped: Counts = Field(description="models without a document, by the kind of the reason")
    failed: Counts = Field(description="failed and cancelled jobs, by the kind of the problem")
    examples: dict[str, list[str]] = Field(description="up to three models of each kind without a document")
