"""The application: routes, middleware, its start and end, and the responses to failures."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from threading import BoundedSemaphore
from typing import Any

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from importer.errors import ImporterError, ServiceError
from importer.service import messages
from importer.service.desk import TEXTS, Desk, Pulse
from importer.service.domain.gallery import Gallery
from importer.service.domain.index import GalleryIndex
from importer.service.http import routers
from importer.service.http.openapi import describe, methods
from importer.service.http.query import known_request, near_fields
from importer.service.jobs.live_jobs import Watching
from importer.service.jobs.runner import Runner
from importer.service.problems import REFUSED, answer
from importer.service.security import Guard, limits
from importer.service.settings import Settings
from importer.service.telemetry import Metrics
from importer.storage.database import driver_message
from importer.storage.schema import open_database
from importer.version import __version__

LOG = logging.getLogger(__name__)
JSON = "application/json"
OBJECTS = ("model_attributes_type", "dict_type")  # what pydantic calls a body that is no object
NO_TRACES: TelemetryConfig = {  # spans of FastAPI would have addresses with their queries
    "auto_configure": False,
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
}
ABOUT = "From a Hugging Face model id to a serving config that was reviewed, and proved on a real engine."


def create(settings: Settings) -> FastAPI:
    """Return the application; on its start the database is migrated and the runner started."""
    app = FastAPI(
        title="importer", version=__version__, description=ABOUT, lifespan=_lifespan,
        docs_url=None, redoc_url=None, telemetry=NO_TRACES, generate_unique_id_function=_id,
        redirect_slashes=False, dependencies=[Depends(known_request)], responses=REFUSED,
    )  # fmt: skip
    app.state.settings, app.state.ending = settings, False
    app.state.limits, app.state.metrics = limits(settings), Metrics()
    for router in routers():
        app.include_router(router)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    app.add_middleware(Guard, settings=settings, metrics=app.state.metrics)
    return app


def _id(route: APIRoute) -> str:
    """Return the operation id for generated clients, such as ``documents_list``."""
    return f"{route.tags[0]}_{route.name.rstrip('_')}"  # with '_' where a name is Python's own


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    desk = await run_in_threadpool(_open, settings)
    app.state.desk = desk
    try:
        yield
    finally:
        app.state.ending = True
        await run_in_threadpool(desk.runner.__exit__)
        desk.database.close()


def _open(settings: Settings) -> Desk:
    database = open_database(settings.url)
    gallery = Gallery(database)
    runner = Runner(gallery, settings).__enter__()
    looks = BoundedSemaphore(settings.previews)
    watching, index, pulse = Watching(database), GalleryIndex(database), Pulse(database)
    return Desk(settings, database, gallery, runner, watching, index, looks, pulse, CapacityLimiter(TEXTS))


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ImporterError)  # noqa: S101 - what it is registered for
    return answer(request, error)


def _invalid(request: Request, error: Exception) -> Response:
    """Return the response to a request that does not match its schema: every mistake with its field."""
    errors: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    if any(one["type"] == "json_invalid" for one in errors):
        return answer(
            request, ServiceError("bad-json", problem=errors[0].get("ctx", {}).get("error", "it ends early"))
        )
    if any(one["loc"] == ("body",) and one["type"] in OBJECTS for one in errors) and not _is_json(request):
        media_type = request.headers.get("content-type", "").partition(";")[0] or "untyped"
        return answer(request, ServiceError("wrong-type", type=media_type[:100], wanted=JSON))
    route = request.scope.get("route")
    mistakes = [
        {"pointer": _pointer(one["loc"]), "detail": messages.mistake(one, near_fields(route, one))}
        for one in errors
    ]
    problem = "; ".join(f"{m['pointer'] or 'the body'}: {m['detail']}" for m in mistakes)
    return answer(request, ServiceError("bad-request", problem=problem), mistakes)


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def _pointer(place: Sequence[str | int]) -> str:
    """Return ``/set/a~1b`` for ``("body", "set", "a/b")``; a parameter keeps the name of its place."""
    steps = place[1:] if place[:1] == ("body",) else place
    steps = steps[:-1] if steps[-1:] == ("[key]",) else steps  # pydantic's word for a key, not for its value
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path[:200]
    kinds: Mapping[int, ServiceError] = {
        404: ServiceError("no-such-page", path=path),
        405: ServiceError("wrong-method", path=path, method=request.method),
        413: ServiceError("body-too-large", limit=request.app.state.settings.largest_body),
    }
    problem = str(getattr(error, "detail", error))
    if status == 405:
        headers = {"Allow": ", ".join(methods(request.url.path))}
        return answer(request, kinds[405], headers=headers)
    return answer(request, kinds.get(status, ServiceError("bad-request", problem=problem)))


def _database(request: Request, error: Exception) -> Response:
    LOG.error("the database does not answer: %s", driver_message(error))
    return answer(request, ServiceError("no-database", seconds=5))


HANDLERS: Mapping[type[Exception], Any] = {
    ImporterError: _failed, RequestValidationError: _invalid, HTTPException: _http,
    OperationalError: _database,
}  # fmt: skip
