"""``/memory`` and ``/validations`` of a document: figures, as receipts have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from importer.app.measure import device_answers
from importer.document.store import StoredDocument
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import mapping
from importer.memory.choose import DeviceAnswer
from importer.memory.devices import BY_MAKER
from importer.reports import pictures
from importer.reports.report_model import sheet
from importer.service.desk import AtDesk
from importer.service.reads import Reads
from importer.service.security import Reader

router = APIRouter(prefix="/v1/configs", tags=["documents"], route_class=Reads)


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
    """The memory of a document; its receipt has the estimate under `fit`."""

    verdict: str | None = Field(description="such as fits; null without an estimate", examples=["fits"])
    message: str | None
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


class MatrixCell(BaseModel):
    """The outcome of one probe in one run; the report as JSON has the whole of it."""

    run: int
    outcome: str = Field(description="pass, fail, inconclusive, not-shown or not-applicable")


class MatrixRow(BaseModel):
    """One probe over all runs."""

    probe: str
    cells: list[MatrixCell]


class MatrixColumn(BaseModel):
    """Probes of one column of the matrix, as the report has it."""

    probes: list[str]


class ValidationsView(BaseModel):
    """Runs of the receipt, and the matrix of their probes."""

    runs: list[RunRow]
    matrix: list[MatrixRow] = Field(description="failures first")
    columns: list[MatrixColumn] = Field(description="the rows of the matrix in columns that fit one screen")
    figures: list[FiguresView] = Field(description="those of the HTML report: the runs side by side")


@router.get("/{name}/memory", response_model=MemoryView, summary="Memory, predicted and measured")
def memory(
    name: str, at: AtDesk, _who: Reader,
    every: Annotated[bool, Query(alias="devices", description="judge each device of the table, too")] = False,
) -> dict[str, object]:  # fmt: skip
    """Return the answer, the figures of the report and, with `devices`, what each device holds."""
    stored = at.gallery.get(name)[1].stored
    fit = mapping(stored.need_receipt().fit)
    return {
        "verdict": fit.get("verdict"), "message": fit.get("message"),
        "figures": _shown(pictures.of_memory(sheet(stored))),
        "holds": _holds(stored, at.settings.places) if every else None,
    }  # fmt: skip


def _holds(stored: StoredDocument, places: AllowedFolders) -> list[dict[str, object]]:
    found = device_answers(stored, places, BY_MAKER.values())
    return [one.to_json() for one in sorted(found, key=DeviceAnswer.order)]


@router.get(
    "/{name}/validations", response_model=ValidationsView, summary="All validations: runs, probes by run"
)
def validations(name: str, at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return the runs that the receipt has, and each probe in each run."""
    model = sheet(at.gallery.get(name)[1].stored)
    found = pictures.rows(model.runs)
    return {
        "runs": [
            {"run": at_, "engine": one.engine, "version": one.version, "state": one.state, "at": one.started}
            for at_, one in enumerate(model.runs, 1)
        ],
        "matrix": [
            {"probe": row.probe, "cells": [{"run": n, "outcome": one.outcome} for n, one in row.cells]}
            for row in found
        ],
        "columns": [{"probes": [row.probe for row in column]} for column in pictures.columns(found)],
        "figures": _shown(pictures.of_runs(model.runs)),
    }  # fmt: skip


def _shown(found: Iterable[pictures.Figures]) -> list[dict[str, object]]:
    return [asdict(one) for one in found]
