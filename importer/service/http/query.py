"""What queries and bodies share: unknown parameters are refused; filters, times, the order of lists."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, get_args

from fastapi import Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, ValidationError

from importer.app.states import State
from importer.backends import NAMES
from importer.document.store import Review
from importer.errors import ServiceError, UsageError
from importer.service.domain.failures import about
from importer.service.domain.import_request import Text
from importer.storage.documents import COLUMNS, Filters, Listed, Room, Value, order, whole

JSON = "application/json"
OTHERS = ("localai", "page")  # tags of routes whose clients may send more
MAX_CURSOR = 300
OTHER_LIST = "this cursor is of another list"
Sort = Literal[
    "name", "-name", "updated_at", "-updated_at", "created_at", "-created_at", "checked_at", "-checked_at",
    "state", "-state", "attention", "-attention", "weights", "-weights", "memory", "-memory", "context",
    "-context", "parameters", "-parameters",
]  # fmt: skip
NUMBER = re.compile(r"-?[0-9]{1,19}")
Size = Literal["under-1b", "1b-4b", "4b-10b", "10b-35b", "35b-100b", "over-100b", "none"]
AttentionKind = Literal[
    "will-not-start", "does-not-fit", "may-not-start", "no-receipt", "failed", "outdated", "edited",
    "no-entry", "differs",
    "grant", "needs-code", "foreign-code", "prompts", "parser", "no-tools",
    "request-coverage", "conflict", "other-device", "other",
]  # fmt: skip
AttentionFilter = Literal["any", "none", AttentionKind]
JobSort = Literal["created_at", "-created_at"]
Validation = Literal["never", "passed", "failed", "stale"]
SINCE = "only what has changed at this time or later, such as 2026-11-22T08:00:00Z"
Since = Annotated[datetime | None, Query(description=SINCE)]
Limit = Annotated[int, Query(ge=1, le=200)]
_known: dict[tuple[str, str], frozenset[str]] = {}


async def known_request(request: Request) -> None:
    """Raise ServiceError for what the route does not take: "wrong-type" for a body of another type than the
    JSON that it reads, "unknown-parameter" for a parameter of a query.
    """
    route, sent = request.scope.get("route"), request.headers.get("content-type")
    if not isinstance(route, APIRoute) or set(route.tags) & {*OTHERS}:
        return
    if sent is not None and route.body_field is not None:
        kind = sent.partition(";")[0].strip().lower()
        if kind != JSON:
            raise ServiceError("wrong-type", type=kind[:100], wanted=JSON)
    if not request.query_params:
        return
    known = _names(route, request.method)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], sorted(known), cutoff=0.5) or sorted(known)
        errors = [{"pointer": f"/query/{name[:200]}", "detail": "unknown parameter"} for name in unknown]
        raise ServiceError("unknown-parameter", name=unknown[0][:200], near=tuple(near), errors=errors)


def _names(route: APIRoute, method: str) -> frozenset[str]:
    key = (route.path_format, method)
    if key not in _known:
        whole = {one["name"] for one in (route.openapi_extra or {}).get("parameters", ())}
        _known[key] = frozenset((*_parameters(route.dependant), *whole))
    return _known[key]


def _parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the names of a route's parameters and of those of its dependencies."""
    yield from (one.alias for one in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def utc(at: datetime | None) -> str | None:
    """Return a time as rows have it; one without a zone is of UTC."""
    if at is None:
        return None
    try:
        zoned = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise refusal("updated_since", "is not a time that UTC has") from None
    return zoned.isoformat(timespec="seconds")


def refusal(name: str, problem: str) -> ServiceError:
    """Return the error of a parameter whose value is not valid."""
    return ServiceError(
        "bad-request", problem=f"{name}: {problem}", errors=[{"pointer": f"/query/{name}", "detail": problem}]
    )


def room_of(device: str, parameter: str = "device") -> Room:
    """Return the room of a device such as ``2xh100-80g``, with the largest share that an import would take.

    ``parameter``  the name in the query, for a refusal.
    Raises UsageError: "unknown-device", "bad-value"; ServiceError("bad-request") where its memory is unknown.
    """
    from importer.memory.case import FULLER_SHARE, USUAL
    from importer.memory.device_answers import not_applicable
    from importer.memory.devices import named

    try:
        chosen = named(device)
    except UsageError as error:
        place = {"pointer": f"/query/{parameter}", "detail": about(error)}
        raise error.but(errors=[place]) from None
    if chosen.memory is None:
        raise refusal(parameter, "its memory is not known; name a device with a size")
    raised = chosen.is_card and USUAL <= chosen.share < FULLER_SHARE
    share = FULLER_SHARE if raised else chosen.share
    backends = tuple(name for name in NAMES if not_applicable(name, chosen) is None)
    return Room(int(chosen.memory * share) * chosen.count, backends)


Several = Annotated[list[Text] | None, Field(max_length=50)]
FILTERS = frozenset(one.name for one in fields(Filters))


class DocumentQuery(BaseModel):
    """The filters of a list of documents in a query; of several values of one filter any will do."""

    state: list[State] | None = Field(default=None, max_length=10)
    review: list[Review] | None = Field(default=None, max_length=10, description="states of the review")
    validation: list[Validation] | None = Field(
        default=None, max_length=10, description="states of the validation"
    )
    family: Several = None
    backend: Several = None
    kind: Several = Field(default=None, description="such as chat or embedding")
    modality: Several = Field(default=None, description="text, image, video, audio")
    tool_parser: Several = None
    reasoning_parser: Several = None
    license: Several = None
    quantization: Several = None
    size: list[Size] | None = Field(
        default=None, max_length=10, description="classes by the number of parameters"
    )
    attention: list[AttentionFilter] | None = Field(
        default=None, max_length=20, description="why it needs attention; `any` for each kind"
    )
    tag: Several = None
    device: Text | None = Field(
        default=None, description="only what it holds, such as 2xh100-80g, whole or with a shorter context"
    )
    model: Annotated[str, Field(max_length=4000)] | None = Field(
        default=None, description="the variants of one model"
    )
    q: Text | None = Field(
        default=None, description="words that are all in its name, model, family, description or tags"
    )

    updated_since: datetime | None = Field(default=None, description=SINCE)
    released: bool | None = Field(default=None, description="only what the gallery serves, or the rest")
    deleted: bool = Field(default=False, description="those that were deleted, and can be brought back")

    def filters(self) -> Filters:
        """Return the filters; raises what ``room_of`` and ``utc`` raise."""
        chosen: dict[str, Any] = {
            name: tuple(value) if name in COLUMNS else value
            for name in self.model_fields_set & FILTERS
            if (value := getattr(self, name)) is not None
        }
        room = None if self.device is None else room_of(self.device)
        return Filters(**chosen | {"updated_since": utc(self.updated_since)}, room=room)


class ListQuery(DocumentQuery):
    """A page of a list of documents."""

    limit: int = Field(default=50, ge=1, le=500)
    cursor: str = Field(default="", max_length=MAX_CURSOR, description="`next` of the page before")
    sort: Sort = Field(default="name", description="the order; with `-` the last first")


class OverviewQuery(DocumentQuery):
    """The filters of the counts, and the device that they are counted for."""

    fits: Text | None = Field(default=None, description="count what fits this device, without a filter")


Q = TypeVar("Q", bound=BaseModel)


def queried(model: type[Q]) -> Callable[[Request], Awaitable[Q]]:
    """Return a dependency that reads a whole query at once: FastAPI looks for each parameter alone, at 0.04
    ms each. ``parameters`` describes it.
    """

    async def read(request: Request) -> Q:
        query = request.query_params
        sent = {
            name: query.getlist(name) if name in COLUMNS else query[name]
            for name in query
            if name in model.model_fields
        }
        try:
            return model.model_validate(sent)
        except ValidationError as error:
            mistakes = [one | {"loc": ("query", *one["loc"])} for one in error.errors(include_url=False)]
            raise RequestValidationError(mistakes) from None

    return read


def parameters(model: type[BaseModel]) -> dict[str, Any]:
    """Return the parameters of a query that ``queried`` reads, for OpenAPI."""
    found = []
    for name, schema in model.model_json_schema()["properties"].items():
        about = {key: schema[key] for key in ("description",) if key in schema}
        found.append({"name": name, "in": "query", "required": False, "schema": schema, **about})
    return {"parameters": found}


def cursor_of(sort: Sort, last: Listed) -> str:
    """Return the cursor behind a document: the sort, its value, the document's name."""
    return f"{sort}~{'' if order(sort) is None else last.place}~{last.name}"


def position(sort: Sort, cursor: str) -> Sequence[Value]:
    """Return the values of a cursor; raises ServiceError("bad-request") for one of another list."""
    if not cursor:
        return ()
    of, *place = cursor.split("~", 2)
    if of != sort or len(place) != 2 or (whole(sort) and not NUMBER.fullmatch(place[0])):
        raise refusal("cursor", OTHER_LIST)
    value, name = place
    return (name,) if order(sort) is None else (int(value) if whole(sort) else value, name)


UNKNOWN = "extra_forbidden"  # pydantic's type of error for a field that a model does not have


def near_fields(route: object, mistake: Mapping[str, Any]) -> Sequence[str]:
    """Return the names near an unknown field of a body, the nearest first; none for any other mistake."""
    place, body = mistake["loc"], getattr(getattr(route, "body_field", None), "field_info", None)
    if mistake["type"] != UNKNOWN or len(place) != 2 or place[0] != "body" or body is None:
        return ()
    models = (body.annotation, *get_args(body.annotation))
    known = sorted({name for model in models for name in getattr(model, "model_fields", ())})
    return get_close_matches(str(place[1]), known, cutoff=0.6)
