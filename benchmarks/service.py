"""The gallery service under load: pages of 10,000 documents, the index, imports at once, watchers."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import insert, select

from benchmarks.load import Answer, Client, percentile, read_head
from benchmarks.row import Row
from importer.exports import localai_gallery
from importer.storage import releases, tables
from importer.storage.database import Database
from importer.storage.document_rows import changed, rendered
from importer.storage.releases import Served
from tests.hubserver import HubServer, Repo
from tests.serving import Service
from tests.template_texts import CHATML_JSON

ENTRIES = 10_000
RATE, SECONDS = 100.0, 15.0
PAGE_BUDGET, INDEX_BUDGET = 0.050, 0.500
IMPORTS, WATCHERS = 200, 50
INDEX = "/gallery/index.yaml"
WORDS = ("--rate", "0", "--reads", "0", "--log-level", "warning")
MODEL: dict[str, Any] = {
    "config.json": {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 4096,
        "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 1000,
    },
    "generation_config.json": {"temperature": 0.6, "top_p": 0.95, "top_k": 20},
    "chat_template.jinja": CHATML_JSON,
    "tokenizer_config.json": {"eos_token": "<|im_end|>"},
}  # fmt: skip


def rows() -> Iterable[Row]:
    """Pages first, while nothing else goes on; then what changes the gallery."""
    repos = {f"org/model-{number}": Repo(MODEL) for number in range(IMPORTS + 1)}
    with (
        tempfile.TemporaryDirectory() as folder,
        HubServer(repos) as hub,
        running(Path(folder), hub) as service,
    ):
        yield from asyncio.run(_pages(service))
        yield from asyncio.run(_imports(service))


@contextmanager
def running(folder: Path, hub: HubServer) -> Iterator[Service]:
    service = Service(folder, hub)
    try:
        service.start(*WORDS)
        done = service.imported(f"org/model-{IMPORTS}", name="model")
        if done["state"] != "succeeded":
            raise SystemExit(f"the import failed: {done['error']}")
        fill(service, [name(number) for number in range(ENTRIES)])
        yield service
    finally:
        service.close()


def fill(service: Service, names: Sequence[str]) -> None:
    """Documents as the imported one is, published."""
    database = Database(service.env["IMPORTER_SERVE_DATABASE"])
    configs, versions = tables.configs, tables.versions
    with database.writing() as connection:
        row = dict(connection.execute(select(configs).where(configs.c.name == "model")).mappings().one())
        version = dict(
            connection.execute(select(versions).where(versions.c.name == "model")).mappings().one()
        )
        state = {
            "state": "published",
            "review": "approved",
            "validation": "passed",
            "reason": None,
            "release": 1,
        }
        filled = [row | state | {"name": n, "model": f"org/{n}", "search": f"{n}\norg/{n}"} for n in names]
        connection.execute(insert(configs), [one | {"row": rendered(one)} for one in filled])
        connection.execute(insert(versions), [version | {"name": n, "state": "published"} for n in names])
        data = json.loads(version["data"])
        for each in names:
            made = localai_gallery.entry(data | {"name": each}, None)
            if not isinstance(made, localai_gallery.GalleryEntry):
                raise SystemExit(f"LocalAI cannot be given it: {made.reason}")
            pointer = Served(1, row["digest"], "ann", row["updated_at"])
            releases.serve(connection, each, pointer, made)
        changed(connection)
    database.close()


def name(number: int) -> str:
    return f"m{number * 7919 % ENTRIES:05}-8b-instruct"


async def _pages(service: Service) -> list[Row]:
    client, chosen = Client("127.0.0.1", service.port), random.Random(1)
    pick = [name(chosen.randrange(ENTRIES)) for _ in range(int(RATE * SECONDS))]
    paths: dict[str, Callable[[int], str]] = {
        "nothing at all (/healthz)": lambda _: "/healthz",
        "an entry": lambda n: f"/v1/configs/{pick[n]}",
        "a list page of 50": lambda n: f"/v1/configs?limit=50&cursor=name~~{pick[n]}",
        "a list page of 50, by state and part of a name": lambda n: (
            f"/v1/configs?limit=50&state=published&q={quote(pick[n][:3])}"
        ),
    }
    found = []
    for what, path in paths.items():
        for number in range(20):  # connections and caches are there
            await client.ask("GET", path(number))
        used = processor(service)
        answers = await client.steady(RATE, SECONDS, path)
        spent = (processor(service) - used) / len(answers)
        found += measured(f"{what}, {RATE:.0f}/s", answers, 200, PAGE_BUDGET)
        found.append(Row(f"{what}: processor time for each", ms(spent), ""))
    found += await _index(client)
    client.close()
    return found


async def _index(client: Client) -> list[Row]:
    """The whole index and the answer to who has it; the first one renders it, if it was not."""
    first = await client.ask("GET", INDEX)
    if first.status != 200:
        return [Row(f"index: answered with {first.status}", "", "", met=False)]
    whole = [await client.ask("GET", INDEX) for _ in range(10)]
    seen = {"If-None-Match": first.headers["etag"]}
    again = await client.steady(RATE, SECONDS, lambda _: INDEX, seen)
    slowest = max(answer.seconds for answer in whole)
    size = f"{len(first.body) / 1e6:.1f} MB"
    return [
        _row(f"index, whole ({size}), the first after a change", first.seconds, INDEX_BUDGET),
        _row(f"index, whole ({size}), slowest of 10", slowest, INDEX_BUDGET),
        *measured(f"index, 304, {RATE:.0f}/s", again, 304, PAGE_BUDGET),
    ]


def measured(what: str, answers: list[Answer], status: int, budget: float) -> list[Row]:
    seconds = [answer.seconds for answer in answers]
    wrong = sum(answer.status != status for answer in answers)
    rows = [
        Row(f"{what}: median", ms(percentile(seconds, 0.5)), ""),
        _row(f"{what}: p99", percentile(seconds, 0.99), budget),
    ]
    return [*rows, Row(f"{what}: other answers", str(wrong), "0", met=False)] if wrong else rows


@dataclass
class Watcher:
    """What one stream of events showed, and when."""

    numbers: list[int]
    times: list[float]


async def _imports(service: Service) -> list[Row]:
    """200 at once, each a request of its own, and a list that 50 watch."""
    client, before = Client("127.0.0.1", service.port), memory(service)
    service.hub.log.clear()
    begun = time.perf_counter()
    bodies = [
        json.dumps({"reference": f"org/model-{n}", "name": f"new-{n}", "backend": "vllm"}).encode()
        for n in range(IMPORTS)
    ]
    kind = {"Content-Type": "application/json"}
    answers = await asyncio.gather(*(client.ask("POST", "/v1/imports", kind, body) for body in bodies))
    asked = [json.loads(answer.body) for answer in answers if answer.status == 202]
    accepted = time.perf_counter() - begun
    half = await ended(client, asked[: IMPORTS // 2])
    middle = memory(service)
    finished = half + await ended(client, asked[IMPORTS // 2 :])
    seconds = time.perf_counter() - begun
    after = memory(service)
    kept = sum(job["state"] == "succeeded" for job in finished)
    documents = json.loads((await client.ask("GET", "/v1/configs?limit=500&q=new-")).body)
    resident = " ".join(f"{size:.0f}" for size in (before, middle, after))
    found = [
        Row(f"{IMPORTS} imports at once: accepted", f"{accepted:.2f} s", ""),
        Row(f"{IMPORTS} imports at once: succeeded, documents", f"{kept}, {documents['total']}",
            f"{IMPORTS}, {IMPORTS}", kept == documents["total"] == IMPORTS),
        Row(f"{IMPORTS} imports at once: begun out of turn by at most", str(_unfair(asked, service.hub)), ""),
        Row(f"{IMPORTS} imports at once: for each", ms(seconds / IMPORTS), ""),
        Row("resident memory before, after 100, after 200", f"{resident} MiB", ""),
        Row("memory after 200 to that after 100", f"{after / middle:.2f} x", "1.10 x", after / middle <= 1.1),
        *await _watched(client),
    ]  # fmt: skip
    client.close()
    return found


async def ended(client: Client, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The jobs as they ended."""
    found = []
    for job in asked:
        while (now := json.loads((await client.ask("GET", f"/v1/jobs/{job['id']}")).body))["state"] in (
            "queued", "running",
        ):  # fmt: skip
            await asyncio.sleep(0.2)
        found.append(now)
    return found


