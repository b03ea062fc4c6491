"""The API's description: FastAPI's, with the problems, preconditions and keys of each route."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from importer.service.http import job_events
from importer.service.http.openapi_texts import JSON, add_texts
from importer.service.http.response_models import JOBS, Problem
from importer.service.problems import MEDIA_TYPE, example, problems

METHODS = ("get", "put", "post", "patch", "delete")
PROBLEM = {"$ref": "#/components/schemas/Problem"}
OF_FASTAPI = ("HTTPValidationError", "ValidationError")  # its own 422, for that importer has problems
TEXT = {"type": "string"}
DATA = {"type": "object", "title": "DocumentContent", "description": "A document's data, or a change of them"}
# draft-ietf-httpapi-ratelimit-headers
LIMITS = {
    "RateLimit-Policy": {"description": "the limit of the caller: q requests in w seconds", "schema": TEXT},
    "RateLimit": {"description": "r requests are left; in t seconds all are again", "schema": TEXT},
}
RETRY = {"description": "seconds to wait", "schema": TEXT}
WAITING = ("Too many", "Too many connections")  # titles of problems with that header
NEEDS_MATCH = ("put", "patch", "delete")


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document behind ``/openapi.json``, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= problem.pop("$defs", {}) | {"Problem": problem, "DocumentContent": DATA}
        schemas |= job_events.schemas()
        for name in OF_FASTAPI:
            schemas.pop(name, None)
        _times(schemas)
        schemas["Job"]["examples"] = [*JOBS.values()]
        schemas["Problem"]["examples"] = [example("no-such-job")]
        for path, method, operation in _operations(document):
            _problems(operation)
            _examples(operation)
            _preconditions(method, operation)
            _bodies(operation)
            _limits(operation)
            if "localai" in operation["tags"]:
                operation["responses"].pop("422", None)  # LocalAI's is 400
            add_texts(path, operation, schemas)
            if app.state.settings.loopback and "security" in operation:
                operation["security"] = [{}, *operation["security"]]  # on loopback no key is required
        app.openapi_schema = document
    return app.openapi_schema


def _times(schemas: Mapping[str, Any]) -> None:
    """Give the format of RFC 3339 to every property that is a time: ``at``, and what ends with it."""
    for schema in schemas.values():
        for name, one in schema.get("properties", {}).items():
            if name == "at" or name.endswith("_at"):
                for text in (one, *one.get("anyOf", ())):
                    if text.get("type") == "string":
                        text["format"] = "date-time"


def methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods of an address."""
    paths = describe(app)["paths"]
    taken = [
        m.upper()
        for p, operations in paths.items()
        if _regex(p).fullmatch(path)
        for m in METHODS
        if m in operations
    ]
    taken = taken or ["GET"]  # any other address is the page's
    return [*taken, "HEAD"] if "GET" in taken and not path.endswith("/events") else taken


@cache
def _regex(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods_of in document["paths"].items():
        yield from ((path, method, methods_of[method]) for method in METHODS if method in methods_of)


def _problems(operation: dict[str, Any]) -> None:
    """Give the problems one schema and one media type."""
    for response in operation["responses"].values():
        if MEDIA_TYPE in response.get("content", {}):
            response["content"] = {MEDIA_TYPE: {"schema": PROBLEM, **response["content"][MEDIA_TYPE]}}


def _examples(operation: dict[str, Any]) -> None:
    """Restore the nulls that FastAPI drops from examples."""
    for response in operation["responses"].values():
        for name, one in response.get("content", {}).get(JSON, {}).get("examples", {}).items():
            one["value"] = JOBS.get(name, one["value"])


def _bodies(operation: dict[str, Any]) -> None:
    """Describe the responses to a body that is not JSON, which no route reads, LocalAI's neither."""
    if JSON not in operation.get("requestBody", {}).get("content", {}):
        return
    if "localai" in operation["tags"]:
        examples = problems("bad-json")[400]["content"][MEDIA_TYPE]
        response = operation["responses"].setdefault("400", {"description": "Bad json", "content": {}})
        response["content"] = {**response["content"], MEDIA_TYPE: {"schema": PROBLEM, **examples}}
    else:
        examples = problems("wrong-type")[415]["content"][MEDIA_TYPE]
        response = {"description": "Wrong type", "content": {MEDIA_TYPE: {"schema": PROBLEM, **examples}}}
        operation["responses"].setdefault("415", response)


def _limits(operation: dict[str, Any]) -> None:
    """Describe the headers of limits, of each answer of a route that needs a key."""
    if "security" in operation:
        for response in operation["responses"].values():
            response.setdefault("headers", {})
            response["headers"] = {**response["headers"], **LIMITS}
    for response in operation["responses"].values():
        if MEDIA_TYPE in response.get("content", {}) and response["description"].endswith(WAITING):
            response["headers"] = {**response.get("headers", {}), "Retry-After": RETRY}


def _preconditions(method: str, operation: dict[str, Any]) -> None:
    """Describe If-Match as required, with 428 where it is absent."""
    for parameter in operation.get("parameters", ()):
        if method in NEEDS_MATCH and parameter["name"] == "If-Match":
            parameter["required"] = True
            parameter["schema"] = {"type": "string", "maxLength": 1000}
