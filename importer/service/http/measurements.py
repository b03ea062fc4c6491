"""``/memory`` and ``/validations`` of a document: figures, as receipts and jobs have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from importer.app.measure import device_answers
from importer.document.receipt import Receipt
from importer.document.store import StoredDocument
from importer.errors import ServiceError
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import mapping
from importer.memory.choose import DeviceAnswer
from importer.memory.devices import BY_MAKER
from importer.reports import pictures
from importer.reports.pictures import PastValidation
from importer.reports.report_model import Run, sheet
from importer.service.desk import AtDesk
from importer.service.problems import problems
from importer.service.reads import Reads
from importer.service.security import Reader
from importer.storage import jobs
from importer.storage.jobs import JobFilters

router = APIRouter(prefix="/v1/configs", tags=["documents"], route_class=Reads)


class MemoryTerm(BaseModel):
    """One part of the estimate for one device, in bytes."""

    part: str = Field(examples=["weights"])
    low: int
    likely: int
    high: int
    why: str


class MemoryTotal(BaseModel):
    """The sum of all parts, in bytes."""

    low: int
    likely: int
    high: int


class Measured(BaseModel):
    """A figure of the engine beside its prediction; ``error`` is the relative one of the prediction."""

    figure: str = Field(description="weights, resident (bytes) or kv_cache_tokens (tokens)")
    predicted: int
    reported: int
    error: float
    engine: str
    version: str | None
    at: str


class MemoryDevice(BaseModel):
    """The device that the estimate is for."""

    name: str
    count: int
    kind: str
    memory: int | None = Field(description="bytes of one device")
    share: float = Field(description="the part that the engine may fill")


class FigurePiece(BaseModel):
    """A part of a bar in hundredths of its width."""

    kind: str = Field(description="what the piece shows: colour or position", examples=["c1"])
    x: float
    width: float


class FigureBar(BaseModel):
    """A drawing between two texts."""

    label: str
    text: str = Field(description="the figure", examples=["72.4 GiB"])
    pieces: list[FigurePiece]


class FigureLegend(BaseModel):
    """The name of what has this colour."""

    kind: str
    name: str


class FiguresView(BaseModel):
    """A table as the report has it; that of the memory has bars before it."""

    name: str = Field(examples=["memory"])
    title: str
    heads: list[str]
    rows: list[list[str]]
    note: str = Field(description="shown above it; empty without one")
    label: str = Field(description="the bars in words; empty without any")
    bars: list[FigureBar]
    legend: list[FigureLegend]


class MemoryView(BaseModel):
    """The memory of a document: predicted, measured, on its device, and by other plans."""

    verdict: str | None = Field(description="such as fits; null without an estimate", examples=["fits"])
    message: str | None
    device: MemoryDevice | None
    devices: int | None = Field(description="devices that the model is laid out on")
    budget: int | None = Field(description="bytes that the engine may fill of one device")
    spare: int | None
    binding: str | None = Field(description="the part that limits the context")
    load: dict[str, object] | None = Field(description="context, sequences and settings of the estimate")
    terms: list[MemoryTerm]
    total: MemoryTotal | None
    measured: list[Measured]
    plans: list[dict[str, object]] = Field(description="the chosen plan first, then the next-best ones")
    figures: list[FiguresView] = Field(description="those of the HTML report")
    holds: list[DeviceHolds] | None = Field(description="what each device holds, with `devices`")


class DeviceHolds(BaseModel):
    """The answer for one device."""

    device: str
    kind: str
    memory: int | None = Field(description="bytes of one")
    answer: str = Field(
        description="whole, part (fewer tokens, or keys and values in 8 bits), may-not-start, no, unknown, "
        "or not-applicable: the document's engine does not run there"
    )
    tokens: int | None = Field(description="tokens of the longest sequence")
    kv_cache_dtype: str
    whole_on: str | None = Field(description="the fewest of this device that hold all of the context")
    reason: str


class RunRow(BaseModel):
    """A validation that the receipt has whole, or a part of one."""

    run: int = Field(description="position, from 1; the newest first")
    engine: str
    version: str | None
    state: Literal["passed", "failed", "stale", "partial"]
    at: str
    digest: str
    seconds: dict[str, float] = Field(description="start, probes, stop")
    counts: dict[str, int] = Field(description="probes by outcome")
    first_token_seconds: float | None
    tokens_per_second: float | None


class MatrixCell(BaseModel):
    """The outcome of one probe in one run."""

    run: int
    outcome: str = Field(description="pass, fail, inconclusive, not-shown or not-applicable")
    attribution: str | None
    cause: str | None = Field(description="the kind of the failure")
    reason: str
    stage: str | None = Field(description="the first broken stage of its exchange")
    trials: int
    agreed: int
    seconds: float
    href: str = Field(description="the outcome with its exchanges")


class MatrixRow(BaseModel):
    """One probe over all runs."""

    probe: str
    lesson: str
    worst: str = Field(description="the worst outcome of its cells")
    cells: list[MatrixCell]


class MatrixColumn(BaseModel):
    """Probes of one column of the matrix, as the report has it."""

    probes: list[str]


class PastRun(BaseModel):
    """A validation that ended, as its job has it."""

    job: str
    at: str | None
    ended_at: str | None
    engine: str | None
    version: str | None
    passed: bool | None = Field(description="null where the job itself failed")
    counts: dict[str, int]
    seconds: dict[str, float]
    first_token_seconds: float | None
    tokens_per_second: float | None
    digest: str | None
    error: str | None = Field(description="the kind of the job's problem")


class ValidationsView(BaseModel):
    """Runs of the receipt, the matrix of their probes, and the history of jobs, the newest first."""

    runs: list[RunRow]
    matrix: list[MatrixRow] = Field(description="failures first")
    history: list[PastRun]
    total: int = Field(description="validation jobs of this document")
    columns: list[MatrixColumn] = Field(description="the rows of the matrix in columns that fit one screen")
    figures: list[FiguresView] = Field(description="those of the HTML report: the runs side by side")
    past: list[FiguresView] = Field(description="the history; empty without any")


@router.get(
    "/{name}/memory", response_model=MemoryView,
    responses=problems("no-such-document", "no-receipt", "network", "not-found"),
    summary="Memory, predicted and measured",
)  # fmt: skip
def memory(
    name: str, at: AtDesk, _who: Reader,
    every: Annotated[bool, Query(alias="devices", description="judge each device of the table, too")] = False,
) -> dict[str, object]:  # fmt: skip
    """Return the parts of the estimate, the engine's own figures, the device, and other plans."""
    stored = at.gallery.get(name)[1].stored
    receipt = stored.need_receipt()
    fit = mapping(receipt.fit)
    estimate, device = mapping(fit.get("estimate")), mapping(fit.get("device"))
    load = mapping(estimate.get("load"))
    return {
        "verdict": fit.get("verdict"), "message": fit.get("message"),
        "device": {key: device.get(key) for key in MemoryDevice.model_fields} if device else None,
        "devices": fit.get("cards"), "budget": fit.get("budget"), "spare": fit.get("spare"),
        "binding": fit.get("binding"), "load": load or None, "terms": estimate.get("terms") or [],
        "total": estimate.get("total"), "measured": _measured(receipt), "plans": fit.get("plans") or [],
        "figures": _shown(pictures.of_memory(sheet(stored))),
        "holds": _holds(stored, at.settings.places) if every else None,
    }  # fmt: skip


