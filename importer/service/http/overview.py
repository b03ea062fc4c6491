"""``/v1/overview``: how many documents each value of each facet leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from importer.service.desk import AtDesk, json_answer
from importer.service.domain.import_request import Text
from importer.service.http.query import DocumentFilters, budget_of
from importer.service.problems import problems
from importer.service.security.auth import Reader

router = APIRouter(prefix="/v1", tags=["documents"])
OVERVIEW: JsonDict = {
    "total": 12, "documents": 208, "attention": 3,
    "facets": {
        "state": [{"value": "draft", "count": 9}, {"value": "published", "count": 3}],
        "tool_parser": [{"value": "hermes", "count": 10}],
    },
    "fits": {"device": "h100-80g", "budget": 78138340015, "yes": 10, "no": 1, "unknown": 1},
}  # fmt: skip


class FacetValue(BaseModel):
    """A value and how many documents it leaves under the other filters; null: those without one."""

    value: str | None
    count: int


class FitCounts(BaseModel):
    """How many documents fit a device; ``budget`` is what engines may fill of it, in bytes."""

    device: str
    budget: int
    yes: int
    no: int
    unknown: int = Field(description="without an estimate")


class Overview(BaseModel):
    """Counts of documents by facet."""

    model_config = ConfigDict(json_schema_extra={"examples": [OVERVIEW]})

    total: int = Field(description="documents of the filters")
    documents: int = Field(description="all documents")
    attention: int = Field(description="documents of the filters that need attention")
    facets: dict[str, list[FacetValue]] = Field(
        description="by facet its values, the most frequent first; each facet ignores its own filter"
    )
    fits: FitCounts | None = Field(description="null without a device")


@router.get(
    "/overview", response_model=Overview, responses=problems("unknown-device"),
    summary="Counts of documents by facet",
)  # fmt: skip
def overview(
    at: AtDesk,
    who: Reader,
    filters: DocumentFilters,
    fits: Annotated[Text | None, Query(description="count what fits this device, without a filter")] = None,
    device: Annotated[Text | None, Query(description="only what fits it")] = None,
) -> Response:
    """Return counts under the filters of `GET /v1/configs`. `device` filters by what fits it; `fits` only
    counts.
    """
    del who
    named = device or fits
    budget = None if named is None else budget_of(named)
    found = at.gallery.facets(filters, budget)
    return json_answer(
        {
            "total": found.total,
            "documents": found.documents,
            "attention": found.attention,
            "facets": {name: _values(counts) for name, counts in found.values.items()},
            "fits": None if found.fits is None else {"device": named, "budget": budget, **found.fits},
        }
    )


def _values(counts: Mapping[str | None, int]) -> list[dict[str, Any]]:
    return [{"value": value, "count": count} for value, count in counts.items()]
