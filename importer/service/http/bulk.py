"""``POST /v1/bulk``: one action on many documents or findings, with a result for each."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from sqlalchemy import Connection

from importer.errors import DocumentError, ImporterError, ServiceError
from importer.service.desk import AtDesk, Desk
from importer.service.domain import upkeep
from importer.service.domain.bulk import Bulk, BulkItem, BulkOptions, BulkResult
from importer.service.domain.import_request import Body, Spoken, Text
from importer.service.http.headers import AskedOnce
from importer.service.http.models import DocumentSummary, Problem, config_json
from importer.service.http.query import DocumentSelection
from importer.service.problems import problem, problems
from importer.service.security import Reader, act
from importer.storage import audit, documents, findings
from importer.storage.audit import AuditContext
from importer.storage.documents import Filters
from importer.storage.findings import FindingFilter

router = APIRouter(prefix="/v1", tags=["upkeep"])
MOST = 500  # items of one request
Action = Literal[
    "approve", "reject", "validate", "recheck", "reimport", "release", "withdraw", "delete", "undelete",
    "accept", "dismiss",
]  # fmt: skip
SCOPES: dict[str, str] = {
    "approve": "approve", "reject": "approve", "validate": "import", "recheck": "import", "accept": "import",
    "dismiss": "approve", "reimport": "import", "release": "publish", "withdraw": "publish",
    "delete": "approve", "undelete": "approve",
}  # fmt: skip
OF_FINDINGS = ("accept", "dismiss")
DIGESTED = ("approve", "release", "delete")  # each item names what was seen
LISTED = (*DIGESTED, *OF_FINDINGS, "withdraw", "undelete")  # a filter only for a dry run
SEEN: JsonDict = {"name": "qwen3-8b", "digest": f"sha256:{'0' * 64}"}
Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


class Item(Body):
    """A document by name, with the digest that was seen; or a finding by its id."""

    model_config = ConfigDict(json_schema_extra={"examples": [SEEN]})

    name: Text | None = None
    digest: Digest | None = Field(default=None, description="required to approve, to release and to delete")
    finding: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Item:
        if (self.name is None) == (self.finding is None):
            raise ValueError("give either name or finding")
        return self


class Selection(DocumentSelection):
    """Documents or findings by filter."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"state": ["draft"], "backend": "vllm"}]})

    cause: Text | None = Field(default=None, description="of findings alone: the kind of a cause")


