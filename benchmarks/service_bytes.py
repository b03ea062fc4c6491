"""Bytes in the database for each import, each import of a new commit, each approval and each validation."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.row import Row
from benchmarks.service import MODEL
from importer.service.domain.gallery import Gallery
from importer.storage.database import Database
from tests.hubserver import HubServer, Repo
from tests.publishing import validated
from tests.serving import Service

NUMBER = 20
IMPORT_BUDGET, APPROVAL_BUDGET = 41_000, 41_000  # bytes of an import before receipts were stored in pieces


def rows() -> Iterable[Row]:
    """Return the growth of all pages in use, the write-ahead log left out."""
    repos = {f"org/model-{number}": Repo(MODEL) for number in range(NUMBER + 1)}
    with tempfile.TemporaryDirectory() as folder, HubServer(repos) as hub:
        service = Service(Path(folder), hub)
        try:
            service.start("--rate", "0", "--log-level", "warning")
            service.imported(f"org/model-{NUMBER}", name="first")
            yield from _measured(service)
        finally:
            service.close()


def _measured(service: Service) -> Iterable[Row]:
    names = [f"model-{number}" for number in range(NUMBER)]
    gallery = Gallery(Database(service.env["IMPORTER_SERVE_DATABASE"]))
    works: dict[str, tuple[Callable[[str], Any], int | None]] = {
        "an import": (lambda name: service.imported(f"org/{name}", name=name), IMPORT_BUDGET),
        "an import without a change": (lambda name: service.imported(f"org/{name}", name=name), None),
        "an approval": (lambda name: service.approve(name).raise_for_status(), APPROVAL_BUDGET),
        "a validation": (lambda name: validated(service, name), None),
        "a release": (lambda name: _released(service, name), APPROVAL_BUDGET),
    }
    for what, (work, budget) in works.items():
        before = _used(gallery.database)
        for name in names:
            work(name)
        each = (_used(gallery.database) - before) / NUMBER
        met = budget is None or each <= budget
        yield Row(
            f"{what}: bytes in the database", f"{each:,.0f}", "" if budget is None else f"{budget:,}", met
        )
    gallery.database.close()


def _released(service: Service, name: str) -> None:
    service.approve(name, publish=True).raise_for_status()
    assert json.loads(service.client.get(f"/v1/configs/{name}").text)["release"]


def _used(database: Database) -> int:
    """Bytes of all pages but the free ones."""
    with database.reading() as connection:
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (int(connection.execute(text(f"PRAGMA {n}")).scalar_one()) for n in names)
    return (pages - free) * size
