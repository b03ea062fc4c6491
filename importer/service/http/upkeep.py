"""``/v1/recheck`` and ``/v1/upkeep``: rechecks of documents, and their findings, alone or by cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer.app import upgrade_versions
from importer.app.recheck import CauseKind
from importer.app.upgrade import identity
from importer.errors import DocumentError, ServiceError
from importer.service.desk import AtDesk
from importer.service.domain import upkeep
from importer.service.domain.import_request import Spoken, Text
from importer.service.http.headers import AskedOnce, etag
from importer.service.http.models import DocumentSummary, Job, Link, Note, Problem, config_json, job_json
from importer.service.http.query import Cursor, DocumentSelection, Ident, Limit
from importer.service.problems import accepted, problem_of, problems
from importer.service.reads import Reads
from importer.service.security import Approver, Importer, Reader, act
from importer.storage import audit, documents, findings, jobs, processes
from importer.storage.documents import Filters
from importer.storage.findings import Finding, FindingFilter, FindingState

router = APIRouter(prefix="/v1", tags=["upkeep"], route_class=Reads)
MOST_NAMES = 10_000


class RecheckRequest(DocumentSelection):
    """The documents to compare with an import now, or with themselves for another version of an engine: all,
    those named, or those of a filter.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [
        {}, {"names": ["qwen3-8b"]}, {"backend": "vllm", "state": ["published"]}, {"engine": "vllm@0.33.0"},
    ]})  # fmt: skip

    engine: Text | None = Field(
        default=None,
        description="ENGINE@VERSION: what changes for its documents, without a request to the Hub",
    )

    names: list[Text] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    note: Spoken | None = Field(default=None, description="why, for the audit log")


