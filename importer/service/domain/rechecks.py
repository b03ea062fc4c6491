"""Rechecks of documents as jobs, and their schedule: the duty of a process beside its jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from importer.errors import ServiceError
from importer.service.settings import Settings
from importer.storage import documents, jobs, processes, rechecks
from importer.storage.actors import SCHEDULER
from importer.storage.database import Database, driver_message
from importer.storage.documents import Filters
from importer.storage.jobs import Job

SCHEDULE = "recheck"  # the name of the schedule
LOG = logging.getLogger(__name__)
LOOK = 10.0  # seconds between two looks at the schedule
HOUR = 3600


def ask(connection: Connection, names: Sequence[str], request: Mapping[str, object], by: str) -> Job:
    """Queue a recheck of documents; what it compares is chosen now."""
    job = jobs.create(connection, "recheck", {**request, "documents": len(names)}, by)
    rechecks.select_names(connection, job.id, names)
    return job


class Duties:
    """The schedule, as one thread of a process; a look that was cut off is made by another process.

    ``hurry``  starts jobs at once.
    """

    def __init__(self, database: Database, settings: Settings, hurry: Callable[[], object]) -> None:
        self._database, self._hurry = database, hurry
        self._every = settings.recheck_every * HOUR
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duties", daemon=True)

    def __enter__(self) -> Duties:
        if self._every:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._every:
            self._thread.join(1.0)

    def _run(self) -> None:
        while True:
            try:
                if begin_due(self._database, self._every):
                    self._hurry()
            except OperationalError as error:  # the next look tries again
                LOG.warning("the database does not answer: %s", driver_message(error))
            except Exception:
                if not self._ending.is_set():
                    LOG.exception("the schedule")
            if self._ending.wait(LOOK):
                return


def begin_due(database: Database, every: int) -> bool:
    """Begin the recheck of all documents if it is due; true in one of all processes that look.

    A recheck of the schedule that has not ended is not begun twice. ``every`` is in seconds.
    """
    with database.reading() as connection:
        if not processes.due(connection, SCHEDULE, every):
            return False
    with database.writing() as connection:
        database.alone(connection)
        if not processes.take(connection, SCHEDULE, every):
            return False
        last = processes.last(connection, SCHEDULE)
        names = documents.names(connection, Filters())
        if not names or (last is not None and last["job"] and _is_open(connection, str(last["job"]))):
            return False
        job = ask(connection, names, {}, SCHEDULER)
        processes.began(connection, SCHEDULE, job.id)
    return True


def _is_open(connection: Connection, ident: str) -> bool:
    try:
        return jobs.get(connection, ident).state in jobs.OPEN
    except ServiceError:  # a retention has deleted it
        return False
