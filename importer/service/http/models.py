"""Bodies of requests and of answers, as ``/openapi.json`` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from importer.app.states import State
from importer.document.yaml_edit.source_map import unspeakable
from importer.errors import DocumentError
from importer.service import messages
from importer.service.domain.document_text import LONGEST, pointer
from importer.service.domain.import_request import Body, Choices, Spoken, Text
from importer.service.http.headers import MOST
from importer.service.http.query import AttentionKind, Size
from importer.service.problems import problem_of
from importer.storage.document_rows import Summary
from importer.storage.jobs import CANCELLABLE, OPEN, Failure
from importer.storage.jobs import Job as JobRow


def merged(data: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """Return data with a merge patch (RFC 7396): maps are merged, null removes, any other value replaces."""
    result = dict(data)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            result[key] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def json_object(body: bytes) -> dict[str, object]:
    """Return a body that has to be a JSON object, no longer than a document; raises
    DocumentError("invalid").
    """
    parsed = _object(body)
    if isinstance(parsed, dict):
        fault = next(unspeakable(parsed), None)
        if fault is None:
            return parsed
        path, problem = pointer(fault[0]), messages.text(fault[1])
    else:
        path, problem = "", parsed
    errors = [{"pointer": path, "detail": problem}]
    raise DocumentError("invalid", path="The body", problem=problem, errors=errors)


def _object(body: bytes) -> dict[str, object] | str:
    """Return the object, or the problem with the body."""
    if len(body) > 4 * LONGEST:  # bytes; a character has up to four
        return f"must have at most {4 * LONGEST:,} bytes"
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        return f"not valid JSON: {error}"
    return data if isinstance(data, dict) else "must be a JSON object"


SEEN: JsonDict = {"digest": f"sha256:{'0' * 64}", "note": "a day in staging"}


class Note(Body):
    """Why something is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "answers are cut off"}]})

    note: Spoken | None = None


class ReviewRequest(Note):
    """A person's review of a document."""

    digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, description="of the data that were looked at; another one is refused"
    )


class ReleaseRequest(ReviewRequest):
    """A release of the working copy as it was seen, or of an earlier version."""

    model_config = ConfigDict(json_schema_extra={"examples": [SEEN]})

    version: int | None = Field(default=None, ge=1, le=MOST, description="an earlier version, as a roll-back")
    unvalidated: bool = Field(
        default=False, description="release it without a validation that holds; the audit log records it"
    )


class Approval(ReviewRequest):
    """A person's approval of a document as it was seen."""

    model_config = ConfigDict(json_schema_extra={"examples": [SEEN]})

    publish: bool | None = Field(
        default=None, description="release it, too; by default where the document is validated"
    )


class Rejection(ReviewRequest):
    """A rejection with its reason."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "too hot for tools"}]})

    note: Annotated[Spoken, Field(min_length=1)]


class ValidationRequest(Body):
    """How a document is to be run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"engine": "mlx"}]})

    engine: Text | None = Field(default=None, description="an engine other than the document's")
    fetch: bool = Field(default=True, description="fetch the weights if they are not on the worker's disk")
    thorough: bool = Field(
        default=False,
        description="ask for each ability with tools until its interval is ± 5 points, up to 400 questions",
    )
    measure: bool = Field(
        default=False,
        description="start it with random weights in place of a validation, and choose context and layout "
        "by the memory that the engine reports; nothing of the weights is fetched",
    )


class Retry(Body):
    """What is different in another attempt."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"backend": "mlx"}]})

    backend: Text | None = None
    take: Literal["mine", "theirs"] | None = None
    on_conflict: Choices | None = None


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
    state: State | Literal["deleted"]
    review: str
    validation: str
    reason: str | None
    release: int | None = Field(description="the version that the gallery serves")
    created_at: str
    updated_at: str
    checked_at: str | None = Field(description="its import, its validation or its last recheck")
    attention: list[AttentionKind] = Field(description="why it needs attention, the gravest first")
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
    return dict(json.loads(summary.row))


class WarningEntry(BaseModel):
    """What needs a person's attention."""

    kind: str = Field(examples=["does-not-fit"])
    key: str = Field(description="the decision that it is about, a path, or `state`")
    reason: dict[str, object] = Field(description="the kind of the reason, with its fields")
    message: str


JobState = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]


