"""``GET /v1/hub/models``: a search of the Hub, for a field that takes a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from importer.hub import organisation
from importer.service.desk import AtDesk
from importer.service.domain.import_request import Text
from importer.service.http.editor import turn
from importer.service.problems import problems
from importer.service.security.auth import Importer

router = APIRouter(prefix="/v1/hub", tags=["imports"])
MOST = 20  # models of one answer


class HubModel(BaseModel):
    """A public model of the Hub."""

    repo: str = Field(description="owner/name: a `reference` of an import")
    downloads: int | None = Field(description="in the last 30 days")
    likes: int | None
    gated: bool = Field(description="whether the owner grants access")
    task: str | None = Field(description="the pipeline tag")


class HubModels(BaseModel):
    """The models that the Hub finds."""

    items: list[HubModel]


@router.get(
    "/models",
    response_model=HubModels,
    responses=problems("network", "server", "rate-limited", "busy"),
    summary="Search the Hub",
)
def search(
    at: AtDesk,
    _who: Importer,
    q: Annotated[Text, Query(description="a part of a name")],
    limit: Annotated[int, Query(ge=1, le=MOST)] = 10,
) -> dict[str, object]:
    """Return public models, the most downloaded first. The server asks its Hub once."""
    with turn(at):
        return {"items": [asdict(hit) for hit in organisation.search(q, limit)]}
