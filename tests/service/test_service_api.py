"""What all routes have in common: queries, order, totals, limits in headers, and the description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from importer.service.app import create
from importer.service.settings import Settings
from tests.serving import Service, fresh, problem, service

__all__ = ["service"]
pytestmark = pytest.mark.slow
METHODS = ("get", "put", "post", "patch", "delete")


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return create(Settings()).openapi()


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        yield from ((method, path, methods[method]) for method in METHODS if method in methods)


# Queries


def test_an_unknown_parameter_is_refused_with_a_near_name(service: Service) -> None:
    refused = problem(service.client.get("/v1/configs?limt=3&stat=draft"), 400, "unknown-parameter")
    assert [one["pointer"] for one in refused["errors"]] == ["/query/limt", "/query/stat"]
    assert refused["hint"].startswith("Did you mean limit")
    for path in ("/v1/jobs?page=2", "/v1/configs/none?x=1", "/gallery/index.yaml?x"):
        said = problem(service.client.get(path), 400, "unknown-parameter")
        assert said["hint"].startswith("Did you mean" if path == "/v1/jobs?page=2" else "Send no query")
    problem(
        service.client.post("/v1/imports?dry=1", json={"reference": "acme/base"}), 400, "unknown-parameter"
    )
    assert service.client.get("/models/available?term=x").status_code == 200  # LocalAI's clients send more
    assert service.client.get("/v1/jobs?state=failed&state=queued").status_code == 200


def test_every_parameter_of_the_description_is_known(service: Service, described: dict[str, Any]) -> None:
    """No declared parameter is refused as unknown, whatever its value."""
    for method, path, operation in operations(described):
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        if method != "get" or not names or path.endswith("/events"):
            continue
        address = re.sub(r"\{\w+\}", "1", path)
        answer = service.client.get(address, params=dict.fromkeys(names, "x"))
        assert answer.status_code != 400, (path, answer.text)


def test_jobs_have_totals_an_order_and_a_time(service: Service) -> None:
    fresh(service, "counted-1")
    fresh(service, "counted-2")
    newest = service.client.get("/v1/jobs?limit=1").json()
    assert newest["total"] >= 2
    forward = service.client.get("/v1/jobs?limit=200&sort=created_at&state=succeeded").json()
    backward = service.client.get("/v1/jobs?limit=200&state=succeeded").json()
    assert forward["items"] == backward["items"][::-1]
    assert forward["total"] == len(forward["items"])
    since = backward["items"][0]["ended_at"]
    recent = service.client.get("/v1/jobs", params={"updated_since": since}).json()
    assert all(one["ended_at"] is None or one["ended_at"] >= since for one in recent["items"])
    page = service.client.get("/v1/jobs?limit=1&sort=created_at").json()
    after = service.client.get(f"/v1/jobs?limit=1&sort=created_at&cursor={page['next']}").json()
    assert after["items"][0]["id"] > page["items"][0]["id"]


def test_a_cursor_a_time_or_a_state_that_is_none_is_refused(service: Service) -> None:
    for query in (
        "sort=-updated_at&cursor=name~~a", "sort=-weights&cursor=weights~7~a",
        "sort=-weights&cursor=-weights~x~a", "cursor=zzz", "review=good",
        "updated_since=yesterday",
        "updated_since=0001-01-01T00:00:00%2B14:00",
    ):  # fmt: skip
        problem(service.client.get(f"/v1/configs?{query}"), 422, "bad-request")


# The description


def test_nothing_of_the_framework_is_described(described: dict[str, Any]) -> None:
    text = json.dumps(described)
    assert "HTTPValidationError" not in text
    assert not {"ValidationError", "HTTPValidationError"} & described["components"]["schemas"].keys()
    for method, path, operation in operations(described):
        assert [*operation["responses"]["default"]["content"]] == ["application/problem+json"], (method, path)
