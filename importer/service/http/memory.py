"""``/memory`` of a document: the estimate, and what each device holds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from importer.app.measure import device_answers
from importer.hub.snapshot import mapping
from importer.memory.device_answers import DeviceAnswer
from importer.memory.devices import BY_MAKER
from importer.reports.pictures import Figures, of_memory
from importer.reports.report_model import sheet
from importer.service.desk import AtDesk
from importer.service.reads import Reads
from importer.service.security import Reader

router = APIRouter(prefix="/v1/configs", tags=["documents"], route_class=Reads)


class MemoryView(BaseModel):
    """The memory of a document; its receipt has the estimate under `fit`."""

    verdict: str | None = Field(description="such as fits; null without an estimate", examples=["fits"])
    message: str | None
    figures: tuple[Figures, ...] = Field(description="those of the HTML report")
    holds: list[dict[str, object]] | None = Field(
        description="what each device holds, with `devices`, as `importer fit NAME --devices --json` has it"
    )


@router.get("/{name}/memory", response_model=MemoryView, summary="Memory, predicted and measured")
def memory(
    name: str, at: AtDesk, _who: Reader,
    every: Annotated[bool, Query(alias="devices", description="judge each device of the table, too")] = False,
) -> dict[str, object]:  # fmt: skip
    """Return the answer, the figures of the report and, with `devices`, what each device holds."""
    stored = at.gallery.get(name)[1].stored
    fit = mapping(stored.need_receipt().fit)
    holds = device_answers(stored, at.settings.places, BY_MAKER.values()) if every else ()
    return {
        "verdict": fit.get("verdict"), "message": fit.get("message"), "figures": of_memory(sheet(stored)),
        "holds": [one.to_json() for one in sorted(holds, key=DeviceAnswer.order)] if every else None,
    }  # fmt: skip