def _unfair(asked: list[dict[str, Any]], hub: HubServer) -> int:
    """By how many places an import was looked at before or after its turn: jobs' ids are their order."""
    turn = [job["request"]["reference"] for job in sorted(asked, key=lambda job: job["id"])]
    seen = dict.fromkeys(
        "/".join(entry.path.split("/")[3:5])
        for entry in sorted(hub.log, key=lambda entry: entry.start)
        if entry.path.startswith("/api/models/")
    )
    place = {reference.partition("?")[0]: number for number, reference in enumerate(seen)}
    return max(abs(place[reference] - number) for number, reference in enumerate(turn))


async def _watched(client: Client) -> list[Row]:
    """A list of 40 imports that 50 watch: whether all see all, and how far apart."""
    body = {"references": [f"org/model-{n}" for n in range(40)], "backend": "vllm", "note": "watched"}
    kind = {"Content-Type": "application/json"}
    job = json.loads((await client.ask("POST", "/v1/imports", kind, json.dumps(body).encode())).body)
    watchers = await asyncio.gather(
        *(_watch(client, job["links"]["events"]["href"]) for _ in range(WATCHERS))
    )
    same = sum(watcher.numbers == watchers[0].numbers for watcher in watchers)
    numbers = watchers[0].numbers
    whole = same if numbers == list(range(1, len(numbers) + 1)) else 0
    apart = [max(times) - min(times) for times in zip(*(w.times for w in watchers), strict=False)]
    return [
        Row(f"{WATCHERS} watchers: saw all {len(numbers)} events in order", f"{whole}", f"{WATCHERS}",
            whole == WATCHERS),
        Row(f"{WATCHERS} watchers: first to last, p99", ms(percentile(apart[1:], 0.99)), ""),
    ]  # fmt: skip


async def _watch(client: Client, path: str) -> Watcher:
    reader, writer = await client.connect()
    writer.write(client.head("GET", path, {"Accept": "text/event-stream"}))
    await read_head(reader)
    found = Watcher([], [])
    while line := await reader.readline():
        if line.startswith(b"id: "):
            found.numbers.append(int(line[4:]))
            found.times.append(time.perf_counter())
        if line == b"0\r\n":  # the last chunk
            break
    writer.close()
    return found


def processor(service: Service) -> float:
    """Seconds that the server has used of all cores."""
    if sys.platform != "linux":
        return float("nan")
    told = Path(f"/proc/{service.processes[0].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def memory(service: Service) -> float:
    """Resident memory of the server in MiB."""
    pid = service.processes[0].pid
    if sys.platform != "linux":
        return float("nan")
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _row(what: str, seconds: float, budget: float) -> Row:
    return Row(what, ms(seconds), f"{budget * 1000:.0f} ms", seconds <= budget)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
