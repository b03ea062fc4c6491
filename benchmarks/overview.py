"""The overview of 10,000 documents of many kinds: pages by each sort, and facets, as queries of a file."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from benchmarks.row import Row
from importer.storage import document_rows, documents, tables
from importer.storage.database import Database
from importer.storage.documents import Filters, Room
from importer.storage.schema import prepare

ENTRIES, TIMES, PAGE = 10_000, 60, 50
PAGE_BUDGET, FACETS_BUDGET = 0.050, 0.150
GB = 10**9
ROOM = Room(78 * GB, ("vllm", "sglang"))
SORTS = ("name", "-updated_at", "-attention", "state", "-weights", "memory", "-context")
CHOSEN = (
    Filters(), Filters(q="reads m0"), Filters(state=("draft",)), Filters(attention=("any",)),
    Filters(state=("draft",), tool_parser=("hermes", "none"), modality=("image",)), Filters(room=ROOM),
)  # fmt: skip


def rows() -> Iterable[Row]:
    """Return median and 99th percentile of each query; the service caches none of them here."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'gallery.sqlite'}")
        prepare(database)
        chosen = random.Random(1)
        with database.writing() as connection:
            connection.execute(insert(tables.configs), [document(n, chosen) for n in range(ENTRIES)])
        for sort in SORTS:
            yield _row(database, f"a page of {PAGE} of {ENTRIES:,}, by {sort}", PAGE_BUDGET, _page(sort))
        yield _row(database, f"facets of {ENTRIES:,}", FACETS_BUDGET, _facets)
        database.close()


def _page(sort: str) -> Callable[[Connection, Filters], object]:
    return lambda connection, filters: documents.page(connection, filters, PAGE + 1, (), sort)


def _facets(connection: Connection, filters: Filters) -> object:
    return documents.facets(connection, filters, ROOM)


def _row(database: Database, what: str, budget: float, query: Callable[[Connection, Filters], object]) -> Row:
    taken: list[float] = []
    for number in range(TIMES):
        begun = time.perf_counter()
        with database.reading() as connection:
            query(connection, CHOSEN[number % len(CHOSEN)])
        taken.append(time.perf_counter() - begun)
    taken.sort()
    most = taken[min(len(taken) - 1, int(len(taken) * 0.99))]
    figures = f"{taken[len(taken) // 2] * 1000:.0f}, {most * 1000:.0f} ms"
    return Row(f"{what}: median, p99", figures, f"{budget * 1000:.0f} ms", most <= budget)


def document(number: int, chosen: random.Random) -> dict[str, Any]:
    """Return the row of a document with facts drawn at random."""
    name, weights = f"m{number:05}-8b", chosen.choice([None, *(GB * n for n in range(1, 200))])
    kinds = document_rows.words({kind for kind in document_rows.KINDS if chosen.random() < 0.06})
    words: Sequence[str] = ("reads", "writes", "sees", "hears", "codes")
    made = {
        "description": f"A model that {' '.join(chosen.choice(words) for _ in range(40))}.",
        "tags": document_rows.words({chosen.choice("abcdef") * 4}),
        "license": chosen.choice(["mit", "apache-2.0", None]),
    }
    model = f"org{number % 97}/{name}"
    parameters = None if weights is None else weights // 2
    return made | {
        "name": name, "version": 1, "digest": f"sha256:{'0' * 64}", "model": model, "revision": "0" * 40,
        "backend": chosen.choice(["vllm", "mlx", "sglang"]), "family": f"family-{chosen.randrange(40)}",
        "kind": "chat", "state": chosen.choice(["draft", "approved", "published", "stale", "ready"]),
        "review": "draft", "validation": chosen.choice(["never", "passed", "failed"]),
        "reason": "nobody has approved it as it is now",
        "search": document_rows.search(name, model, "family", made),
        "created_at": "2026-11-01T00:00:00+00:00", "updated_at": f"2026-11-01T{number % 24:02}:00:00+00:00",
        "quantization": chosen.choice([None, "fp8-block", "w4a16", "nvfp4"]),
        "modalities": document_rows.words({"text", *(["image"] if chosen.random() < 0.2 else [])}),
        "tool_parser": chosen.choice([None, "hermes", "llama3_json", "qwen3_coder"]),
        "reasoning_parser": chosen.choice([None, "qwen3"]), "context": chosen.choice([4096, 32768, 131072]),
        "parameters": parameters, "size": document_rows.size_of(parameters), "weights": weights,
        "memory": None if weights is None else weights + GB, "device": "h100-80g", "devices": 1,
        "whole_bytes": None if weights is None else weights + 2 * GB,
        "part_bytes": None if weights is None else weights + GB,
        "links": "{}", "row": "{}", "shown": "{}", "shown_by": "",
        "attention": kinds, "urgency": document_rows.urgency(kinds),
    }  # fmt: skip
