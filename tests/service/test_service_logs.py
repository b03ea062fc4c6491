"""What the service writes down: the audit log, and lines of JSON without secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi.responses import StreamingResponse
from hypothesis import given
from hypothesis import strategies as st

from importer.service import telemetry
from importer.service.app import create
from importer.service.settings import Settings
from tests.serving import Service, service

__all__ = ["service"]
slow = pytest.mark.slow


# What is written down


@slow
def test_every_change_is_in_the_audit_log(service: Service) -> None:
    spoofed = {"X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3"}
    service.client.headers.update(spoofed)
    try:
        service.imported("acme/base", name="told")
        path, digest, patch = "/v1/configs/told", {}, {"parameters": {"temperature": 0.3}}
        for version, call in enumerate((
            lambda: service.client.patch(path, json=patch, headers={"If-Match": "*"}),
            lambda: service.approve("told", note="fine"),
            lambda: service.client.post(f"{path}/reject", json={"note": "not at all"}),
            lambda: service.client.delete(path, headers={"If-Match": "*"}, params={"why": "done"}),
        ), 2):  # fmt: skip
            assert call().status_code < 300
            digest[version] = service.client.get(path).json().get("digest")
    finally:
        for name in spoofed:
            del service.client.headers[name]
    log = [e for e in service.audit() if e.target == "told"]
    assert [e.action for e in log] == ["import", "edit", "approve", "reject", "delete"]
    assert {e.actor for e in log} == {"local"}
    assert [e.details.get("address") for e in log] == [None, *["127.0.0.1"] * 4]  # a job stored the first
    assert [e.digest for e in log[1:4]] == [digest[2], digest[3], digest[4]]
    assert [e.details.get("why") for e in log] == [None, None, "fine", "not at all", "done"]
    asked = [e for e in service.audit() if e.action == "ask"]
    assert asked[-1].details["address"] == "127.0.0.1"


@slow
def test_the_log_is_json_with_ids_whatever_was_sent(service: Service) -> None:
    job = service.imported("acme/base", name="logged")
    service.client.get("/v1/configs/%0A%7B%22level%22:%22error%22%7D%1B[2J?key=imp_000000000000_" + "s" * 43)
    own = service.client.get("/healthz", headers={"X-Request-Id": "my-id.1"})
    other = service.client.get("/healthz", headers={"X-Request-Id": 'a" b'})
    assert own.headers["x-request-id"] == "my-id.1"
    assert re.fullmatch("[0-9a-f-]{36}", other.headers["x-request-id"])
    lines = [json.loads(line) for line in (service.folder / "serve-0.log").read_text().splitlines()]
    assert {"at", "level", "logger", "message"} <= set.intersection(*(set(line) for line in lines))
    assert {"resolve", "decide", "prove", "store"} == {
        x.get("step") for x in lines if x.get("job") == job["id"]
    }
    assert any(x.get("request") == "my-id.1" and x["status"] == 200 for x in lines)
    assert "s" * 43 not in service.log()


def record(message: str, error: Exception | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, None)
    return logging.LogRecord("importer", logging.ERROR, "x", 1, message, (), info)


def test_no_secret_gets_into_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "my-own-odd-token")
    key = f"imp_0123456789ab_{'k' * 43}"
    text = f"my-own-odd-token {key} hf_abcdefghijkl postgresql://ann:pass:word@db/x"
    for formatter in (telemetry.Json(), telemetry.Text()):
        said = formatter.format(record(text, ValueError(text)))
        for secret in ("my-own-odd-token", "k" * 43, "abcdefghijkl", "pass:word"):
            assert secret not in said
        assert "imp_0123456789ab_***" in said


@given(st.text())
def test_an_entry_is_one_line_whatever_it_says(text: str) -> None:
    said = telemetry.Json().format(record(text.replace("%", "%%")))
    assert len(said.splitlines()) == 1
    assert json.loads(said)["logger"] == "importer"
    shown = telemetry.Text("%(message)s").format(record(text))
    assert all(c.isprintable() for c in shown)


async def _stream() -> AsyncIterator[bytes]:
    yield b"a part"
    raise ZeroDivisionError("in the middle")


@pytest.mark.slow
def test_a_fault_has_one_entry_with_the_id_of_its_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing reaches the server, which would log the fault once more; a cut answer is filtered there."""
    app = create(Settings(database=f"sqlite:///{tmp_path / 'g.sqlite'}"))

    def fails() -> None:
        raise ZeroDivisionError("a fault")

    app.add_api_route("/fails", fails, tags=["test"])
    app.add_api_route("/cut", lambda: StreamingResponse(_stream()), tags=["test"], name="cut")

    async def asked(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers={"X-Request-Id": "mine"})

    answered = asyncio.run(asked("/fails"))
    assert (answered.status_code, answered.json()["kind"]) == (500, "internal")
    assert (answered.headers["x-request-id"], answered.json()["request_id"]) == ("mine", "mine")
    assert "content-security-policy" in answered.headers
    with pytest.raises(telemetry.AnswerCut) as cut:
        asyncio.run(asked("/cut"))
    errors = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
    assert errors == ["request mine failed", "request mine failed"]
    telemetry.quiet()
    server = logging.getLogger("uvicorn.error")
    assert not server.filter(record("Exception in ASGI application", cut.value))
    assert server.filter(record("Exception in ASGI application", ValueError("another")))
