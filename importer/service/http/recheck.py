"""``/recheck`` of a document: what importing it again would change, as a job."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer import backends
from importer.app.parser_choice import check_version
from importer.service.desk import AtDesk, json_answer
from importer.service.domain.import_request import Body, Spoken, Text
from importer.service.http.models import Conflict, Job, WarningEntry, job_json
from importer.service.problems import accepted
from importer.service.reads import Reads
from importer.service.security import Importer, act
from importer.storage import audit, jobs
from importer.storage.rechecks import Compared

router = APIRouter(prefix="/v1/configs", tags=["recheck"], route_class=Reads)


class RecheckRequest(Body):
    """What the document is compared with: an import now, or one for another version of its engine."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"engine_version": "0.33.0"}]})

    engine_version: Text | None = Field(default=None, description="another version of its engine")
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
    """What the last recheck of a document found."""

    job: str
    version: int = Field(description="the version of the working copy that was compared")
    found: DryImport
    at: str


def comparison_json(row: Compared) -> dict[str, object]:
    """Return a comparison as it is answered."""
    return asdict(row)


@router.post(
    "/{name}/recheck",
    status_code=202,
    response_model=Job,
    responses=accepted(),
    summary="Compare a document with an import now, or with one for another version of its engine",
)
def recheck(
    name: str, request: Request, at: AtDesk, who: Importer, body: RecheckRequest | None = None
) -> Response:
    """Queue a recheck and answer at once with its job. It changes no document: what an import would change
    stands in `/v1/configs/NAME/review`, in `recheck`.
    """
    asked = body or RecheckRequest()
    backend = at.gallery.get(name)[1].stored.backend
    check_version(asked.engine_version, (backend, *backends.NAMES))  # a refusal names the document's engine
    with at.database.writing() as connection:
        wanted = {"config": name, **asked.model_dump(exclude_unset=True)}
        job = jobs.create(connection, "recheck", wanted, who.name, config=name)
        audit.record(connection, act(request, who, "ask", asked.note), f"job {job.id}", wanted)
        answer = json_answer(job_json(job), 202, {"Location": f"/v1/jobs/{job.id}"})
    at.runner.hurry()
    return answer
