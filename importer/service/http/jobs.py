"""``/v1/jobs``: the progress of jobs, their events, cancel and retry."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import Connection

from importer.config import number
from importer.errors import ServiceError
from importer.service.desk import AtDesk, Desk, json_answer
from importer.service.domain.grants import Caller, admitted, need_approval
from importer.service.domain.import_request import Import
from importer.service.http.models import (
    Job,
    JobPage,
    JobState,
    JobStep,
    JobSummary,
    Retry,
    event_json,
    job_json,
)
from importer.service.http.query import OTHER_LIST, JobSort, Limit, Since, refusal, utc
from importer.service.jobs.live_jobs import ALL
from importer.service.problems import accepted
from importer.service.reads import Reads
from importer.service.security import Importer, Reader, act
from importer.storage import audit, jobs
from importer.storage.jobs import BegunStep, Event, JobFilters
from importer.storage.jobs import Job as JobRow
from importer.storage.jobs import Job as JobsJob

FIGURES = ("done", "total", "unit", "passed", "failed")


def progress_of(connection: Connection, job: JobsJob, names: Sequence[str]) -> dict[str, object] | None:
    """Return the steps of a job and the figures of the present one; ``None`` for a list."""
    if job.kind == "imports":
        return None
    begun = {one.name: one for one in jobs.begun(connection, job)}
    present = [*begun][-1] if begun and job.state == "running" else None
    steps = [_step(name, begun.get(name), present) for name in dict.fromkeys((*names, *begun))]
    figures = jobs.figures(connection, job) if present is not None else {}
    same = present is not None and figures.get("step") in (None, present)
    return {
        "number": None if present is None else [one.step for one in steps].index(present) + 1,
        "of": len(steps),
        "seconds": None if job.started_at is None else jobs.between(job.started_at, job.ended_at),
        "steps": steps,
        **{key: figures.get(key) if same else None for key in FIGURES},
    }


def _step(name: str, found: BegunStep | None, present: str | None) -> JobStep:
    if found is None:
        return JobStep(step=name, state="later", seconds=None)
    if name == present:
        return JobStep(step=name, state="now", seconds=jobs.between(found.at))
    return JobStep(step=name, state="done", seconds=found.seconds)


router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=Reads)
AGAIN = ("failed", "cancelled")  # what may be tried again; what waits needs an answer, too
IDENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
AT_ONCE = 500  # events in one look
NEVER = 10**9  # no event has a higher number
BREATH = 15.0  # seconds between two signs that a silent stream is alive


@router.get("", response_model=JobPage, response_model_exclude_unset=True, summary="Jobs, the newest first")
def list_(
    at: AtDesk,
    _who: Reader,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(max_length=64)] = None,
    state: Annotated[list[JobState] | None, Query()] = None,
    kind: Annotated[str | None, Query(pattern="^(import|imports|validation|recheck)$")] = None,
    config: Annotated[str | None, Query(max_length=200)] = None,
    parent: Annotated[str | None, Query(max_length=64)] = None,
    updated_since: Since = None,
    sort: Annotated[JobSort, Query(description="the order; with `-` the last first")] = "-created_at",
) -> dict[str, object]:
    """List jobs. Pages continue with `cursor`; `parent` lists the jobs of a list, in order; `config`
    those of lists, too. `total` counts all jobs of the filters.
    """
    filters = JobFilters(state or (), kind, config, parent, utc(updated_since))
    if cursor is not None and (number(cursor, NEVER, 0) is None if parent else not IDENT.fullmatch(cursor)):
        raise refusal("cursor", OTHER_LIST)
    with at.database.reading() as connection:
        rows = jobs.page(connection, limit + 1, filters, behind=cursor, oldest_first=sort == "created_at")
        total = jobs.total(connection, filters)
        shown = [job_json(job, _counts(connection, job)) for job in rows[:limit]]
    more = len(rows) > limit
    last = rows[limit - 1] if more else None
    behind = None if last is None else (str(last.place) if parent else last.id)
    return {"items": shown, "total": total, "next": behind}


def _counts(connection: Any, job: JobRow) -> dict[str, int] | None:
    return jobs.counts(connection, job.id) if job.kind == "imports" else None


@router.get("/summary", response_model=JobSummary, summary="All jobs in figures")
def summary(at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return how many jobs queue, run and wait for an answer, how many failed within 24 hours, and the first
    that run.
    """
    return _summary(at)


def _summary(at: Desk) -> dict[str, object]:
    with at.database.reading() as connection:
        return jobs.summary(connection)


@router.get(
    "/summary/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "Events of the type `summary`, whose `data` is that of `GET /v1/jobs/summary`",
        }
    },
    summary="All jobs in figures as they change",
)
async def summary_events(request: Request, at: AtDesk, _who: Reader) -> Response:
    """Stream server-sent events: the figures now, and after each change. The stream has no end."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_summaries(at, request), media_type="text/event-stream", headers=headers)


async def _summaries(at: Desk, request: Request) -> AsyncIterator[str]:
    async with at.watching.job(ALL) as something:
        last = None
        while not request.app.state.ending:
            something.clear()
            now = await asyncio.to_thread(_summary, at)
            if now != last:
                last = now
                yield f"event: summary\ndata: {json.dumps(now)}\n\n"
            try:
                await asyncio.wait_for(something.wait(), BREATH)
            except TimeoutError:
                yield ": still here\n\n"


@router.get("/{job}", response_model=Job, response_model_exclude_unset=True, summary="One job")
def get_(job: str, at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return a job with its state, its result and its progress: each step with its seconds."""
    with at.database.reading() as connection:
        row = jobs.get(connection, job)
        shown = job_json(row, _counts(connection, row))
        return shown | {"progress": progress_of(connection, row, at.runner.steps_of(row))}


