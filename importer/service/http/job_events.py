"""The data of a job's events by their type, for OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from importer.service.http.response_models import Problem


class JobEvent(BaseModel):
    """What every event has."""

    job: str
    at: str
    attempt: int


class QueuedEvent(JobEvent):
    """A job waits: it is new, was tried again, or begins anew."""

    message: str | None = Field(default=None, description="what it waits for, or why it begins anew")


class StepEvent(JobEvent):
    """A step begins."""

    step: str
    number: int = Field(description="the number of the step, from 1")
    of: int = Field(description="how many steps the job has")


class ProgressEvent(JobEvent):
    """What a step, or a list, has done so far."""

    message: str
    step: str | None = Field(default=None, description="the step; null for a list")
    done: float | None = Field(default=None, description="how much is done, in the unit")
    total: float | None = Field(default=None, description="how much there is in all")
    unit: Literal["bytes", "items"] | None = None
    passed: int | None = Field(default=None, description="the items that succeeded so far")
    failed: int | None = Field(default=None, description="the items that did not")


class EndEvent(JobEvent):
    """A job has ended: its result, or its problem."""

    result: dict[str, Any] | None = None
    error: Problem | None = None


TYPES: Mapping[str, type[JobEvent]] = {
    "queued": QueuedEvent, "step": StepEvent, "progress": ProgressEvent,
    "succeeded": EndEvent, "failed": EndEvent, "cancelled": EndEvent,
}  # fmt: skip
PLACE = "#/components/schemas/"
# For the media type of the stream: the schema of ``data`` by the type of the event.
BY_TYPE = {kind: {"$ref": f"{PLACE}{model.__name__}"} for kind, model in TYPES.items()}


def schemas() -> dict[str, Any]:
    """Return the schemas of all events by name."""
    models = [(model, "serialization") for model in dict.fromkeys(TYPES.values())]
    found: dict[str, Any] = models_json_schema(models, ref_template=f"{PLACE}{{model}}")[1]["$defs"]  # type: ignore[arg-type]
    return {name: schema for name, schema in found.items() if name.endswith("Event")}
