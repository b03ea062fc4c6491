"""Traces as a real receiver gets them over OTLP/HTTP, and what is in none of them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from importer.errors import ServiceError
from importer.service import telemetry
from tests.commandline import BASE, REPO, TOKEN
from tests.hubserver import Repo
from tests.serving import listening, running

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "zebra-secret-of-a-caller"


class Receiver:
    """What was sent to ``/v1/traces``."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.port = 0

    def spans(self) -> list[dict[str, Any]]:
        found = []
        for body in [*self.raw]:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                of = {a.key: a.value.string_value for a in resource.resource.attributes}
                for scope in resource.scope_spans:
                    found += [
                        {
                            "name": one.name, "trace": one.trace_id.hex(), "id": one.span_id.hex(),
                            "parent": one.parent_span_id.hex(), "service": of["service.name"],
                            "failed": one.status.message, "events": len(one.events),
                            **{a.key: a.value.string_value or a.value.int_value for a in one.attributes},
                        }
                        for one in scope.spans
                    ]  # fmt: skip
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                found.raw.append(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_address[1]
    with listening(server):
        yield found


@pytest.mark.slow
def test_a_request_its_job_in_a_worker_its_steps_and_the_hub_are_one_trace(tmp_path: Path) -> None:
    with receiving() as receiver:
        env = {
            ENDPOINT: f"http://127.0.0.1:{receiver.port}", "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SECRET}", "HF_TOKEN": TOKEN,
        }  # fmt: skip
        repo = Repo(BASE)
        with running(
            tmp_path, "--imports", "0", "--no-validate", env=env, **{"acme/traced": repo}
        ) as service:
            service.start("--no-validate", command="worker", env={"OTEL_SERVICE_NAME": "importer-worker"})
            headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "x-note": SECRET}
            said = {"reference": "acme/traced", "backend": "vllm", "note": SECRET}
            answer = service.client.post("/v1/imports", json=said, headers=headers)
            assert answer.status_code == 202, answer.text
            job = service.ended(answer.json()["id"])
            assert job["state"] == "succeeded"
            service.client.get("/v1/configs", params={"search": SECRET})
            gone = service.client.post(
                "/v1/imports", json={**said, "reference": "acme/not-there"}, headers=headers
            )
            assert service.ended(gone.json()["id"])["state"] == "failed"
            for process in service.processes:
                assert service.stop(process) == 0
            log = service.log()
        spans = receiver.spans()
        raw = b"".join(receiver.raw)
    mine = [one for one in spans if one["trace"] == TRACE]
    asked = [one for one in mine if one["name"] == "POST /v1/imports"]
    assert [one["parent"] for one in asked] == ["00f067aa0ba902b7"] * 2
    assert {(one["http.route"], one["http.response.status_code"]) for one in asked} == {("/v1/imports", 202)}
    work = [one for one in mine if one.get("importer.job") == job["id"]]
    head = next(one for one in work if one["name"] == "job import")
    assert head["parent"] == asked[0]["id"]
    assert (asked[0]["service"], head["service"]) == ("importer", "importer-worker")
    steps = {one["name"]: one["id"] for one in work if one["name"].startswith("step ")}
    assert [*steps] == ["step resolve", "step decide", "step prove", "step store"]
    assert {one["parent"] for one in work if one is not head} == {head["id"]}
    hub = [one for one in mine if one["name"] == "hub GET"]
    assert {one["parent"] for one in hub} >= {steps["step resolve"]}
    assert 200 in {one["http.response.status_code"] for one in hub}
    assert [one["failed"] for one in mine if one["name"] == "job import" and one is not head] == ["not-found"]
    assert "GET /v1/configs" in {one["name"] for one in spans}
    assert not [one for one in spans if one["name"].endswith(("/healthz", "/readyz"))]
    assert not any(one["events"] for one in spans)  # an exception's text would be one
    for secret in (SECRET, TOKEN, "Bearer", "chat_template", "messages"):
        assert secret.encode() not in raw, secret
    assert f'"trace": "{TRACE}"' in log
    assert SECRET not in log


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (ENDPOINT, "collector:4317", "no http or https URL"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only http/protobuf"),
    ],
)
def test_what_cannot_be_exported_to_is_one_sentence(name: str, value: str, problem: str) -> None:
    with pytest.raises(ServiceError, match=problem):
        telemetry.requested({ENDPOINT: "http://127.0.0.1:4318", name: value})


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "true"},
        {ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_request_nothing_is_exported(environment: dict[str, str]) -> None:
    assert telemetry.requested(environment) is None


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", pytest.param("admin worker", marks=pytest.mark.nightly)])
def test_without_the_packages_it_is_one_sentence(command: str, tmp_path: Path) -> None:
    """The exporter is hidden from a Python of its own, as where the extra is not installed."""
    words = [*command.split(), "--database", f"sqlite:///{tmp_path}/g.sqlite"]
    words += ["--port", "0"] if command == "serve" else []
    script = (
        "import sys; sys.modules['opentelemetry.exporter'] = None\n"
        f"from importer.__main__ import main\nsys.argv[1:] = {words}\nsys.exit(main())"
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO), "IMPORTER_HOME": str(tmp_path)}
    env[ENDPOINT] = "http://127.0.0.1:9"
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert "pip install 'model-importer[otel]'" in done.stderr
    assert "Traceback" not in done.stderr
