"""``/v1/recheck``: what importing documents again would change, as a job, and its answer for each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer.app.parser_choice import check_version
from importer.backends import NAMES
from importer.errors import ServiceError, Setting, UsageError
from importer.service.desk import AtDesk, json_answer
from importer.service.domain.import_request import Spoken, Text
from importer.service.http.models import Conflict, Job, Problem, WarningEntry, job_json
from importer.service.http.query import OTHER_LIST, DocumentSelection, Ident, Limit, refusal
from importer.service.problems import accepted, problem_of
from importer.service.reads import Reads
from importer.service.security import Importer, Reader, act
from importer.storage import audit, documents, jobs, rechecks
from importer.storage.documents import ABSENT, Filters
from importer.storage.rechecks import Compared, Outcome

router = APIRouter(prefix="/v1/recheck", tags=["recheck"], route_class=Reads)
MOST_NAMES = 10_000


class RecheckRequest(DocumentSelection):
    """The documents to compare with an import now: all, those named, or those of a filter."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {}, {"names": ["qwen3-8b"]}, {"backend": "vllm", "engine_version": "0.33.0"},
    ]})  # fmt: skip

    engine_version: Text | None = Field(
        default=None,
        description="another version of their engine; documents whose engine lacks it are left out",
    )
    names: list[Text] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    note: Spoken | None = Field(default=None, description="why, for the audit log")


class DryImport(BaseModel):
    """What an import would change, in the words of a preview."""

    engine_version: str | None = Field(description="the version that is required, if one is")
    changes: list[dict[str, object]] = Field(description="of the document, each with its reasons (`why`)")
    edits: list[dict[str, object]] = Field(description="what stays of a person's edits")
    conflicts: list[Conflict]
    warnings: list[WarningEntry] = Field(
        description="what would need attention, and did not after the last import"
    )
    weights: list[str] = Field(description="weights with other digests")
    unproved: bool = Field(description="whether the last import had a proof, and this one has none")
    refused: dict[str, object] | None = Field(description="why an import would fail now")


class Comparison(BaseModel):
    """One document of a recheck; ``outcome`` is null while it waits."""

    job: str
    name: str
    outcome: Outcome | None = Field(description="`left-out`: its engine has no such version")
    version: int | None = Field(description="the version of the working copy that was compared")
    found: DryImport | None = Field(description="null for an unchanged document")
    error: Problem | None
    at: str | None


def comparison_json(row: Compared) -> dict[str, object]:
    """Return one document of a recheck as it is answered."""
    return asdict(row) | {"error": None if row.error is None else problem_of(row.error)}


class Recheck(BaseModel):
    """The documents of a recheck by name, with their outcomes."""

    job: str
    counts: dict[str, int] = Field(description="documents by outcome; `waiting` have none yet")
    items: list[Comparison]
    total: int
    next: str | None = Field(description="the cursor of the next page")


def _selected(connection: Any, names: list[str] | None, filters: Filters) -> list[str]:
    """Return the names of documents: those listed, else those of a filter.

    Raises ServiceError("bad-request") with the place of each name without a document.
    """
    if names is None:
        return documents.names(connection, filters)
    present = {*documents.names(connection, filters)}
    missing = [(place, name) for place, name in enumerate(names) if name not in present]
    if missing:
        detail = "no document of the filter has this name"
        errors = [{"pointer": f"/names/{place}", "detail": detail} for place, _ in missing[:200]]
        raise ServiceError("bad-request", problem=f"{missing[0][1]}: {detail}", errors=errors)
    return [*dict.fromkeys(names)]


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=accepted(),
    summary="Compare documents with an import now, or with one for another version of their engine",
)
def recheck(request: Request, at: AtDesk, who: Importer, body: RecheckRequest | None = None) -> Response:
    """Queue a recheck and answer at once with its job. It changes no document: what an import would change
    stands on the document, in `recheck`. Without a body it is of all documents.
    """
    asked = body or RecheckRequest()
    check_version(asked.engine_version)
    with at.database.writing() as connection:
        names = _selected(connection, asked.names, asked.filters())
        unknown = [one for one in asked.filters().backend if one not in (ABSENT, *NAMES)]
        if not names and unknown:
            problem = f"must be one of {', '.join(NAMES)}"
            raise UsageError("bad-value", setting=Setting.BACKEND, value=unknown[0], problem=problem)
        job = rechecks.ask(
            connection, names, asked.model_dump(exclude_unset=True, exclude={"names"}), who.name
        )
        audit.record(
            connection, act(request, who, "ask", asked.note), f"job {job.id}", {"rechecks": len(names)}
        )
        answer = json_answer(job_json(job), 202, {"Location": f"/v1/jobs/{job.id}"})
    at.runner.hurry()
    return answer


@router.get(
    "/{job}",
    response_model=Recheck,
    summary="The documents of a recheck, and what an import of each would change",
)
def compared(
    job: Ident, at: AtDesk, _who: Reader, limit: Limit = 50,
    cursor: Annotated[str, Query(max_length=200)] = "",
    outcome: Annotated[Outcome | None, Query(description="only documents with this outcome")] = None,
) -> dict[str, object]:  # fmt: skip
    """Return the documents by name. Pages continue with `cursor`; `total` counts all of the recheck."""
    with at.database.reading() as connection:
        if jobs.get(connection, job).kind != "recheck":
            raise ServiceError("no-such-job", job=job)
        if cursor and not rechecks.has(connection, job, cursor):
            raise refusal("cursor", OTHER_LIST)
        rows = rechecks.page(connection, job, limit + 1, cursor, outcome)
        counts = rechecks.outcomes(connection, job)
    return {
        "job": job, "counts": counts, "items": [*map(comparison_json, rows[:limit])],
        "total": sum(counts.values()), "next": rows[limit - 1].name if len(rows) > limit else None,
    }  # fmt: skip
