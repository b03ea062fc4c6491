"""``/v1/overview``: how many documents each value of each facet leaves.

``/gallery``: the entries of the versions that are served, for LocalAI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from importer.errors import ServiceError
from importer.service.desk import AtDesk, json_answer
from importer.service.domain.index import IndexPage
from importer.service.http.headers import IfNoneMatch, same_etag
from importer.service.http.query import OverviewQuery, parameters, queried, room_of
from importer.service.localai import GalleryReader
from importer.service.reads import Reads
from importer.service.security import Reader
from importer.storage import releases

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Reads)


class FacetValue(BaseModel):
    """A value and how many documents it leaves under the other filters; null: those without one."""

    value: str | None
    count: int


class FitCounts(BaseModel):
    """How many documents a device holds; ``budget`` is what engines may fill of it, in bytes."""

    device: str
    budget: int
    backends: list[str] = Field(description="ids of the jobs that run in this process")
    yes: int = Field(description="whole")
    part: int = Field(description="with a shorter context, or keys and values in 8 bits")
    no: int
    unknown: int = Field(description="without an estimate")
    not_applicable: int = Field(description="whose engine does not run there")


class Overview(BaseModel):
    """Counts of documents by facet."""

    total: int = Field(description="documents of the filters")
    documents: int = Field(description="all documents")
    attention: int = Field(description="documents of the filters that need attention")
    facets: dict[str, list[FacetValue]] = Field(
        description="by facet its values, the most frequent first; each facet ignores its own filter"
    )
    fits: FitCounts | None = Field(description="null without a device")


@router.get(
    "/overview",
    response_model=Overview,
    summary="Counts of documents by facet",
    openapi_extra=parameters(OverviewQuery),
)
def overview(
    at: AtDesk, _who: Reader, query: Annotated[OverviewQuery, Depends(queried(OverviewQuery))]
) -> Response:
    """Return counts under the filters of `GET /v1/configs`. `device` filters by what fits it; `fits` only
    counts.
    """
    named, filters = query.device or query.fits, query.filters()
    room = filters.room or (None if named is None else room_of(named, "fits"))
    found = at.gallery.facets(filters, room)
    told = {} if room is None else {"budget": room.budget, "backends": room.backends}
    return json_answer(
        {
            "total": found.total,
            "documents": found.documents,
            "attention": found.attention,
            "facets": {name: _values(counts) for name, counts in found.values.items()},
            "fits": None if found.fits is None else {"device": named, **told, **found.fits},
        }
    )


def _values(counts: Mapping[str | None, int]) -> list[dict[str, object]]:
    return [{"value": value, "count": count} for value, count in counts.items()]


router_gallery = APIRouter(tags=["gallery"], route_class=Reads)
YAML = "application/yaml"
ENDING = ".yaml"
NO_WEIGHT = re.compile(r"q\s*=\s*0(\.0*)?")
SAME: dict[int | str, dict[str, object]] = {304: {"description": "It has not changed"}}
# Without a type: clients that are generated do not read YAML, and have the text as it is.
INDEX = {"title": "Index", "description": "a YAML list of entries"}
ENTRY = {"title": "Entry", "description": "one entry in YAML"}
Coding = Annotated[str | None, Header(alias="Accept-Encoding", max_length=500)]


@router_gallery.get(
    "/gallery/index.yaml",
    response_class=Response,
    responses={200: {"content": {YAML: {"schema": INDEX}}}, **SAME},
    dependencies=[GalleryReader],
    summary="The gallery's index",
)
def index(request: Request, at: AtDesk, seen: IfNoneMatch = None, coding: Coding = None) -> Response:
    """Return every release that is served with its configuration, as one list that LocalAI reads."""
    return _answer(at.index.get(at.base(request)), seen, coding)


@router_gallery.get(
    "/gallery/{file}",
    response_class=Response,
    responses={200: {"content": {YAML: {"schema": ENTRY}}}, **SAME},
    dependencies=[GalleryReader],
    summary="One published entry",
)
def entry(file: str, at: AtDesk, seen: IfNoneMatch = None, coding: Coding = None) -> Response:
    """Return `NAME.yaml`: the configuration as a file, for LocalAI's `POST /models/apply`."""
    entry_file = None
    if file.endswith(ENDING):
        with at.database.reading() as connection:
            entry_file = releases.file(connection, file.removesuffix(ENDING))
    if entry_file is None:
        raise ServiceError("no-such-page", path=f"/gallery/{file}"[:200])
    return _answer(IndexPage.of(entry_file), seen, coding)


def _answer(page: IndexPage, seen: str | None, coding: str | None) -> Response:
    """Return the page in an accepted coding, or 304 where the client has it."""
    packed = _takes_gzip(coding)
    tags = {False: f'"{page.tag}"', True: f'"{page.tag}-gzip"'}
    headers = {"ETag": tags[packed], "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if any(same_etag(seen, tag) for tag in tags.values()):
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(page.packed if packed else page.body, headers=headers, media_type=YAML)


def _takes_gzip(header: str | None) -> bool:
    """Return whether ``Accept-Encoding`` names gzip with a weight above nothing."""
    for one in (header or "").lower().split(","):
        name, _, weight = one.partition(";")
        if name.strip() == "gzip":
            return not NO_WEIGHT.fullmatch(weight.strip())
    return False
