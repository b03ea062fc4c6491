"""A gallery of the version before: its documents, release and waiting jobs, in the queue by turns."""

from __future__ import annotations

import pytest

from importer.service.gallery import Gallery
from importer.storage import jobs, migrations, releases, retention
from importer.storage.database import Database
from importer.storage.document_filters import Filters
from importer.storage.migrations import NUMBERED, migrate
from tests.postgres import postgres
from tests.service.test_jobs_store import OLD
from tests.service.test_releases_store import rows_of
from tests.storing import claim, empty, raw, worker

__all__ = ["empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
BEFORE = OLD.with_name("gallery_5_queue.sql")


def test_its_jobs_are_claimed_by_turns_and_its_documents_stay(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two documents, one with a release; a list of three waits, and behind it a single import."""
    monkeypatch.setattr(migrations, "NUMBERED", {n: NUMBERED[n] for n in NUMBERED if n <= 5})
    migrate(empty)
    for name, rows in rows_of(BEFORE).items():
        for row in rows:
            raw(empty, name, **{key: value for key, value in row.items() if (name, key) != ("audit", "id")})
    monkeypatch.setattr(migrations, "NUMBERED", NUMBERED)
    assert migrate(empty) == [n for n in NUMBERED if n > 5]
    gallery = Gallery(empty)
    found = {one.name: (one.state, one.release) for one in gallery.page(Filters(), 10)}
    assert found == {"m0": ("published", 1), "m1": ("draft", None)}
    assert all(gallery.get(name)[1].stored.need_receipt().evidence for name in found)
    one, order = worker(empty, "a"), []
    while (job := claim(empty, one, "import")) is not None:
        order.append(job.request["reference"])
        with empty.writing() as connection:
            assert jobs.end(connection, job, "succeeded", result={})
    assert order == ["acme/m5", "acme/m2", "acme/m3", "acme/m4"]
    with empty.writing() as connection:
        assert retention.due(connection)
    with empty.reading() as connection:
        assert releases.served(connection, "m0") is not None
