"""Requests for validations; an equal one is made once."""

from __future__ import annotations

from sqlalchemy import Connection

from importer.app.validate import check_engine
from importer.document.receipt import Receipt
from importer.engines import get
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.memory.plan_settings import gib
from importer.service.domain.gallery import Gallery
from importer.service.domain.grants import need_approval
from importer.storage import jobs, processes
from importer.storage.jobs import Job

FULL = (
    "no worker with {engine} has the {memory} that it needs on one device; it waits for one that does: "
    "start a worker on a larger device"
)
NOBODY = (
    "no worker has {engine} and the memory; it waits for one that does: install {known} on the server or "
    "on a worker, then start that again"
)


@frozen
class ValidationOrder:
    """A validation that may be queued: the digest of the data, the engine, and the bytes on its device."""

    name: str
    digest: str
    engine: str
    known: str
    memory: int | None
    fetch: bool
    thorough: bool = False
    measure: bool = False

    @property
    def request(self) -> dict[str, object]:
        """Return the request of its job."""
        asked = {"config": self.name, "engine": self.engine, "fetch": self.fetch, "digest": self.digest}
        asked |= {"thorough": True} if self.thorough else {}
        return asked | ({"measure": True} if self.measure else {})


def order(
    gallery: Gallery,
    name: str,
    engine: str | None,
    *,
    fetch: bool,
    thorough: bool = False,
    measure: bool = False,
) -> ValidationOrder:
    """Return the order for a document as it is now; ``None`` takes its own engine.

    Raises DocumentError: "other-backend" and others; EngineError: "unknown-engine", "not-measured";
    ServiceError("code-not-approved").
    """
    with gallery.checkout() as folder:
        stored = folder.load(name)
        stored.check()
        need_approval(stored)
        chosen = engine or stored.backend
        known, memory = get(chosen).name, _memory(stored.need_receipt())
        try:
            check_engine(stored, chosen)
        except DocumentError as error:
            raise error.but(errors=[{"pointer": "/engine", "detail": error.message}]) from None
        return ValidationOrder(name, stored.digest, chosen, known, memory, fetch, thorough, measure)


def equal(connection: Connection, wanted: ValidationOrder) -> Job | None:
    """Return the job that waits or runs with the same digest, engine and weights, if there is one.

    The device is chosen by the claim, so that an open job stands for each device that could run it.
    """
    found = jobs.open_of(connection, "validation", wanted.name)
    return next((job for job in found if {**job.request} == wanted.request), None)


def ask(connection: Connection, wanted: ValidationOrder, by: str) -> tuple[Job, bool]:
    """Return the job of an equal validation, else a new one, and whether it is new."""
    present = equal(connection, wanted)
    if present is not None:
        return present, False
    present_ones = processes.all_executors(connection)
    able = any(one.can(wanted.engine, wanted.memory) for one in present_ones)
    known = any(wanted.engine in one.engines for one in present_ones)
    told = NOBODY.format(engine=wanted.engine, known=wanted.known)
    if known and wanted.memory is not None:
        told = FULL.format(engine=wanted.engine, memory=gib(wanted.memory))
    text = None if able else told
    job = jobs.create(
        connection, "validation", wanted.request, by, config=wanted.name, engine=wanted.engine,
        memory=wanted.memory, text=text,
    )  # fmt: skip
    return job, True


def _memory(receipt: Receipt) -> int | None:
    """Return the likely bytes of the model on each device, where they were estimated."""
    try:
        return int(((receipt.fit or {})["estimate"])["total"]["likely"])
    except (KeyError, TypeError, ValueError):
        return None
