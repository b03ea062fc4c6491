"""Documents that are published, without an engine: the receipts of a validation that nobody ran."""

from __future__ import annotations

from typing import Any

from importer.config_file.receipt import ReviewEntry
from importer.config_file.store import StoredDocument
from importer.service.gallery import Gallery
from importer.service.releases import promote
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.migrations import migrate
from tests.serving import Service


def gallery_of(service: Service) -> Gallery:
    """The service's own database."""
    database = Database(service.env["IMPORTER_SERVE_DATABASE"])
    migrate(database)
    return Gallery(database)


def validated(gallery: Gallery, name: str) -> None:
    """As a worker would write it after a run in which everything passed."""
    with gallery.change(AuditContext("worker", "validate")) as change:
        stored = change.checkout.load(name)
        engine = {"name": stored.backend, "version": _version(stored)}
        report = {"engine": engine, "passed": True, "outcomes": [], "seconds": {}}
        change.checkout.amend(name, lambda receipt: receipt.with_validation(report, stored.digest))


def published(gallery: Gallery, name: str) -> None:
    """Approved by somebody, validated and released."""
    validated(gallery, name)
    with gallery.change(AuditContext("ann", "approve")) as change:
        stored = change.checkout.load(name)
        word = ReviewEntry("approved", "ann", "2026-01-01T00:00:00+00:00", None)
        change.checkout.amend(name, lambda receipt: receipt.with_review(word, stored.data))
        promote(change, name, None)


def _version(stored: StoredDocument) -> Any:
    return stored.data["importer"]["engine"]["version"]
