"""What queries have in common: unknown parameters are refused; filters, times and the order of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from importer.app.states import State
from importer.errors import ServiceError
from importer.service.domain.import_request import Text
from importer.storage.document_filters import Filters, Value, order, whole
from importer.storage.documents import Summary

JSON = "application/json"
OTHERS = ("localai", "page")  # tags of routes whose clients may send more
MAX_CURSOR = 300
Sort = Literal[
    "name", "-name", "updated_at", "-updated_at", "created_at", "-created_at", "checked_at", "-checked_at",
    "state", "-state", "attention", "-attention", "weights", "-weights", "memory", "-memory", "context",
    "-context", "parameters", "-parameters", "findings", "-findings",
]  # fmt: skip
NUMBER = re.compile(r"-?[0-9]{1,19}")
Size = Literal["under-1b", "1b-4b", "4b-10b", "10b-35b", "35b-100b", "over-100b", "none"]
AttentionKind = Literal[
    "will-not-start", "does-not-fit", "no-receipt", "failed", "outdated", "edited", "no-entry", "finding",
    "grant", "needs-code", "foreign-code", "prompts", "parser", "limited-tools", "no-tools", "way-in",
    "conflict", "other-device", "other",
]  # fmt: skip
AttentionFilter = Literal["any", "none"] | AttentionKind
JobSort = Literal["created_at", "-created_at"]
Review = Literal["no receipt", "draft", "approved", "rejected", "stale"]
Validation = Literal["never", "passed", "failed", "stale"]
Since = Annotated[
    datetime | None,
    Query(description="only what has changed at this time or later, such as 2026-11-22T08:00:00Z"),
]
_known: dict[tuple[str, str], frozenset[str]] = {}


async def known_body(request: Request) -> None:
    """Raise ServiceError("wrong-type") for a body of another type than JSON, where the route reads JSON."""
    route, sent = request.scope.get("route"), request.headers.get("content-type")
    if sent is None or not isinstance(route, APIRoute) or set(route.tags) & {*OTHERS}:
        return
    kind = sent.partition(";")[0].strip().lower()
    if route.body_field is not None and kind != JSON:
        raise ServiceError("wrong-type", type=kind[:100], wanted=JSON)


async def known_query(request: Request) -> None:
    """Raise ServiceError("unknown-parameter") for a parameter of a query that the route does not have."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute) or set(route.tags) & {*OTHERS}:
        return
    known = _names(route, request.method)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], sorted(known), cutoff=0.5) or sorted(known) or ["none"]
        errors = [{"pointer": f"/query/{name[:200]}", "detail": "unknown parameter"} for name in unknown]
        raise ServiceError("unknown-parameter", name=unknown[0][:200], near=tuple(near), errors=errors)


def _names(route: APIRoute, method: str) -> frozenset[str]:
    key = (route.path_format, method)
    if key not in _known:
        _known[key] = frozenset(_parameters(route.dependant))
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


Named = Annotated[list[Text] | None, Query(max_length=50)]


def budget_of(device: str) -> int:
    """Return the bytes that engines may fill of a device such as ``2xh100-80g``, of all its cards together.

    Raises UsageError: "unknown-device", "bad-value"; ServiceError("bad-request") where its memory is unknown.
    """
    from importer.memory.devices import named

    chosen = named(device)
    if chosen.memory is None:
        raise refusal("device", "its memory is not known; name a device with a size")
    return int(chosen.memory * chosen.share) * chosen.count


async def document_filters(
    state: Annotated[list[State] | None, Query()] = None,
    review: Annotated[list[Review] | None, Query(description="states of the review")] = None,
    validation: Annotated[list[Validation] | None, Query(description="states of the validation")] = None,
    family: Named = None,
    backend: Named = None,
    kind: Annotated[list[Text] | None, Query(max_length=50, description="such as chat or embedding")] = None,
    modality: Annotated[
        list[Text] | None, Query(max_length=50, description="text, image, video, audio")
    ] = None,
    tool_parser: Named = None,
    reasoning_parser: Named = None,
    license: Named = None,  # noqa: A002 - its public name
    quantization: Named = None,
    size: Annotated[list[Size] | None, Query(description="classes by the number of parameters")] = None,
    attention: Annotated[
        list[AttentionFilter] | None, Query(description="why it needs attention; `any` for each kind")
    ] = None,
    tag: Named = None,
    device: Annotated[
        Text | None,
        Query(description="only what fits it, such as 2xh100-80g: its estimate is within the share"),
    ] = None,
    model: Annotated[str | None, Query(max_length=4000, description="the variants of one model")] = None,
    q: Annotated[
        Text | None, Query(description="words that are all in its name, model, family, description or tags")
    ] = None,
    updated_since: Since = None,
) -> Filters:
    """Return the filters of a list of documents; of several values of one filter any will do."""
    return Filters(
        state or (), family or (), backend or (), q, review=review or (), validation=validation or (),
        updated_since=utc(updated_since), model=model, kind=kind or (), modality=modality or (),
        tool_parser=tool_parser or (), reasoning_parser=reasoning_parser or (), license=license or (),
        quantization=quantization or (), size=size or (), attention=attention or (), tag=tag or (),
        budget=None if device is None else budget_of(device),
    )  # fmt: skip


DocumentFilters = Annotated[Filters, Depends(document_filters)]


def cursor_of(sort: Sort, last: Summary) -> str:
    """Return the cursor behind a document: its name, before it the value that the list is sorted by."""
    chosen = order(sort)
    return last.name if chosen is None else f"{chosen.value(last)}~{last.name}"


def position(sort: Sort, cursor: str) -> Sequence[Value]:
    """Return the values of a cursor; raises ServiceError("bad-request") for one of another list."""
    if not cursor or order(sort) is None:
        return (cursor,) if cursor else ()
    value, tilde, name = cursor.partition("~")
    number = NUMBER.fullmatch(value)
    if not tilde or (whole(sort) and not number):
        raise refusal("cursor", "this cursor is of another list")
    return (int(value) if whole(sort) else value, name)
