"""``POST /v1/imports``: import a model or a list, each line accepted or refused alone; or preview.

``GET /v1/hub/models``: a search of the Hub, for a field that takes a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from importer.app.decide import finalize, prove_studied
from importer.app.import_ import Plan, build_plan, compare
from importer.app.study import Studied
from importer.document.build import to_json
from importer.document.name_allocator import Names
from importer.document.receipt import evidence_json
from importer.document.review import change_json
from importer.document.store import Store
from importer.errors import ImporterError, ServiceError
from importer.frozen import frozen
from importer.hub.reference import LONGEST, parse
from importer.hub.search import Hit
from importer.hub.search import search as hub_search
from importer.sentences import render
from importer.service import messages
from importer.service.desk import AtDesk, Desk, json_answer
from importer.service.domain.grants import Caller, admitted, check_reference
from importer.service.domain.import_request import Import, Text, request_of
from importer.service.http.editor import look_at_edit, turn
from importer.service.http.models import Job, Preview, job_json
from importer.service.problems import LOCATION, ProblemDetails, accepted, problem
from importer.service.security import Importer, act
from importer.service.settings import Settings
from importer.storage import audit, jobs
from importer.storage.audit import AuditContext
from importer.storage.jobs import Job as JobsJob

PLACEHOLDER = "owner/name"  # a reference without a fault, to judge options alone
SHOWN = 200  # characters of a refused line


@frozen
class Line:
    """One line: its number from 1, the reference as it was sent, and the problem where it is refused."""

    number: int
    reference: Any
    error: Mapping[str, object] | None = None

    @property
    def refusal(self) -> dict[str, object]:
        """Return what the list keeps of a refused line."""
        sent = self.reference if isinstance(self.reference, str) else repr(self.reference)
        return {"line": self.number, "reference": sent[:SHOWN], "error": self.error}

    def result(self, job: JobsJob | None) -> dict[str, object]:
        """Return the line's result, as an answer of its own would have it."""
        if job is None:
            return self.refusal | {"status": (self.error or {}).get("status", 400), "job": None, "href": None}
        return {
            "line": self.number, "reference": self.reference, "status": 202, "job": job.id,
            "href": f"/v1/jobs/{job.id}", "error": None,
        }  # fmt: skip


def read_lines(body: Import, references: Sequence[Any], who: Caller, settings: Settings) -> list[Line]:
    """Return every line of a list with its problem, where it has one.

    Raises the fault of an option, and, where every line is refused, the first fault with all in its
    ``errors``.
    """
    if len(references) > settings.references:
        detail = f"a list has at most {settings.references} references"
        raise ServiceError(
            "bad-request", problem=detail, errors=[{"pointer": "/references", "detail": detail}]
        )
    admitted(body.model_copy(update={"reference": PLACEHOLDER}), who, settings)
    found = [
        (f"/references/{place}", *_line(one, body.options["revision"], who, settings))
        for place, one in enumerate(references)
    ]
    faults = [(pointer, error) for pointer, _, error in found if error is not None]
    if len(faults) == len(found):
        errors = [{"pointer": pointer, "detail": messages.detail(error)} for pointer, error in faults]
        raise faults[0][1].but(errors=errors)
    return [
        Line(number, reference, None if error is None else _problem(pointer, error))
        for number, (pointer, reference, error) in enumerate(found, 1)
    ]


def _line(
    sent: Any, revision: str | None, who: Caller, settings: Settings
) -> tuple[Any, ImporterError | None]:
    """Return the reference and its fault."""
    if not isinstance(sent, str):
        return sent, ServiceError("bad-request", problem="must be a string")
    reference = sent.strip()
    if not reference:
        return reference, ServiceError("bad-request", problem="must not be empty")
    if len(reference) > LONGEST:
        return reference, ServiceError("bad-request", problem=f"must have at most {LONGEST} characters")
    try:
        check_reference(reference, revision, who, settings)
    except ImporterError as error:
        return reference, error
    return reference, None


def _problem(pointer: str, error: ImporterError) -> ProblemDetails:
    return problem(error, [{"pointer": pointer, "detail": messages.detail(error)}])


