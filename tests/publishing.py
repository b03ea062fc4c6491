"""Documents that are published, without an engine: the receipts of a validation that nobody ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from importer import import_model
from importer.document.receipt import ReviewEntry
from importer.document.store import StoredDocument, load
from importer.reasons import Reason
from importer.service.domain.gallery import Gallery
from importer.service.domain.releases import release
from importer.storage import keys
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.schema import open_database
from importer.validation.outcome import Fail, ProbeRow, Stage, Tried, note
from tests.commandline import BASE
from tests.hubserver import HubServer, Repo, isolate
from tests.serving import Service


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredDocument]:
    """A document with its receipt, as the command line writes it."""
    folder = tmp_path_factory.mktemp("stored")
    with HubServer({"acme/base": Repo(BASE)}) as hub, pytest.MonkeyPatch.context() as patch:
        isolate(patch, folder, hub.url)
        yield load(import_model("acme/base", backend="vllm", folder=folder / "models").path)


def keys_by_scopes(folder: Path, *scopes: str) -> dict[str, str]:
    """Keys for the server of a folder, before it starts; ``import+approve`` has two scopes."""
    with (
        closing(open_database(f"sqlite:///{folder / 'gallery.sqlite'}")) as database,
        database.writing() as made,
    ):
        root = AuditContext("root", "create key")
        return {one: keys.create(made, one, one.split("+"), root) for one in scopes}


@contextmanager
def gallery_of(service: Service | Gallery) -> Iterator[Gallery]:
    """The service's own database, without a connection that stays open; a gallery is itself."""
    if isinstance(service, Gallery):
        yield service
        return
    with closing(Database(service.env["IMPORTER_SERVE_DATABASE"])) as database:
        yield Gallery(database)


def validated(service: Service | Gallery, name: str, failed: str = "", remedy: Reason | None = None) -> None:
    """As a worker would write it after a run in which everything passed, or one probe failed."""
    with gallery_of(service) as gallery, gallery.change(AuditContext("worker", "validate")) as change:
        stored = change.checkout.load(name)
        engine = {"name": stored.backend, "version": _version(stored)}
        row = ProbeRow("tool-call", "", Fail(note(failed), Stage.PARSED, remedy, tried=Tried(3, 3))).to_json()
        lost = [row | {"reason": failed}] if failed else []
        report = {"engine": engine, "passed": not failed, "outcomes": lost, "seconds": {}}
        change.checkout.amend(name, lambda receipt: receipt.with_validation(report, stored.digest))


def published(service: Service | Gallery, name: str) -> None:
    """Approved by somebody, validated and released."""
    validated(service, name)
    with gallery_of(service) as gallery, gallery.change(AuditContext("ann", "approve")) as change:
        stored = change.checkout.load(name)
        word = ReviewEntry("approved", "ann", "2026-01-01T00:00:00+00:00", None)
        change.checkout.amend(name, lambda receipt: receipt.with_review(word, stored.data))
        release(change, name)


def _version(stored: StoredDocument) -> Any:
    return stored.data["importer"]["engine"]["version"]