class Acceptance(Note):
    """A finding that is to be written into the working copy."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"take": "theirs", "note": "new sampling"}]})

    take: Literal["mine", "theirs"] | None = Field(
        default=None, description="whose value counts where an edit and the import differ"
    )


class Caused(BaseModel):
    """What is another one now, before and after; ``files`` that changed, ``keys`` that rest on it."""

    what: CauseKind
    before: str | None = None
    after: str | None = None
    files: list[str] | None = None
    keys: list[str] | None = None
    why: str | None = None


class FindingOf(BaseModel):
    """A document that an import now would change, and what a person decided about it."""

    id: str
    name: str
    model: str | None = None
    version: int = Field(description="the version of the working copy that was compared")
    outdated: bool = Field(description="whether the working copy has another version now")
    causes: list[Caused]
    kinds: list[CauseKind] = Field(description="the kinds of its causes, for the filter")
    state: FindingState
    decisions: list[dict[str, object]] = Field(
        description="decisions with another value, each with its reasons"
    )
    conflicts: list[dict[str, object]] = Field(
        description="values that an edit and the import changed differently"
    )
    refused: dict[str, object] | None = Field(default=None, description="why an import would fail now")
    at: str
    seen_at: str = Field(description="the last recheck that found it")
    job: str | None = None
    by: str | None = None
    decided_at: str | None = None
    why: str | None = None
    links: dict[str, Link]


class Proposal(BaseModel):
    """The document after the finding is accepted."""

    text: str
    digest: str
    changes: list[dict[str, object]]


class WholeFinding(FindingOf):
    """A finding with the document before and after; ``proposals`` are by the side that settles conflicts."""

    document: list[dict[str, object]] = Field(description="further changes of the data")
    text: str | None = Field(description="the working copy as it is; null for a deleted document")
    proposals: dict[str, Proposal]


class ScheduleOf(BaseModel):
    """The schedule of rechecks: its last job and when that began, and when the next one is due."""

    every: int = Field(description="seconds between two rechecks")
    next_at: str
    job: str | None = None
    began_at: str | None = None


class Findings(BaseModel):
    """A page of findings, the newest first."""

    items: list[FindingOf]
    total: int
    next: str | None = Field(description="the cursor of the next page")
    schedule: ScheduleOf | None = Field(default=None, description="null where none is set")


class Accepted(BaseModel):
    """A finding that was accepted, and the document after it."""

    finding: FindingOf
    config: DocumentSummary


class Compared(BaseModel):
    """One document of a recheck; ``outcome`` is null while it waits."""

    name: str
    outcome: Literal["unchanged", "found", "known", "rejected", "failed", "gone"] | None = Field(
        description="`found` is a new finding, `known` an open one, `rejected` one that a person rejected"
    )
    finding: str | None
    error: Problem | None
    at: str | None


class Recheck(BaseModel):
    """The documents of a recheck by name, with their outcomes."""

    job: str
    counts: dict[str, int] = Field(description="documents by outcome; `waiting` have none yet")
    items: list[Compared]
    total: int
    next: str | None = Field(description="the cursor of the next page")


def selected(
    connection: Any, names: list[str] | None, filters: Filters, pointer: str = "/names"
) -> list[str]:
    """Return the names of documents: those listed, else those of a filter.

    Raises ServiceError("bad-request") with the place of each name without a document.
    """
    if names is None:
        return documents.names(connection, filters)
    present = {*documents.names(connection, filters)}
    missing = [(place, name) for place, name in enumerate(names) if name not in present]
    if missing:
        detail = "no document of the filter has this name"
        errors = [{"pointer": f"{pointer}/{place}", "detail": detail} for place, _ in missing[:200]]
        raise ServiceError("bad-request", problem=f"{missing[0][1]}: {detail}", errors=errors)
    return [*dict.fromkeys(names)]


@router.post(
    "/recheck", status_code=202, response_model=Job,
    responses=accepted() | problems("bad-value", "key-reused"),
    summary="Compare documents with an import now, or with another version of their engine",
)  # fmt: skip
def recheck(
    request: Request, at: AtDesk, who: Importer, once: AskedOnce, body: RecheckRequest | None = None
) -> Response:
    """Queue a recheck and answer at once with its job. It changes no document: what it finds waits for a
    person in `/v1/upkeep`. Without a body it is of all documents.
    """
    asked = body or RecheckRequest()
    engine = None if asked.engine is None else upgrade_versions.named(asked.engine)
    filters = asked.filters()
    if engine is not None:
        filters = replace(filters, backend=(engine.engine,))
    with at.database.writing() as connection:
        names = selected(connection, asked.names, filters)
        options = asked.model_dump(exclude_unset=True, exclude={"names"})
        options |= {} if engine is None else {"engine": engine.label}
        job = upkeep.ask(connection, names, options, who.name)
        audit.record(
            connection, act(request, who, "ask", asked.note), f"job {job.id}", {"rechecks": len(names)}
        )
        answer = once.answer(connection, job_json(job), 202, {"Location": f"/v1/jobs/{job.id}"})
    at.runner.hurry()
    return answer


@router.get(
    "/recheck/{job}", response_model=Recheck, responses=problems("no-such-job"),
    summary="The documents of a recheck, and the outcome of each",
)  # fmt: skip
def compared(
    job: Ident, at: AtDesk, _who: Reader, limit: Limit = 50,
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> dict[str, object]:  # fmt: skip
    """Return the documents by name. Pages continue with `cursor`."""
    with at.database.reading() as connection:
        if jobs.get(connection, job).kind != "recheck":
            raise ServiceError("no-such-job", job=job)
        rows, counts = findings.items(connection, job, limit + 1, cursor), findings.outcomes(connection, job)
    more = len(rows) > limit
    return {
        "job": job, "counts": counts, "items": [*map(_compared, rows[:limit])], "total": sum(counts.values()),
        "next": rows[limit - 1]["name"] if more else None,
    }  # fmt: skip


def _compared(row: Mapping[str, Any]) -> dict[str, object]:
    """Return a document of a recheck as it is answered."""
    return {**row, "error": None if row["error"] is None else problem_of(row["error"])}


@router.get("/upkeep", response_model=Findings, response_model_exclude_unset=True, responses=problems(),
            summary="Findings of rechecks, the newest first")  # fmt: skip
def listed(
    at: AtDesk, _who: Reader, limit: Limit = 50, cursor: Cursor = None,
    state: Annotated[list[FindingState] | None, Query(description="by default the open ones")] = None,
    cause: Annotated[CauseKind | None, Query()] = None,
    name: Annotated[Text | None, Query(description="the name of a document")] = None,
) -> dict[str, object]:  # fmt: skip
    """List findings. Pages continue with `cursor`; `total` counts all findings of the filters."""
    chosen = FindingFilter(state or ("open",), cause, name)
    with at.database.reading() as connection:
        rows = findings.page(connection, chosen, limit + 1, cursor)
        shown = [finding_json(row, documents.last_number(connection, row.name)) for row in rows[:limit]]
        total, schedule = findings.count(connection, chosen), processes.last(connection, upkeep.SCHEDULE)
    more = len(rows) > limit
    return {
        "items": shown,
        "total": total,
        "next": rows[limit - 1].id if more else None,
        "schedule": schedule and _schedule(schedule),
    }


def _schedule(row: Mapping[str, Any]) -> dict[str, object]:
    next_at = datetime.fromtimestamp(row["due"], UTC).isoformat(timespec="seconds")
    return {"every": row["every"], "next_at": next_at, "job": row["job"], "began_at": row["at"]}


@router.get("/upkeep/{finding}", response_model=WholeFinding, response_model_exclude_unset=True,
            responses=problems("no-such-finding"),
            summary="One finding, with the document before and after")  # fmt: skip
def one(finding: Ident, at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return the finding and what accepting it writes: a proposal, or one for each side of its conflicts."""
    with at.database.reading() as connection:
        row = upkeep.need(connection, finding)
        proposed = findings.proposals(connection, finding)
        version = documents.last_number(connection, row.name)
    try:
        text = at.gallery.get(row.name)[1].text
    except DocumentError:
        text = None
    proposals = {
        side: {"text": one["text"], "digest": one["digest"], "changes": one["changes"]}
        for side, one in proposed.items()
    }
    return finding_json(row, version) | {
        "document": row.summary["document"], "text": text, "proposals": proposals,
    }  # fmt: skip