class FieldError(BaseModel):
    """One mistake in a request, and the field that it is about."""

    pointer: str = Field(description="a JSON pointer into the body, the query or the document")
    detail: str
    line: int | None = None
    column: int | None = None
    length: int | None = Field(default=None, description="characters of the word at that place")
    kind: str | None = Field(default=None, description="of a mistake in a document: its typed kind")
    fields: dict[str, object] | None = Field(
        default=None, description="fields of the kind, such as suggestions"
    )


class Candidate(BaseModel):
    """A backend that could serve a model."""

    backend: str = Field(description="the request to send again")
    engine: str = Field(description="the engine and the version that it would be written for")
    message: str = Field(description="why it is a candidate")


class Conflict(BaseModel):
    """A value that an edit and an import changed differently; a side that has none is left out."""

    path: str
    base: Any = None
    mine: Any = None
    theirs: Any = None


class Problem(BaseModel):
    """RFC 9457 problem details."""

    type: str = Field(examples=["/problems/bad-reference"])
    title: str
    status: int
    detail: str
    kind: str
    hint: str
    instance: str | None = None
    request_id: str | None = None
    errors: list[FieldError] | None = None
    candidates: list[Candidate] | None = Field(
        default=None, description="backends that an ambiguous import could use"
    )
    conflicts: list[Conflict] | None = None


class RefusedLine(BaseModel):
    """A line of a list that was refused; the others were accepted."""

    line: int = Field(description="its number, from 1")
    reference: str
    error: Problem


class LineResult(BaseModel):
    """The result of one line of a list: a job, or the problem for that it was refused."""

    line: int = Field(description="its number, from 1")
    reference: str
    status: int = Field(description="the status that the line alone would have had")
    job: str | None
    href: str | None = Field(description="address of the job")
    error: Problem | None


class JobStep(BaseModel):
    """A step of a job, and how long it took or has taken."""

    step: str
    state: Literal["done", "now", "later"]
    seconds: float | None = Field(description="null for a later one")


class JobProgress(BaseModel):
    """How far a job is: its steps, and what the present one has done of how much."""

    number: int | None = Field(description="of the present step, from 1")
    of: int
    seconds: float | None = Field(description="seconds since the start")
    steps: list[JobStep]
    done: float | None
    total: float | None
    unit: str | None
    passed: int | None
    failed: int | None


class RunningJob(BaseModel):
    """A job that runs, in short."""

    id: str
    kind: str
    config: str | None
    step: str | None
    message: str | None
    started_at: str | None


class JobSummary(BaseModel):
    """All jobs in figures; those of lists count each."""

    queued: int
    running: int
    waiting: int = Field(description="for a person's answer")
    failed: int = Field(description="within 24 hours")
    jobs: list[RunningJob] = Field(description="the first five that run")


class Job(BaseModel):
    """A job: its request, its progress and its result."""

    id: str
    kind: Literal["import", "imports", "validation", "recheck"]
    state: JobState = Field(description="`waiting`: a retry answers the question in `error`")
    step: str | None = Field(description="the present step")
    message: str | None = Field(description="how far that step is")
    config: str | None = Field(description="the document's name, once there is one")
    request: dict[str, object]
    result: dict[str, object] | None
    error: Problem | None = Field(
        description="why it failed, or what it waits for: one of `candidates`, sides of `conflicts`"
    )
    attempt: int
    merged: bool | None = Field(
        default=None, description="whether an equal request had queued it before; absent for a new job"
    )
    by: str
    device: str | None
    parent: str | None = Field(description="the list that it belongs to")
    counts: dict[str, int] | None = Field(default=None, description="of a list: its jobs by state")
    refused: list[RefusedLine] | None = Field(
        default=None, description="of a list: the lines that were refused and have no job"
    )
    lines: list[LineResult] | None = Field(
        default=None, description="in the answer to a list: the result of each line"
    )
    progress: JobProgress | None = Field(default=None, description="of one job; null for a list")
    created_at: str
    started_at: str | None
    ended_at: str | None
    links: dict[str, Link]


class JobPage(BaseModel):
    """A page of jobs, the newest first; of a list in its order."""

    items: list[Job]
    total: int
    next: str | None = Field(description="the cursor of the next page")


class CarriedValidation(BaseModel):
    """The earlier commit that a validation ran on: its files are equal to those of the present one."""

    revision: str
    digest: str


class LossOf(BaseModel):
    """A part of a document that LocalAI lacks, or that its entry adds."""

    effect: Literal["added", "changed", "dropped", "not-pinned"]
    kind: str
    message: str