class BulkRequest(Body):
    """One action on many: `accept` and `dismiss` (reject) are of findings, all others of documents."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"action": "approve", "items": [SEEN], "note": "a day in staging"},
        {"action": "validate", "filter": {"state": ["approved"]}, "dry_run": True},
    ]})  # fmt: skip

    action: Action
    items: list[Item] | None = Field(default=None, min_length=1, max_length=MOST)
    filter: Selection | None = Field(
        default=None, description="in place of items; a review needs items, a dry run gives their digests"
    )
    dry_run: bool = Field(default=False, description="answer what would happen, and change nothing")
    note: Spoken | None = Field(default=None, description="why; a rejection needs it")
    take: Literal["mine", "theirs"] | None = Field(
        default=None,
        description="of `accept` and `reimport`: whose value counts where an edit and an import differ",
    )
    publish: bool = Field(default=False, description="of `approve`: release what is validated, too")

    @model_validator(mode="after")
    def _whole(self) -> BulkRequest:
        if (self.items is None) == (self.filter is None):
            raise ValueError("give either items or filter")
        if self.action == "reject" and not self.note:
            raise ValueError("a rejection needs a note")
        return self


class Result(BaseModel):
    """The result of one item; ``status`` is that of the same request alone."""

    name: str | None = None
    finding: str | None = None
    digest: str | None = Field(
        default=None, description="of the document as it was seen, or before the action"
    )
    status: int
    outcome: Literal["done", "would", "refused"] = Field(description="`would` of a dry run")
    job: str | None = None
    merged: bool = Field(description="whether an equal validation was queued before")
    config: DocumentSummary | None = Field(default=None, description="the document afterwards")
    problem: Problem | None = None


class Results(BaseModel):
    """The results in the order of the items; an item that was refused leaves the others as they are."""

    action: Action
    dry_run: bool
    counts: dict[str, int] = Field(description="items by outcome")
    items: list[Result]


SOME: dict[int | str, dict[str, object]] = {
    207: {"model": Results, "description": "Some items were refused; the others were done"}
}


@router.post("/bulk", response_model=Results, responses=SOME | problems("key-reused"),
             summary="One action on many documents or findings")  # fmt: skip
def bulk(body: BulkRequest, request: Request, at: AtDesk, who: Reader, once: AskedOnce) -> Response:
    """Do an action on each item, and answer with a result for each. The key needs the scope of the action.

    The status is 207 where an item was refused, as of a list of imports.

    `dry_run` answers what would happen: each item is tried in a transaction that is discarded.
    """
    who.needs(SCOPES[body.action])
    items = _items(body, at)
    names = {"recheck": "ask", "validate": "ask", "dismiss": "reject finding"}
    context = act(request, who, names.get(body.action, body.action), body.note)
    if body.action == "recheck":
        results = _recheck(items, body, at, who.name, context)
    else:
        options = BulkOptions(body.note, body.take, body.publish, body.dry_run)
        work = Bulk(at.gallery, at.settings, who, context, options)
        results = [work.run(body.action, item) for item in items]
    at.runner.hurry()
    shown = [_shown(result, dry_run=body.dry_run) for result in results]
    counts = Counter(one["outcome"] for one in shown)
    data = {"action": body.action, "dry_run": body.dry_run, "counts": dict(counts), "items": shown}
    with at.database.writing() as connection:
        return once.answer(connection, data, 207 if "refused" in counts else 200, {})


def _items(body: BulkRequest, at: Desk) -> list[BulkItem]:
    """Return the items of a request, or those of its filter.

    Raises ServiceError("bad-request") for items of another kind, and for a filter in place of what was seen.
    """
    of_findings = body.action in OF_FINDINGS
    if body.items is not None:
        wrong = [place for place, item in enumerate(body.items) if (item.finding is not None) != of_findings]
        if wrong:
            detail = "must name a finding" if of_findings else "must name a document"
            raise _bad(detail, *(f"/items/{place}" for place in wrong))
        return [BulkItem(item.name, item.digest, item.finding) for item in body.items]
    chosen = body.filter or Selection()
    if body.action in LISTED and not body.dry_run:
        raise _bad("only a dry run takes a filter here; send the items that it answered", "/filter")
    filters = chosen.filters()
    with at.database.reading() as connection:
        names = documents.names(connection, filters)
        if of_findings:
            present = {*names}
            rows = findings.page(connection, FindingFilter(("open",), chosen.cause), MOST + 1)
            found = [BulkItem(finding=row.id) for row in rows if row.name in present]
        else:
            found = [BulkItem(name) for name in names[: MOST + 1]]
            if len(found) <= MOST:
                found = [_seen(connection, item) for item in found]
    if len(found) > MOST:
        raise _bad(f"it leaves more than {MOST} items; choose fewer", "/filter")
    return found


def _seen(connection: Connection, item: BulkItem) -> BulkItem:
    row = documents.summary(connection, str(item.name))
    return item if row is None else BulkItem(item.name, row.digest)


def _recheck(
    items: list[BulkItem], body: BulkRequest, at: Desk, by: str, context: AuditContext
) -> list[BulkResult]:
    """Queue one job for all documents that are there."""
    with at.database.writing() as connection:
        present = {*documents.names(connection, Filters())}
        names = [str(item.name) for item in items if item.name in present]
        job = None
        if names and not body.dry_run:
            job = upkeep.ask(connection, names, {}, by).id
            audit.record(connection, context, f"job {job}", {"rechecks": len(names)})
    return [
        BulkResult(item, item.name, job=job)
        if item.name in present
        else BulkResult(item, item.name, error=_missing(str(item.name)))
        for item in items
    ]


def _missing(name: str) -> ImporterError:
    return DocumentError("no-such-document", name=name, folder="the gallery")


def _bad(detail: str, *pointers: str) -> ServiceError:
    errors = [{"pointer": pointer, "detail": detail} for pointer in pointers]
    return ServiceError("bad-request", problem=f"{pointers[0]}: {detail}", errors=errors)


def _shown(result: BulkResult, *, dry_run: bool) -> dict[str, object]:
    refused = None if result.error is None else problem(result.error)
    done = 202 if result.job is not None else 200
    return {
        "name": result.name, "finding": result.item.finding, "digest": result.item.digest,
        "status": done if refused is None else refused["status"],
        "outcome": "refused" if refused else "would" if dry_run else "done",
        "job": result.job, "merged": result.merged, "problem": refused,
        "config": None if result.summary is None else config_json(result.summary),
    }  # fmt: skip