def _holds(stored: StoredDocument, places: AllowedFolders) -> list[dict[str, object]]:
    found = device_answers(stored, places, BY_MAKER.values())
    return [one.to_json() for one in sorted(found, key=DeviceAnswer.order)]


def _measured(receipt: Receipt) -> list[dict[str, object]]:
    partial = [] if receipt.partial is None else [receipt.partial]
    found = []
    for run in (*receipt.runs, *partial):
        engine = mapping(run.get("engine"))
        by = {
            "engine": str(engine.get("name")),
            "version": engine.get("version"),
            "at": run.get("started") or "",
        }
        for figure, values in mapping(run.get("fit")).items():
            if isinstance(values, Mapping) and {"predicted", "reported", "error"} <= values.keys():
                found.append({"figure": figure, **values, **by})
    return found


@router.get(
    "/{name}/validations", response_model=ValidationsView, responses=problems("no-such-document"),
    summary="All validations: runs, probes by run, history",
)  # fmt: skip
def validations(
    name: str, at: AtDesk, _who: Reader, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, object]:
    """Return the runs that the receipt has, each probe in each run, and the jobs of all validations."""
    stored = at.gallery.get(name)[1].stored
    model = sheet(stored)
    with at.database.reading() as connection:
        filters = JobFilters(jobs.ENDED, "validation", name, None, None)
        past, total = jobs.page(connection, limit, filters), jobs.total(connection, filters)
    found, history = pictures.rows(model.runs), [_past(job) for job in past if not job.request.get("measure")]
    return {
        "runs": [_run(number, run) for number, run in enumerate(model.runs, 1)],
        "matrix": [_row(name, row) for row in found], "history": history, "total": total,
        "columns": [{"probes": [row.probe for row in column]} for column in pictures.columns(found)],
        "figures": _shown(pictures.of_runs(model.runs)),
        "past": _shown(pictures.history([_validation(one) for one in reversed(history)])),
    }  # fmt: skip