@router.post(
    "/upkeep/{finding}/accept", response_model=Accepted, response_model_exclude_unset=True,
    responses=problems(
        "no-such-finding", "finding-settled", "finding-outdated", "no-such-document", "conflict",
        "cannot-edit", "needs-approver", "key-reused",
    ),
    summary="Write a finding into the working copy",
)  # fmt: skip
def accept(
    finding: Ident, request: Request, at: AtDesk, who: Importer, once: AskedOnce,
    body: Acceptance | None = None,
) -> Response:  # fmt: skip
    """Write the proposal that was shown. The review begins anew, and what the gallery serves stays."""
    said = body or Acceptance()
    with at.gallery.change(act(request, who, "accept", said.note)) as change:
        summary, found = upkeep.accept(change, finding, said.take, who, at.settings)
        data = {"finding": finding_json(found, summary.version), "config": config_json(summary)}
        return once.answer(change.connection, data, 200, {"ETag": etag(summary.version)})


@router.post(
    "/upkeep/{finding}/reject", response_model=FindingOf, response_model_exclude_unset=True,
    responses=problems("no-such-finding", "finding-settled", "key-reused"),
    summary="Reject a finding until something else changes",
)  # fmt: skip
def reject(
    finding: Ident, request: Request, at: AtDesk, who: Approver, once: AskedOnce, body: Note | None = None
) -> Response:
    """Reject a finding. Later rechecks show it only with another change; the document stays as it is."""
    note = None if body is None else body.note
    with at.database.writing() as connection:
        found = upkeep.reject(connection, finding, who.name, note)
        audit.record(connection, act(request, who, "reject finding", note), found.name, {"finding": finding})
        shown = finding_json(found, documents.last_number(connection, found.name))
        return once.answer(connection, shown, 200, {})


def finding_json(row: Finding, version: int) -> dict[str, object]:
    """Return a finding as lists have it; ``version`` is the newest of its document."""
    summary = row.summary
    base = f"/v1/upkeep/{row.id}"
    links = {"self": base, "config": f"/v1/configs/{row.name}"}
    if row.state == "open":
        links |= {"accept": f"{base}/accept", "reject": f"{base}/reject"}
    shown = ("id", "name", "version", "state", "at", "seen_at", "job", "by", "decided_at", "why")
    return {
        **{key: getattr(row, key) for key in shown},
        **{key: summary[key] for key in ("model", "causes", "decisions", "conflicts", "refused")},
        "kinds": row.causes,
        "outdated": row.version != version,
        "links": {name: {"href": href} for name, href in links.items()},
    }


router_upkeep_groups = APIRouter(prefix="/v1", tags=["upkeep"], route_class=Reads)
EXAMPLES = 5
MOST = 500  # ids of a group
ALONE: Mapping[str, Any] = {"what": CauseKind.RULES, "before": None, "after": None}


class FindingGroup(BaseModel):
    """Open findings with one cause; a finding with several causes is in several groups."""

    cause: Caused
    documents: int
    conflicts: int = Field(description="findings that need `take`")
    refused: int = Field(description="findings that cannot be accepted as they are")
    examples: list[str] = Field(description="names of the first documents")
    findings: list[str] = Field(description="the first 500 ids")


class FindingGroups(BaseModel):
    """Groups of open findings, those with the most documents first."""

    groups: list[FindingGroup]
    total: int = Field(description="open findings of the filters")


@router_upkeep_groups.get("/upkeep/groups", response_model=FindingGroups, response_model_exclude_unset=True,
            responses=problems(), summary="Open findings by cause")  # fmt: skip
def groups(
    at: AtDesk, _who: Reader,
    job: Annotated[str | None, Query(max_length=64, description="the job that found them last")] = None,
    cause: Annotated[CauseKind | None, Query()] = None,
) -> dict[str, object]:  # fmt: skip
    """Return the causes of open findings with counts, examples and ids.

    The version of an engine is a group of its own only for documents without another cause.
    """
    chosen = FindingFilter(("open",), cause, None, job)
    found: dict[tuple[Any, ...], FindingGroup] = {}
    total = 0
    with at.database.reading() as connection:
        for ident, name, summary in findings.summaries(connection, chosen):
            total += 1
            for one in _causes(summary):
                group = found.setdefault(identity(one), _empty(one))
                _add(group, ident, name, summary)
    return {"groups": sorted(found.values(), key=lambda group: -group.documents), "total": total}


def _causes(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    causes = [one for one in summary["causes"] if one["what"] != CauseKind.ENGINE]
    return causes or [*summary["causes"]] or [ALONE]


def _empty(cause: Mapping[str, object]) -> FindingGroup:
    shown = Caused.model_validate({name: value for name, value in cause.items() if name != "files"})
    return FindingGroup(cause=shown, documents=0, conflicts=0, refused=0, examples=[], findings=[])


def _add(group: FindingGroup, ident: str, name: str, summary: Mapping[str, object]) -> None:
    group.documents += 1
    group.conflicts += bool(summary["conflicts"])
    group.refused += summary["refused"] is not None
    if len(group.examples) < EXAMPLES:
        group.examples.append(name)
    if len(group.findings) < MOST:
        group.findings.append(ident)
