"""Resident memory of a server with 1,000 and with 10,000 published documents, and totals of their lists."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.load import Client
from benchmarks.row import Row
from benchmarks.service import INDEX, MODEL, PAGE_BUDGET, fill, measured, memory, name
from tests.hubserver import HubServer, Repo
from tests.serving import Service

SIZES = (1_000, 10_000)
LISTS = (
    "/v1/configs?sort=-updated_at", "/v1/configs?review=approved&validation=passed", "/v1/jobs",
    "/v1/configs?released=true",
)  # fmt: skip


def rows() -> Iterable[Row]:
    """Return the memory after the index and each list was read, for each number of documents."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder, HubServer({"org/model": Repo(MODEL)}) as hub:
            service = Service(Path(folder), hub)
            try:
                service.start("--rate", "0", "--reads", "0", "--log-level", "warning")
                service.imported("org/model", name="model")
                fill(service, [name(number) for number in range(size)])
                yield from asyncio.run(_measured(service, size))
            finally:
                service.close()


async def _measured(service: Service, size: int) -> list[Row]:
    client, found = Client("127.0.0.1", service.port), []
    for path in LISTS:
        answers = [await client.ask("GET", path) for _ in range(20)]
        found += measured(f"{size:,} documents, {path}", answers, 200, PAGE_BUDGET)
    for _ in range(3):
        await client.ask("GET", INDEX)
    found.append(Row(f"{size:,} documents: resident memory", f"{memory(service):.0f} MiB", ""))
    client.close()
    return found
