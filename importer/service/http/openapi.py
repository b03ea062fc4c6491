"""The API's description: FastAPI's, with the problems, preconditions, keys and words of each route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from importer.service.http import jobs, routers
from importer.service.http.models import Problem
from importer.service.problems import CONTENT, MEDIA_TYPE, title

JSON = "application/json"
OPENAPI_TEXTS_OF_FASTAPI = "Successful Response"  # its own words, where a route has none
STATUS = {
    "200": "It was done; the body has the result",
    "201": "It was made; the body shows it",
    "202": "It was accepted, and is done later",
    "204": "It was done; there is no body",
}
# What a name in an address is, by the segment before it.
BEFORE = {
    "configs": "the document's name", "versions": "the version's number, from 1",
    "jobs": "the job's id", "recheck": "the id of the recheck's job",
    "problems": "the kind of problem",
    "export": "the format of the export", "report": "the format of the report",
    "gallery": "the entry's file: its name and .yaml",
}  # fmt: skip
PARAMETERS = {
    "Idempotency-Key": "any text of yours: requests with one key are done once, and answered alike",
    "If-None-Match": "the ETag of the copy that you have: unchanged, the answer is 304",
    "Accept-Encoding": "gzip for a compressed answer",
    "Last-Event-ID": "the id of the last event that you have; those behind it follow",
    "If-Match": "the ETag of the state that you have seen; after another change the answer is 412",
    "limit": "at most so many items on a page",
    "cursor": "`next` of the page before; none for the first page",
    "state": "only those in one of these states",
    "kind": "only those of this kind",
    "config": "only those of this document",
    "parent": "only the jobs of this list",
    "family": "only models of this family",
    "backend": "only those for this engine",
    "tool_parser": "only those with one of these tool parsers; `none` for those without one",
    "reasoning_parser": "only those with one of these reasoning parsers; `none` for those without one",
    "license": "only models with one of these licences; `none` where it is unknown",
    "quantization": "only models in one of these quantisations; `none` for plain weights",
    "tag": "only those with one of these tags",
    "name": "only those of this document",
    "version": "the number of the version; by default the newest",
    "device": "the kind of device that the export is for",
    "approved_only": "refuse a document that is not approved",
}


def add_texts(path: str, operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Add descriptions to parameters and answers that have none."""
    for parameter in operation.get("parameters", ()):
        parameter.setdefault("description", _of_parameter(path, parameter))
    for status, response in operation["responses"].items():
        content = response.get("content", {})
        if response["description"] == OPENAPI_TEXTS_OF_FASTAPI:
            response["description"] = _of_answer(status, content, schemas)


def _of_parameter(path: str, parameter: Mapping[str, Any]) -> str:
    name = parameter["name"]
    if parameter["in"] != "path":
        return PARAMETERS.get(name, "")
    return BEFORE.get(path.partition(f"/{{{name}}}")[0].rpartition("/")[2], "")


def _of_answer(status: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return the first line about the schema of the body, else a sentence about the status."""
    name = str(content.get(JSON, {}).get("schema", {}).get("$ref", "")).rpartition("/")[2]
    about = str(schemas.get(name, {}).get("description", "")).partition("\n")[0]
    return about.removesuffix(".") or STATUS.get(status, "")


METHODS = ("get", "put", "post", "patch", "delete")
OF_FASTAPI = ("HTTPValidationError", "ValidationError")  # its own 422, for that importer has problems
TEXT = {"type": "string"}
DATA = {"type": "object", "title": "DocumentContent", "description": "A document's data, or a change of them"}
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
        schemas |= jobs.schemas()
        for name in OF_FASTAPI:
            schemas.pop(name, None)
        for path, method, operation in _operations(document):
            _preconditions(method, operation)
            _bodies(operation)
            _limits(operation)
            add_texts(path, operation, schemas)
            if app.state.settings.loopback and "security" in operation:
                operation["security"] = [{}, *operation["security"]]  # on loopback no key is required
        app.openapi_schema = document
    return app.openapi_schema


def methods(path: str) -> list[str]:
    """Return the methods of an address."""
    found = {
        method
        for router in routers()
        for route in router.routes
        if isinstance(route, APIRoute) and route.path_regex.fullmatch(path)
        for method in route.methods or ()
    }
    taken = [m.upper() for m in METHODS if m.upper() in found] or ["GET"]  # any other address is the page's
    return [*taken, "HEAD"] if "GET" in taken and not path.endswith("/events") else taken


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods_of in document["paths"].items():
        yield from ((path, method, methods_of[method]) for method in METHODS if method in methods_of)


def _bodies(operation: dict[str, Any]) -> None:
    """Describe the response to a body that is not JSON, which no route reads."""
    if JSON in operation.get("requestBody", {}).get("content", {}):
        response = operation["responses"].setdefault(
            "415", {"description": title("wrong-type"), "content": {}}
        )
        response["content"] = {**response["content"], **CONTENT}


def _limits(operation: dict[str, Any]) -> None:
    """Describe when to ask again, where a route says so."""
    for response in operation["responses"].values():
        if MEDIA_TYPE in response.get("content", {}) and response["description"].endswith(WAITING):
            response["headers"] = {**response.get("headers", {}), "Retry-After": RETRY}


def _preconditions(method: str, operation: dict[str, Any]) -> None:
    """Describe If-Match as required, with 428 where it is absent."""
    for parameter in operation.get("parameters", ()):
        if method in NEEDS_MATCH and parameter["name"] == "If-Match":
            parameter["required"] = True
            parameter["schema"] = {"type": "string", "maxLength": 1000}
