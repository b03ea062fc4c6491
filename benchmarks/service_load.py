"""Requests at a steady rate while a list of 200 imports runs, and a single import that overtakes it."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.load import Client
from benchmarks.row import Row
from benchmarks.service import ENTRIES, IMPORTS, MODEL, RATE, ended, measured, name, running
from tests.hubserver import HubServer, Repo
from tests.serving import Service

SECONDS = 20.0
HEALTH_BUDGET, BESIDE_BUDGET = 0.050, 0.250
KIND = {"Content-Type": "application/json"}


def rows() -> Iterable[Row]:
    """Return what requests take beside imports, and the place of a single import among those of the list."""
    repos = {f"org/model-{number}": Repo(MODEL) for number in range(IMPORTS + 1)}
    with (
        tempfile.TemporaryDirectory() as folder,
        HubServer(repos) as hub,
        running(Path(folder), hub) as service,
    ):
        yield from asyncio.run(_beside(service))


async def _beside(service: Service) -> list[Row]:
    client, chosen = Client("127.0.0.1", service.port), random.Random(1)
    pick = [name(chosen.randrange(ENTRIES)) for _ in range(int(RATE * SECONDS))]
    body = {"references": [f"org/model-{n}" for n in range(IMPORTS)], "backend": "vllm"}
    begun = time.perf_counter()
    listed = json.loads((await client.ask("POST", "/v1/imports", KIND, json.dumps(body).encode())).body)
    paths = {"an entry": lambda n: f"/v1/configs/{pick[n]}", "/healthz": lambda _: "/healthz"}
    found = []
    for what, path in paths.items():
        answers = await client.steady(RATE, SECONDS / 2, path)
        budget = HEALTH_BUDGET if what == "/healthz" else BESIDE_BUDGET
        found += measured(f"{what}, {RATE:.0f}/s beside imports", answers, 200, budget)
    found.append(await _single(client, listed["id"]))
    [done] = await ended(client, [listed])
    seconds = time.perf_counter() - begun
    counts = done["counts"]
    found.append(Row(f"a list of {IMPORTS}: succeeded", str(counts.get("succeeded", 0)), str(IMPORTS),
                     counts == {"succeeded": IMPORTS}))  # fmt: skip
    found.append(
        Row(f"a list of {IMPORTS}: for each, requests beside", f"{seconds / IMPORTS * 1000:.0f} ms", "")
    )
    client.close()
    return found


async def _single(client: Client, listed: str) -> Row:
    """A single import behind the list: how many of the list's jobs ended before it did."""
    before = await _done(client, listed)
    body = {"reference": f"org/model-{IMPORTS}", "name": "single", "backend": "vllm"}
    job = json.loads((await client.ask("POST", "/v1/imports", KIND, json.dumps(body).encode())).body)
    await ended(client, [job])
    overtaken = await _done(client, listed) - before
    return Row("a single import behind a list: jobs of the list that ended before it", str(overtaken), "")


async def _done(client: Client, listed: str) -> int:
    counts = json.loads((await client.ask("GET", f"/v1/jobs/{listed}")).body)["counts"]
    return sum(number for state, number in counts.items() if state not in ("queued", "running"))