router = APIRouter(prefix="/v1/imports", tags=["imports"])
ASKING = (
    "with the problem `ambiguous` and its `candidates` as `error` where several backends could take the model"
)


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=accepted(ASKING)
    | {207: {"model": Job, "description": "The list was accepted but for some lines", "headers": LOCATION}},
    summary="Import a model or a list of models",
)
def create(body: Import, request: Request, at: AtDesk, who: Importer) -> Response:
    """Queue an import and answer at once with its job; `Location` names it. A list is one job with a job for
    each reference.

    A refused line of a list does not refuse the others: the answer is 207, and `lines` has the result of
    each.

    Several backends may be able to serve a model. Where the request names none, a directory is analysed
    first, and this answers 409 with the candidates; a repository of the Hub is analysed by the job, which
    then fails with the same problem.
    """
    if body.references is not None:
        return _list(body, body.references, act(request, who, "ask", body.note), at, who)
    admitted(body, who, at.settings)
    seen = _seen(body, at, who)
    with at.database.writing() as connection:
        made = jobs.create(connection, "import", body.model_dump(exclude_unset=True), who.name)
        audit.record(connection, act(request, who, "ask", body.note), f"job {made.id}", {"imports": 1})
        answered = json_answer(job_json(made), 202, {"Location": f"/v1/jobs/{made.id}"})
    if seen is None:
        at.runner.hurry()
    else:
        at.runner.bring(made, seen)
    return answered


def _list(body: Import, references: Sequence[Any], doing: AuditContext, at: Desk, who: Caller) -> Response:
    """Queue a list: a job for each line that is not refused, and a result for each line."""
    lines = read_lines(body, references, who, at.settings)
    options = body.model_dump(exclude_unset=True, exclude={"references"})
    refused = [line.refusal for line in lines if line.error is not None]
    accepted_lines = [line for line in lines if line.error is None]
    with at.database.writing() as connection:
        request = options | {"references": [line.reference for line in accepted_lines]}
        root = jobs.create(
            connection, "imports", request | ({"refused": refused} if refused else {}), who.name
        )
        made = {
            line.number: jobs.create(
                connection,
                "import",
                {**options, "reference": line.reference},
                who.name,
                root=root,
                place=place,
            )
            for place, line in enumerate(accepted_lines, 1)
        }
        audit.record(
            connection,
            doing,
            f"job {root.id}",
            {"imports": len(made)} | ({"refused": len(refused)} if refused else {}),
        )
        results = [line.result(made.get(line.number)) for line in lines]
        members = job_json(root, {"queued": len(made)}) | {"lines": results}
        headers = {"Location": f"/v1/jobs/{root.id}"}
        answered = json_answer(members, 207 if refused else 202, headers)
    at.runner.hurry()
    return answered


def _seen(body: Import, at: Desk, who: Caller) -> Studied | None:
    """Analyse a directory before the job, without a request to the Hub; ``None`` where the job does it."""
    if (
        body.options["backend"] is not None
        or body.reference is None
        or parse(body.reference).directory is None
    ):
        return None
    with turn(at):
        return look_at_edit(body, at, who)


@router.post(
    "/preview",
    response_model=Preview,
    response_model_exclude_unset=True,
    summary="What an import would write",
)
def preview(body: Import, at: AtDesk, who: Importer) -> dict[str, object]:
    """Return the document, its decisions and what it changes, without writing. The request waits for them."""
    if body.reference is None:
        problem = "a preview is of one reference"
        raise ServiceError(
            "bad-request", problem=problem, errors=[{"pointer": "/references", "detail": problem}]
        )
    with turn(at):
        return _preview(body, at, who)


def _preview(body: Import, at: Desk, who: Caller) -> dict[str, object]:
    studied = look_at_edit(body, at, who)
    decided = finalize(studied, prove_studied(studied, at.runner.bench))
    with at.gallery.checkout() as folder:
        kept = studied.request.added(request_of(body, at.settings))
        return _shown(build_plan(decided, Names(folder)), folder, body) | {"kept": kept}


def _shown(planned: Plan, folder: Store, body: Import) -> dict[str, object]:
    settled = compare(planned, folder, body.take, body.on_conflict)
    return {
        "name": planned.name,
        "model": planned.model,
        "revision": planned.snapshot.revision,
        "backend": planned.target.backend,
        "text": settled.text,
        "document": settled.plan.built.data,
        "decisions": {k: to_json(d) for k, d in planned.decisions.items()},
        "evidence": evidence_json(planned.evidence),
        "fit": planned.fit.to_json(),
        "proof": None if planned.proof is None else planned.proof.to_json(),
        "unknown": {path: render(reason) for path, reason in planned.snapshot.unknown.items()},
        "new": settled.old is None,
        "edits": [change_json(c) for c in settled.edits],
        "changes": [change_json(c) for c in settled.changes],
        "conflicts": [c.to_json() for c in settled.unsettled],
        "warnings": [warning.to_json() for warning in settled.warnings],
    }


router_hub = APIRouter(prefix="/v1/hub", tags=["imports"])
MOST = 20  # models of one answer


@router_hub.get("/models", summary="Search the Hub")
def search(
    at: AtDesk,
    _who: Importer,
    q: Annotated[Text, Query(description="a part of a name")],
    limit: Annotated[int, Query(ge=1, le=MOST)] = 10,
) -> dict[str, list[Hit]]:
    """Return public models, the most downloaded first. The server asks its Hub once."""
    with turn(at):
        return {"items": hub_search(q, limit)}
