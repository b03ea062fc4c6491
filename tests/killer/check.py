"""What must hold of a job after its processes were killed: it ended once, where it was, and left nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from importer.storage import jobs, tables
from tests.publishing import gallery_of
from tests.serving import Service

STEPS = {"import": ["resolve", "decide", "prove", "store"], "validation": ["weights", "run", "store"]}
TOKEN = "KILLER"
ENDS = ("succeeded", "failed", "cancelled")


def wrong(
    service: Service, job: dict[str, Any], *, kills: int = 1, state: str = "succeeded", attempt: int = 1
) -> list[str]:
    """What does not hold; nothing, where all is as it should be."""
    return [*_wrong(service, job, kills, state, attempt)]


def _wrong(service: Service, job: dict[str, Any], kills: int, state: str, attempt: int) -> Iterator[str]:
    if (job["state"], job["attempt"]) != (state, attempt + released(service, job)):
        yield f"{job['kind']} {job['state']} in attempt {job['attempt']}: {job['error']}"
        return
    if job["kind"] == "imports":
        found = service.client.get("/v1/jobs", params={"parent": job["id"], "limit": 200}).json()["items"]
        if len(found) != len(job["request"]["references"]):
            yield f"{len(found)} jobs of a list of {len(job['request']['references'])}"
        for one in found:
            yield from _wrong(service, one, kills, state, attempt)
    seen = story(service, job["id"])
    numbers = [e["number"] for e in seen]
    if job["parent"] is None and numbers != [*range(1, len(seen) + 1)]:
        yield f"events have the numbers {numbers}"
    mine = [e for e in seen if e["job"] == job["id"]]
    latest = mine[max((n for n, e in enumerate(mine) if e["type"] == "queued"), default=0) :]
    ends = [e["type"] for e in latest if e["type"] in ENDS]
    if ends != [state] or mine[-1]["type"] != state or [e["type"] for e in mine].count(state) != 1:
        yield f"it ended with {ends}"
    if state == "succeeded" and job["kind"] != "imports":
        yield from _steps(job["kind"], [e["data"]["step"] for e in latest if e["type"] == "step"], kills)
        yield from _document(service, job)
    yield from _queue(service, job)


def story(service: Service, job: str) -> list[dict[str, Any]]:
    """All events of a job until now, as they lie in the database."""
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        return jobs.events(connection, jobs.get(connection, job), 0, 100_000)


def released(service: Service, job: dict[str, Any]) -> int:
    """How often a job began from its start, since its device or its version was gone for too long."""
    said = [e["data"].get("says", "") for e in story(service, job["id"]) if e["type"] == "queued"]
    return sum(text.endswith(" is gone") for text in said)


def _steps(kind: str, steps: list[str], kills: int) -> Iterator[str]:
    """In order, none left out; only the one that was under way at a kill was begun again."""
    order = STEPS[kind]
    if [*dict.fromkeys(steps)] != order or steps != sorted(steps, key=order.index):
        yield f"its steps were {steps}"
    if len(steps) > len(order) + kills:
        yield f"{kills} kills, and steps begun again: {steps}"


def _document(service: Service, job: dict[str, Any]) -> Iterator[str]:
    """One version and one entry in the audit log for what it did."""
    name = job["result"]["name"]
    versions = service.client.get(f"/v1/configs/{name}/history").json()["versions"]
    action = "import" if job["kind"] == "import" else "validate"
    if job["kind"] == "import" and [v["action"] for v in versions].count(action) != 1:
        yield f"versions of {name}: {[v['action'] for v in versions]}"
    if job["result"]["version"] not in [v["version"] for v in versions if v["action"] == action]:
        yield f"{name} has no version {job['result']['version']}"
    entries = [e.action for e in service.audit() if e.request == job["id"]]
    if entries != [action]:
        yield f"the audit log has {entries}"


def _queue(service: Service, job: dict[str, Any]) -> Iterator[str]:
    """Nobody holds it, and no result of a step is left: nothing will begin it again."""
    steps = tables.steps.c
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        row = jobs.get(connection, job["id"])
        names = [*connection.execute(select(steps.name).where(steps.job == job["id"])).scalars()]
    if row.executor is not None or names:
        yield f"held by {row.executor}, with results of {names}"


def left(token: str, mine: set[int]) -> list[int]:
    """Processes that were started with this token in their environment and are none of ``mine``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        pid = int(entry.parent.name)
        if f"{TOKEN}={token}\0".encode() in words and pid not in mine and pid != os.getpid():
            found.append(pid)
    return found
