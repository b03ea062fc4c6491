"""The duties of a process beside its jobs: the schedule of rechecks, and deliveries of webhooks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from importer.errors import ServiceError
from importer.service.domain import upkeep
from importer.service.domain.webhooks import Sender
from importer.service.settings import Settings
from importer.storage import documents, jobs, processes
from importer.storage.actors import SCHEDULER
from importer.storage.database import Database, driver_message
from importer.storage.documents import Filters

LOG = logging.getLogger(__name__)
POLL = 2.0  # seconds between two looks for deliveries, where the last one found none
LOOK = 10.0  # seconds between two looks at the schedule
HOUR = 3600


class Duties:
    """One thread of a process. A context manager: a duty that was cut off is done by another process.

    ``hurry``  starts jobs at once.
    """

    def __init__(self, database: Database, settings: Settings, hurry: Callable[[], object]) -> None:
        self._database, self._hurry = database, hurry
        self._every = settings.recheck_every * HOUR
        self._sender = Sender(database, private=settings.webhook_private)
        self._ending, self._next_look = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._run, name="duties", daemon=True)

    def __enter__(self) -> Duties:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._sender.close()
        self._thread.join(1.0)  # a delivery under way is not waited for

    def _run(self) -> None:
        more = False
        while not self._ending.wait(0 if more else POLL):
            more = False
            for duty in (self._schedule, self._sender.run):
                try:
                    more = duty()
                except OperationalError as error:  # the next look tries again
                    LOG.warning("the database does not answer: %s", driver_message(error))
                except Exception:
                    if not self._ending.is_set():
                        LOG.exception("%s", duty.__qualname__)

    def _schedule(self) -> bool:
        if self._every and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK
            if begin_due(self._database, self._every):
                self._hurry()
        return False


def begin_due(database: Database, every: int) -> bool:
    """Begin the recheck of all documents if it is due; true in one of all processes that look.

    A recheck of the schedule that has not ended is not begun twice. ``every`` is in seconds.
    """
    with database.reading() as connection:
        if not processes.due(connection, upkeep.SCHEDULE, every):
            return False
    with database.writing() as connection:
        database.alone(connection)
        if not processes.take(connection, upkeep.SCHEDULE, every):
            return False
        last = processes.last(connection, upkeep.SCHEDULE)
        names = documents.names(connection, Filters())
        if not names or (last is not None and last["job"] and _is_open(connection, str(last["job"]))):
            return False
        job = upkeep.ask(connection, names, {}, SCHEDULER)
        processes.began(connection, upkeep.SCHEDULE, job.id)
    return True


def _is_open(connection: Connection, ident: str) -> bool:
    try:
        return jobs.get(connection, ident).state in jobs.OPEN
    except ServiceError:  # a retention has deleted it
        return False
