"""The API's description: FastAPI's, with the keys and the conditions that routes require."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from importer.service.http import routers

METHODS = ("get", "put", "post", "patch", "delete")
NEEDS_MATCH = ("put", "patch", "delete")
KEYS = {
    "HTTPBearer": {"type": "http", "scheme": "bearer", "description": "An API key; none on loopback."},
    "APIKeyHeader": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
OPEN = "/v1/me"  # it also answers who has no key


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document behind ``/openapi.json``, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        document["components"] |= {"securitySchemes": KEYS}
        for path, method, operation in _operations(document):
            for parameter in operation.get("parameters", ()):
                if method in NEEDS_MATCH and parameter["name"] == "If-Match":
                    parameter |= {"required": True, "schema": {"type": "string", "maxLength": 1000}}
            if path == "/metrics" or (path.startswith("/v1/") and path != OPEN):
                keys: list[dict[str, list[str]]] = [{name: []} for name in KEYS]
                operation["security"] = [{}, *keys] if app.state.settings.loopback else keys
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
