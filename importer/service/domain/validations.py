"""Requests for validations, an equal one made once, and the pools where they may run."""

from __future__ import annotations

from sqlalchemy import Connection

from importer.app.measure import needs_device
from importer.document.receipt import Receipt
from importer.engines import get
from importer.errors import ServiceError
from importer.frozen import frozen
from importer.service.domain.gallery import Gallery
from importer.service.domain.grants import Caller, need_approval
from importer.service.pool_setting import Pool, read_pool_setting
from importer.service.settings import Settings
from importer.storage import jobs, processes
from importer.storage.jobs import Job

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
    on: str | None = None  # the pool
    measure: bool = False

    @property
    def request(self) -> dict[str, object]:
        """Return the request of its job."""
        asked = {"config": self.name, "engine": self.engine, "fetch": self.fetch, "digest": self.digest}
        asked |= {"thorough": True} if self.thorough else {}
        asked |= {"measure": True} if self.measure else {}
        return asked | ({} if self.on is None else {"on": self.on})


def order(
    gallery: Gallery,
    name: str,
    engine: str | None,
    *,
    fetch: bool,
    thorough: bool = False,
    on: str | None = None,
    measure: bool = False,
) -> ValidationOrder:
    """Return the order for a document as it is now; ``None`` takes its own engine.

    Raises DocumentError, EngineError: "unknown-engine", "not-measured"; ServiceError("code-not-approved").
    """
    with gallery.checkout() as folder:
        stored = folder.load(name)
        stored.check()
        need_approval(stored)
        if measure and on is not None:
            needs_device(stored)
        chosen = engine or stored.backend
        memory = _memory(stored.need_receipt())
        return ValidationOrder(
            name, stored.digest, chosen, get(chosen).name, memory, fetch, thorough, on, measure
        )


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
    able = wanted.on is not None or any(one.can(wanted.engine, wanted.memory) for one in present_ones)
    text = None if able else NOBODY.format(engine=wanted.engine, known=wanted.known)
    job = jobs.create(
        connection, "validation", wanted.request, by, config=wanted.name, engine=wanted.engine,
        memory=wanted.memory, text=text,
        pool=wanted.on,
    )  # fmt: skip
    return job, True


def _memory(receipt: Receipt) -> int | None:
    """Return the likely bytes of the model on each device, where they were estimated."""
    try:
        return int(((receipt.fit or {})["estimate"])["total"]["likely"])
    except (KeyError, TypeError, ValueError):
        return None


def pool(settings: Settings, name: str) -> Pool:
    """Return the pool of a name; raises ServiceError("unknown-pool")."""
    known = read_pool_setting(settings.pool)
    if name not in known:
        raise ServiceError("unknown-pool", name=name[:100], known=", ".join(known) or "none")
    return known[name]


def usable(settings: Settings, name: str, who: Caller) -> str:
    """Return the name of a pool that a caller may use; raises ServiceError: "unknown-pool", "wrong-scope"."""
    found = pool(settings, name)
    who.needs(found.scope)
    return found.name