@router.get(
    "/{name}/validations/{run}/{probe}", response_model=dict[str, object],
    responses=problems("no-such-document", "no-such-page"), summary="One outcome with its exchanges",
)  # fmt: skip
def outcome(
    name: str,
    run: Annotated[int, Path(ge=1, le=1000, description="position among the runs, from 1")],
    probe: Annotated[str, Path(max_length=200, description="the name of the probe")],
    at: AtDesk,
    _who: Reader,
) -> dict[str, object]:
    """Return the outcome as the receipt has it: cause, remedy, facts, every raw exchange, and the log."""
    receipt = at.gallery.get(name)[1].stored.receipt
    runs = [] if receipt is None else [*receipt.runs, *([receipt.partial] if receipt.partial else [])]
    chosen = runs[run - 1] if run <= len(runs) else {}
    for one in chosen.get("outcomes", ()):
        if one.get("probe") == probe:
            return {"run": run, "engine": chosen.get("engine"), "at": chosen.get("started"), **one}
    raise ServiceError("no-such-page", path=f"/v1/configs/{name}/validations/{run}/{probe}"[:200])


def _run(number: int, run: Run) -> dict[str, object]:
    return {
        "run": number, "engine": run.engine, "version": run.version, "state": run.state, "at": run.started,
        "digest": run.digest, "seconds": run.seconds, "counts": run.counts, **_speed(run.speed),
    }  # fmt: skip


def _speed(speed: Mapping[str, object]) -> dict[str, object]:
    return {key: speed.get(key) for key in ("first_token_seconds", "tokens_per_second")}


def _row(name: str, row: pictures.MatrixRow) -> dict[str, object]:
    cells = [
        {
            "run": number, "outcome": one.outcome, "attribution": one.attribution,
            "cause": None if one.cause is None else one.cause.get("kind"), "reason": one.reason,
            "stage": None if one.broken is None else one.broken[0], "trials": one.trials,
            "agreed": one.agreed, "seconds": one.seconds,
            "href": f"/v1/configs/{name}/validations/{number}/{one.probe}",
        }
        for number, one in row.cells
    ]  # fmt: skip
    return {"probe": row.probe, "lesson": row.lesson, "worst": row.worst, "cells": cells}


def _shown(found: Iterable[pictures.Figures]) -> list[dict[str, object]]:
    return [asdict(one) for one in found]


def _validation(past: Mapping[str, Any]) -> PastValidation:
    engine = " ".join(str(past[key]) for key in ("engine", "version") if past[key])
    return PastValidation(
        engine, past["at"] or past["ended_at"] or "", dict(past["counts"]), sum(past["seconds"].values()),
        past["tokens_per_second"] or 0.0, past["first_token_seconds"] or 0.0, past["error"] or "",
    )  # fmt: skip


def _past(job: jobs.Job) -> dict[str, object]:
    result = mapping(job.result)
    engine = mapping(result.get("engine"))
    return {
        "job": job.id, "at": job.started_at, "ended_at": job.ended_at,
        "engine": engine.get("name") or job.engine, "version": engine.get("version"),
        "passed": result.get("passed"), "counts": result.get("probes") or {},
        "seconds": result.get("seconds") or {}, **_speed(mapping(result.get("speed"))),
        "digest": result.get("digest"), "error": mapping(job.error).get("kind"),
    }  # fmt: skip