@router.get(
    "/{job}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "Events `queued`, `step`, `progress`, and the state at the end",
        },
        204: {"description": "It has ended, and nothing is new"},
    },
    summary="A job's events as they happen",
)
async def events(
    job: str,
    request: Request,
    at: AtDesk,
    _who: Reader,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", description="of the last event that you have")
    ] = None,
) -> Response:
    """Stream server-sent events; `id` grows, and `Last-Event-ID` continues behind one. The stream ends with
    the job.

    Without it the stream of a retried job begins at the latest attempt; with 0 it has all attempts.
    """
    known = _number(last)
    after, row, new = await asyncio.to_thread(_begin, at, job, known)
    if row.state in jobs.ENDED and not new and last is not None:
        return Response(status_code=204)  # a browser reconnects to the stream until 204
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _stream(at, row, after, request), media_type="text/event-stream", headers=headers
    )


def _number(last: str | None) -> int | None:
    """Return the number of the last event that the client has; ``None`` for any other text."""
    if last is None or not (last.isascii() and last.isdecimal()):
        return None
    found = number(last, NEVER, 0)
    return NEVER if found is None else found


def _begin(at: Desk, ident: str, known: int | None) -> tuple[int, JobRow, list[Event]]:
    """Return the event that a stream begins behind, the job and the first events."""
    with at.database.reading() as connection:
        row = jobs.get(connection, ident)
        after = jobs.before(connection, row) if known is None else known
    return after, *_look(at, ident, after)


def _look(at: Desk, ident: str, after: int) -> tuple[JobRow, list[Event]]:
    """Return the job, then its events: one that has ended has no more than these."""
    with at.database.reading() as connection:
        row = jobs.get(connection, ident)
        return row, jobs.events(connection, row, after, AT_ONCE)


async def _stream(at: Desk, job: JobRow, after: int, request: Request) -> AsyncIterator[str]:
    async with at.watching.job(job.root) as something:
        yield ": watching\n\n"
        while not request.app.state.ending:
            something.clear()
            row, new = await asyncio.to_thread(_look, at, job.id, after)
            for event in new:
                after = event["number"]
                yield _event(event)
            if len(new) == AT_ONCE:
                continue
            if row.state in jobs.ENDED:
                return
            try:
                await asyncio.wait_for(something.wait(), BREATH)
            except TimeoutError:
                yield ": still here\n\n"


def _event(event: Event) -> str:
    """Return one event; JSON has no line breaks of its own."""
    data = json.dumps({"job": event["job"], "at": event["at"], **event_json(event["data"])})
    return f"id: {event['number']}\nevent: {event['type']}\ndata: {data}\n\n"


@router.post("/{job}/cancel", response_model=Job, summary="Cancel a job")
def cancel(job: str, request: Request, at: AtDesk, who: Importer) -> Response:
    """Cancel a job. Its engine is stopped with all its processes; of a list all jobs are cancelled."""
    with at.database.writing() as connection:
        row = jobs.get(connection, job)
        if row.state not in jobs.CANCELLABLE:
            raise ServiceError("has-ended", job=job, state=row.state)
        ended = jobs.cancel(connection, row)
        audit.record(connection, act(request, who, "cancel"), f"job {job}", {"jobs": len(ended)})
        now = jobs.get(connection, job)
        answered = json_answer(job_json(now, _counts(connection, now)), 200, {})
    at.runner.cancelled(ended)
    return answered


@router.post(
    "/{job}/retry", status_code=202, response_model=Job, responses=accepted(), summary="Try a job again"
)
def retry(job: str, request: Request, at: AtDesk, who: Importer, body: Retry | None = None) -> Response:
    """Begin another attempt of a job that failed, was cancelled or waits, with the same id. `backend`, `take`
    and `on_conflict` answer the question of one that waits.

    Of a list, all jobs that failed or were cancelled are retried; with an answer, those that wait as well.
    """
    with at.database.writing() as connection:
        row = jobs.get(connection, job)
        answered_too = (*AGAIN, jobs.WAITING)
        if row.state not in answered_too:
            raise ServiceError("not-ended", job=job, state=row.state)
        changes = body.model_dump(exclude_none=True) if body else {}
        chosen = answered_too if changes else AGAIN
        selected = jobs.inside(connection, row, chosen) if row.kind == "imports" else [row]
        for one in selected:
            jobs.again(connection, one, _next_request(one, changes, at, who))
        now = jobs.get(connection, job)
        audit.record(
            connection, act(request, who, "retry"), f"job {job}",
            {"jobs": len(selected)} if row.kind == "imports" else {"attempt": now.attempt},
        )  # fmt: skip
        headers = {"Location": f"/v1/jobs/{job}"}
        answered = json_answer(job_json(now, _counts(connection, now)), 202, headers)
    at.runner.hurry()
    return answered


def _next_request(job: JobRow, changes: Mapping[str, object], at: Desk, who: Caller) -> Mapping[str, object]:
    """Return the request of another attempt; raises what an import raises for an invalid one."""
    if job.kind == "import":
        admitted(Import.model_validate({**job.request, **changes}), who, at.settings)
    elif changes:
        problem = "this job has neither"
        errors = [{"pointer": f"/{key}", "detail": problem} for key in changes]
        raise ServiceError("bad-request", problem=f"{', '.join(changes)}: {problem}", errors=errors)
    elif job.kind == "validation":
        need_approval(at.gallery.get(str(job.config))[1].stored)
    return {**job.request, **changes}
