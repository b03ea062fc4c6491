"""``/problems``: every kind of failure with its sentence, status and next step."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from importer.errors import ServiceError
from importer.service.problems import explained, problems

router = APIRouter(tags=["about"])


@router.get("/problems/{kind}", responses=problems("no-such-page"), summary="What a kind of problem means")
def problem(kind: str) -> dict[str, Any]:
    """Return the sentence, the status and the next step of a kind."""
    explanation = explained(kind)
    if explanation is None:
        raise ServiceError("no-such-page", path=f"/problems/{kind}"[:200])
    return explanation