class Document(DocumentSummary):
    """A document: its text, and the data in it."""

    text: str
    data: dict[str, object]
    losses: list[LossOf] | None = Field(
        default=None,
        description="what its entry in the gallery would drop, change, add or not pin; null without an entry",
    )
    carried: CarriedValidation | None = Field(
        default=None, description="the commit that was run, where the validation is of an earlier one"
    )
    warnings: list[WarningEntry] = Field(default=[], description="what needs attention, the gravest first")
    device: str | None = Field(default=None, description="the device that its last import named")
    per_device: bool = Field(default=False, description="whether the document is for this device alone")


class VersionSummary(BaseModel):
    """One version: who made it, when, by which action, why, and what it changed."""

    version: int
    action: str
    state: str
    digest: str
    by: str
    at: str
    why: str | None
    changes: list[dict[str, object]] | None = Field(description="from the version before; none for the first")


class History(BaseModel):
    """A page of versions, the newest first, and every review."""

    versions: list[VersionSummary]
    reviews: list[dict[str, object]]
    served: int | None = Field(description="the version that the gallery serves")
    total: int = Field(description="versions on all pages")
    next: int | None = Field(description="the cursor of the next page")


class Decisions(BaseModel):
    """What was decided and why, what fits, what the parsers showed."""

    decisions: dict[str, object]
    evidence: list[dict[str, object]]
    unknown: dict[str, str]
    fit: dict[str, object] | None
    proof: dict[str, object] | None


class Preview(BaseModel):
    """What an import would write: nothing has been."""

    name: str
    model: str
    revision: str | None
    backend: str
    text: str
    document: dict[str, object]
    decisions: dict[str, object]
    evidence: list[dict[str, object]]
    fit: dict[str, object]
    proof: dict[str, object] | None
    unknown: dict[str, str]
    new: bool
    kept: dict[str, object] = Field(description="what stays of the last import until `unset` names it")
    edits: list[dict[str, object]] = Field(description="what stays of a person's edits")
    changes: list[dict[str, object]] = Field(description="from the document in the gallery")
    conflicts: list[Conflict]
    warnings: list[WarningEntry] = Field(description="what needs attention, the gravest first")


class Export(BaseModel):
    """A document for another consumer."""

    name: str
    format: str
    review: str
    digest: str
    files: dict[str, str]
    lost: list[str] = Field(description="what these files cannot carry")


def job_json(job: JobRow, counts: dict[str, int] | None = None) -> dict[str, object]:
    """Return a job as a response."""
    base = f"/v1/jobs/{job.id}"
    links = {"self": base, "events": f"{base}/events"}
    if job.kind == "imports":
        links["jobs"] = f"/v1/jobs?parent={job.id}"
    if job.state in CANCELLABLE:
        links["cancel"] = f"{base}/cancel"
    if job.state not in (*OPEN, "succeeded"):
        links["retry"] = f"{base}/retry"
    if job.config is not None:
        links["config"] = f"/v1/configs/{job.config}"
    shown = ("id", "kind", "state", "step", "config", "request", "result", "attempt", "by")
    times = ("device", "created_at", "started_at", "ended_at")
    request = {key: value for key, value in job.request.items() if key != "refused"}
    return {
        **{key: getattr(job, key) for key in (*shown, *times)},
        "request": request,
        "result": job.result,
        "refused": job.request.get("refused"),
        "message": job.says,
        "error": None if job.error is None else _error(job.error),
        "parent": None if job.root == job.id else job.root,
        "counts": counts,
        "links": {name: {"href": href} for name, href in links.items()},
    }


def event_json(data: Mapping[str, object]) -> dict[str, object]:
    """Return an event's data as they are answered."""
    error, named = data.get("error"), _message(data)
    return named | {"error": _error(cast("Failure", error))} if isinstance(error, Mapping) else named


def _error(failed: Failure) -> Mapping[str, object]:
    """Return a stored failure as the problem that is answered."""
    problem = problem_of(failed)
    candidates = problem.get("candidates")
    return problem if candidates is None else {**problem, "candidates": [*map(_message, candidates)]}


def _message(stored: Mapping[str, object]) -> dict[str, object]:
    """Return stored data with the public name of ``says``, the database's name of a message."""
    return {"message" if key == "says" else key: value for key, value in stored.items()}
