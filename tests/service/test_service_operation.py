"""Running the service: ready, counted, ended in order; container files; what OpenAPI allows."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Connection, make_url, text
from starlette.testclient import TestClient

from importer.cli.arguments import parse
from importer.service import desk
from importer.service.app import create
from importer.service.desk import Pulse
from importer.service.settings import Settings
from importer.storage.database import Database
from importer.storage.schema import open_database
from tests.serving import PATIENCE, Service, events, problem, running
from tests.serving import own_service as service

__all__ = ["service"]
slow = pytest.mark.slow
DEPLOY = Path(__file__).parents[2] / "deploy"
OPERATION = (DEPLOY.parent / "docs" / "service.md").read_text()
FEW, MANY = 1, 40  # requests of the fuzzer for each operation: in the test command, and at night
# Whether a request that fits its schema is accepted depends on what is there, so that is not asked.
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_headers_conformance", "response_schema_conformance", "unsupported_method", "use_after_free",
)  # fmt: skip


@slow
def test_what_is_counted(service: Service) -> None:
    service.imported("acme/base", name="counted")
    service.client.get("/v1/configs/counted")
    service.client.get("/v1/configs/another")
    service.client.request("ODD", "/v1/configs/counted")
    service.client.get("/nothing/at/all")
    answer = service.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert found["importer_requests_total", "GET", "/v1/configs/{name}", "200"] == 1
    assert found["importer_requests_total", "GET", "/v1/configs/{name}", "404"] == 1
    assert found["importer_request_seconds_count", "GET", "/v1/configs/{name}"] == 2
    assert found["importer_jobs", "import", "succeeded"] == found["importer_documents", "draft"] == 1
    assert (found["importer_processes",], found["importer_oldest_queued_seconds", "import"]) == (1, 0)
    shown = [re.findall(r"^\| `(importer_\w+)` \| ([^|]*)\|", OPERATION, re.MULTILINE)]
    documented = {name: {label for label in labels.strip().split(", ") if label} for name, labels in shown[0]}
    there = {
        family.name + ("_total" if family.type == "counter" else ""): {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
        for family in text_string_to_metric_families(answer.text)
        if not family.name.endswith("_created")  # the times that the library adds
    }
    assert {name: there[name] or documented[name] for name in there} == documented
    assert ("importer_requests_total", "GET", "other", "404") in found
    assert not [key for key in found if "another" in key or "ODD" in key]


@slow
def test_it_is_ready_while_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    app = create(Settings(validate=False))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        app.state.desk.runner._seen -= 60  # as if its thread had stood still for a minute
        assert "jobs" in problem(client.get("/readyz"), 503, "not-ready")["detail"]
        app.state.desk.runner._seen = time.monotonic()
        app.state.ending = True
        ending = client.get("/readyz")
        assert problem(ending, 503, "not-ready")
        assert ending.headers["Retry-After"] == "5"
        assert client.get("/healthz").status_code == 200


@slow
def test_a_database_that_fails_is_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    settings = Settings(validate=False, imports=0)
    with TestClient(create(settings), base_url="http://127.0.0.1") as client:
        with closing(open_database(settings.url)) as database, database.writing() as connection:
            connection.execute(text("DROP TABLE configs"))
        assert problem(client.get("/v1/configs"), 503, "no-database")
    told = [r for r in caplog.records if "no such table: configs" in r.getMessage()]
    assert told
    assert not any(r.exc_info for r in told)


def test_a_database_that_hangs_holds_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on = [], threading.Event()

    class Hanging(Database):
        @contextmanager
        def reading(self) -> Iterator[Connection]:
            asked.append(1)
            go_on.wait(PATIENCE)
            with super().reading() as connection:
                yield connection

    async def watch() -> list[bool]:
        answers = [await found.answers(), *await asyncio.gather(found.answers(), found.answers())]
        go_on.set()
        monkeypatch.setattr(desk, "PATIENCE", PATIENCE)
        return [*answers, await found.answers()]

    monkeypatch.setattr(desk, "PATIENCE", 0.05)
    with closing(Hanging(f"sqlite:///{tmp_path / 'g.sqlite'}")) as database:
        found = Pulse(database)
        assert asyncio.run(watch()) == [False, False, False, True]
    assert len(asked) == 1


@slow
def test_nobody_who_watches_is_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, "--imports", "0") as service:  # a job that nobody runs says nothing
        job = service.client.post("/v1/imports", json={"reference": "acme/base", "backend": "vllm"}).json()
        with service.client.stream("GET", job["links"]["events"]["href"]) as stream:
            seen = events(stream)
            assert next(seen)["event"] == "queued"
            service.processes[-1].send_signal(signal.SIGTERM)
            assert [*seen] == []  # it ends, and is not cut off
        assert service.stop() == 0
    log = service.log()
    assert "Cancel" not in log
    assert "Traceback" not in log


@slow
def test_whoever_asks_for_the_head_gets_no_body(service: Service) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/v1/configs", "/", "/openapi.json"):
        head, whole = service.client.head(path), service.client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
    assert service.client.head("/v1/jobs/none").status_code == 404
    assert service.client.head("/v1/imports").headers["Allow"] == "POST"
    assert service.client.post("/v1/jobs").headers["Allow"] == "GET, HEAD"
    assert service.client.delete("/").headers["Allow"] == "GET, HEAD"
    assert service.client.head("/v1/jobs/none/events").status_code == 405


@slow
def test_more_connections_than_there_may_be_are_told_to_come_later(tmp_path: Path) -> None:
    with running(tmp_path, "--connections", "10") as service:
        job = service.imported("acme/base", name="one")
        held = [service.client.send(_events(service, job["id"]), stream=True) for _ in range(9)]
        held += [service.client.send(_events(service, job["id"]), stream=True) for _ in range(3)]
        refused = service.client.get("/v1/configs")
        assert problem(refused, 503, "too-many-connections")
        assert refused.headers["Retry-After"] == "5"
        assert service.client.get("/healthz").status_code == 200
        for one in held:
            one.close()
        service.wait(lambda: service.client.get("/v1/configs").status_code == 200)


def _events(service: Service, job: str) -> Any:
    return service.client.build_request("GET", f"/v1/jobs/{job}/events")


@slow
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_whatever_openapi_allows_is_answered_as_it_says(service: Service, examples: int) -> None:
    service.imported("acme/base", name="fuzzed")
    words = [
        "run", f"{service.url}/openapi.json", "--exclude-path-regex", "/events$",
        "--checks", ",".join(CHECKS), "--phases", "examples,fuzzing",
        "--max-examples", f"{examples}", "--workers", "2",
        "--request-timeout", f"{PATIENCE:g}", "--continue-on-failure",
        "--no-color", "--warnings", "off",
    ]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", *words],
        capture_output=True, check=False, text=True, timeout=PATIENCE * examples, cwd=service.folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert int(re.findall(r"(\d+) generated", ran.stdout)[0]) > 20 * examples, ran.stdout[-3000:]
    assert service.client.get("/readyz").status_code == 200
    errors = [json.loads(line) for line in (service.folder / "serve-0.log").read_text().splitlines()]
    assert not [line for line in errors if line.get("status", 0) >= 500 and line["status"] != 502]


@slow
def test_yaml_and_unknown_problems_are_what_openapi_says(service: Service) -> None:
    """Found by Schemathesis: an index is a list and no text."""
    paths = service.client.get("/openapi.json").json()["paths"]
    told = paths["/gallery/index.yaml"]["get"]["responses"]["200"]["content"]["application/yaml"]["schema"]
    jsonschema.validate(yaml.safe_load(service.client.get("/gallery/index.yaml").text), told)
    problem(service.client.get("/problems/odd"), 404, "no-such-page")


# The container files, which cannot be built here


def test_the_image_runs_as_nobody_in_particular() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line.strip()]
    last = dict(steps)
    assert last["USER"] == "10001:10001"
    argv = [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]
    found = parse(argv[1:])
    assert (argv[0], found.command, found.host) == ("importer", "serve", "0.0.0.0")
    ignored = (DEPLOY.parent / ".dockerignore").read_text()
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from"):
            for path in shlex.split(rest)[:-1]:
                assert (DEPLOY.parent / path).exists(), path
                assert f"!{path}\n" in ignored, path


def test_the_services_have_no_more_rights_than_they_need() -> None:
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(told["services"]) == {"server", "worker", "db"}
    for name, one in told["services"].items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert one["user"].split(":")[0] not in ("0", "root"), name
        assert {v.partition(":")[0] for v in one["volumes"]} <= set(told["volumes"]), name
    for name in ("server", "worker"):
        one = told["services"][name]
        parsed = parse(one["command"])
        assert {"serve": "server"}.get(parsed.command, one["command"][1]) == name
        assert one["depends_on"]["db"]["condition"] == "service_healthy"
        assert "${DB_PASSWORD:?" in one["environment"]["PGPASSWORD"]
    parsed = {name: parse(told["services"][name]["command"]) for name in ("server", "worker")}
    assert (parsed["server"].imports, parsed["server"].validate) == ("0", False)
    assert parsed["worker"].imports != "0"  # an import's proof asks the engine, which only the worker has
    text = (DEPLOY / "compose.yaml").read_text()
    for line in re.findall(r"^#   docker compose .* run --rm \w+ (.*)$", text, re.MULTILINE):
        assert parse(shlex.split(line)).command in ("admin", "engine")
    assert not re.search(r"password\w*:\s*[\"']?\w", text, re.IGNORECASE)  # none is written here


@slow
def test_a_database_that_is_locked_answers_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    monkeypatch.setattr("importer.storage.database.PATIENCE", 0)
    settings = Settings(validate=False, imports=0)
    with TestClient(create(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        with closing(sqlite3.connect(str(make_url(settings.url).database))) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = client.post("/v1/imports", json={"reference": "acme/base", "backend": "vllm"})
        assert problem(answer, 503, "no-database")
        assert answer.headers["Retry-After"] == "5"
