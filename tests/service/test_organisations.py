"""``POST /v1/imports {organisation}``: listed by one job, imported by one each, summed up; and killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import BASE, CHAT
from tests.hubserver import Fault, Repo
from tests.postgres import Postgres, postgres
from tests.serving import Service, events, problem, running

__all__ = ["postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
GGUF = {"a-Q4.gguf": b"GGUF"}
WORDS = ("--no-validate", "--imports", "4")


def repos(number: int) -> dict[str, Repo]:
    found = {f"org/m{i:03}": Repo({**CHAT, "README.md": f"# {i}"}) for i in range(number)}
    return found | {
        "org/base": Repo(BASE), "org/gguf": Repo(GGUF), "org/locked": Repo(CHAT, gated=True),
        "org/hostile": Repo({"config.json": "[", "model.safetensors": b"\0"}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service"), *WORDS, **repos(4)) as one:
        yield one


def ask(service: Service, **said: Any) -> Any:
    body = {"organisation": "org", "backend": "vllm", **said}
    return service.client.post("/v1/imports", json=body)


def summary(service: Service, job: str) -> dict[str, Any]:
    answer = service.client.get(f"/v1/imports/{job}/summary")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_organisation_is_one_job_with_a_summary(service: Service) -> None:
    answer = ask(service)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert (job["kind"], answer.headers["Location"]) == ("imports", f"/v1/jobs/{job['id']}")
    done = service.ended(job["id"])
    assert done["state"] == "failed", "one of its repositories is broken"
    assert done["counts"] == {"succeeded": 7, "failed": 1}
    found = summary(service, job["id"])
    assert (found["listed"], found["imported"], found["waiting"]) == (8, 5, 0)
    assert found["skipped"] == {"gguf-only": 1, "gated": 1}
    assert found["failed"] == {"broken-json": 1}
    assert found["backend"] == {"vllm": 5}
    assert found["examples"]["broken-json"] == ["org/hostile"]
    assert done["links"]["summary"]["href"] == f"/v1/imports/{job['id']}/summary"
    names = {c["name"] for c in service.client.get("/v1/configs?limit=200").json()["items"]}
    assert {"m000", "m001", "m002", "m003", "base"} <= names


def test_progress_says_how_many_the_rate_and_what_binds(service: Service) -> None:
    job = ask(service, filter={"name": "m00*"}, limit=3).json()
    assert service.ended(job["id"])["state"] == "succeeded"
    with service.client.stream(
        "GET", f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": "0"}
    ) as stream:
        seen = [e["data"] for e in events(stream) if e["event"] == "progress" and "rate" in e["data"]]
    assert (seen[-1]["done"], seen[-1]["total"]) == (3, 3)
    assert seen[-1]["binds"] in ("workers", "hub-limit")
    assert seen[-1]["rate"] > 0


def test_the_same_request_with_a_key_is_one_job(service: Service) -> None:
    body = {"organisation": "org", "backend": "vllm", "limit": 1}
    first, again = (
        service.client.post("/v1/imports", json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)
    )
    assert first.json()["id"] == again.json()["id"]
    service.ended(first.json()["id"])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"filter": {"colour": "red"}}, "bad-value"), ({"filter": {"downloads": "many"}}, "bad-value"),
        ({"filter": {"downloads": 100, "colour": 1}}, "bad-value"), ({"organisation": "a/b"}, "bad-value"),
        ({"limit": 0}, "bad-request"), ({"reference": "acme/base"}, "bad-request"),
        ({"name": "x"}, "bad-request"), ({"revision": "main"}, "bad-request"),
        ({"backend": "none"}, "bad-value"),
    ],
)  # fmt: skip
def test_bad_requests_make_no_job(service: Service, said: dict[str, Any], kind: str) -> None:
    before = service.client.get("/v1/jobs").json()["total"]
    problem(ask(service, **said), 422, kind)
    assert service.client.get("/v1/jobs").json()["total"] == before


def test_a_summary_is_of_an_organisation_alone(service: Service) -> None:
    problem(service.client.get("/v1/imports/none/summary"), 404, "no-such-job")
    job = service.client.post("/v1/imports", json={"references": ["acme/base"], "backend": "vllm"}).json()
    service.ended(job["id"])
    problem(service.client.get(f"/v1/imports/{job['id']}/summary"), 404, "no-such-job")


def test_a_broken_list_fails_the_whole(service: Service) -> None:
    service.hub.faults.append(Fault("/api/models", 404, times=99))
    job = ask(service, organisation="nobody").json()["id"]
    assert service.ended(job)["state"] == "failed"
    listing = service.client.get(f"/v1/jobs?parent={job}").json()["items"][0]
    assert (listing["kind"], listing["error"]["kind"]) == ("listing", "server")
    service.hub.faults.clear()
    assert service.client.post(f"/v1/jobs/{job}/retry").status_code == 202
    assert service.ended(job)["state"] == "succeeded"
    assert summary(service, job)["listed"] == 0


def test_a_cancel_ends_the_listing_and_all_imports(service: Service) -> None:
    service.hub.repos |= {f"held/h{n}": Repo(CHAT) for n in range(4)}  # new ones: each has to be asked for
    service.hub.quotas = {"api": (2, 600.0)}
    try:
        job = ask(service, organisation="held").json()
        service.wait(lambda: service.client.get(f"/v1/jobs/{job['id']}").json()["counts"])
        answer = service.client.post(f"/v1/jobs/{job['id']}/cancel")
        assert answer.status_code == 200, answer.text
        assert service.ended(job["id"])["state"] == "cancelled"
        assert summary(service, job["id"])["waiting"] == 0
    finally:
        service.hub.quotas = {}


def check(service: Service, job: str, number: int) -> None:
    done = service.ended(job)
    assert done["counts"] == {"succeeded": number + 3, "failed": 1}
    found = summary(service, job)
    assert found["imported"] == number + 1
    for name in (f"m{i:03}" for i in range(number)):
        assert service.config(name)["version"] == 1, "it was written once"
    asked = [p.partition("?")[0] for p in service.hub.paths()]
    assert asked.count("/api/models") == 1


def test_killed_twice_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, **repos(12)) as service:
        _killed(service)


@pytest.mark.nightly
def test_killed_twice_on_postgresql_with_a_worker_more(tmp_path: Path, postgres: Postgres) -> None:
    with running(tmp_path, *WORDS, database=postgres.fresh(), **repos(12)) as service:
        service.start("--no-validate", "--imports", "4", command="worker")
        _killed(service)


def _killed(service: Service) -> None:
    """Kill all processes twice while an organisation is imported; a server is started anew each time."""
    service.hub.latency = 0.05
    job = ask(service).json()["id"]
    for part in (6, 18):
        service.wait(lambda part=part: len(service.hub.log) >= part)
        for process in [p for p in service.processes if p.poll() is None]:
            service.kill(process)
        service.start(*WORDS)
    check(service, job, 12)
