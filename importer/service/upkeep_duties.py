"""The duties of a process beside its jobs: the schedule of rechecks, and deliveries of webhooks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from importer.errors import ServiceError
from importer.service import upkeep
from importer.service.jobs.runner import Runner
from importer.service.settings import Settings
from importer.service.webhooks import Sender
from importer.storage import deleted, documents, findings, jobs, schedules, webhooks
from importer.storage.database import Database, driver_message
from importer.storage.documents import Filters

LOG = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks for deliveries
LOOK = 10.0  # seconds between two looks at the schedule
HOUR = 3600


class Duties:
    """One thread of a process. A context manager: a duty that was cut off is done by another process."""

    def __init__(self, database: Database, settings: Settings, runner: Runner) -> None:
        self._database, self._runner = database, runner
        self._every, self._settings = settings.recheck_every * HOUR, settings
        self._sender = Sender(database, private=settings.webhook_private)
        self._ending = threading.Event()
        self._next_look = self._next_expiry = 0.0
        self._thread = threading.Thread(target=self._run, name="duties", daemon=True)

    def __enter__(self) -> Duties:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._sender.close()
        self._thread.join(POLL)  # a delivery under way is not waited for

    def _run(self) -> None:
        while not self._ending.wait(POLL):
            for duty in (self._schedule, self._expire, self._sender.run):
                try:
                    duty()
                except OperationalError as error:  # the next look tries again
                    LOG.warning("the database does not answer: %s", driver_message(error))
                except Exception:
                    if not self._ending.is_set():
                        LOG.exception("%s", duty.__qualname__)

    def _schedule(self) -> None:
        if self._every and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK
            if begin_due(self._database, self._every):
                self._runner.hurry()

    def _expire(self) -> None:
        if time.monotonic() >= self._next_expiry:
            self._next_expiry = time.monotonic() + HOUR
            expire(self._database, self._settings)


def begin_due(database: Database, every: int) -> bool:
    """Begin the recheck of all documents if it is due; true in one of all processes that look.

    A recheck of the schedule that has not ended is not begun twice. ``every`` is in seconds.
    """
    with database.reading() as connection:
        if not schedules.due(connection, upkeep.SCHEDULE, every):
            return False
    with database.writing() as connection:
        database.alone(connection)
        if not schedules.take(connection, upkeep.SCHEDULE, every):
            return False
        last = schedules.last(connection, upkeep.SCHEDULE)
        names = documents.names(connection, Filters())
        if not names or (last is not None and last["job"] and _is_open(connection, str(last["job"]))):
            return False
        job = upkeep.ask(connection, names, {}, upkeep.SCHEDULER)
        schedules.began(connection, upkeep.SCHEDULE, job.id)
    return True


def expire(database: Database, settings: Settings) -> None:
    """Delete for good what was deleted or settled longer ago than the settings keep it."""
    kept: Mapping[Callable[[Connection, str], int], int] = {
        deleted.purge: settings.keep_deleted_days,
        findings.purge: settings.keep_findings_days,
        webhooks.purge: settings.keep_deliveries_days,
    }
    for purge, days in kept.items():
        if not days:
            continue
        before = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
        with database.writing() as connection:
            database.alone(connection)
            purge(connection, before)


def _is_open(connection: Connection, ident: str) -> bool:
    try:
        return jobs.get(connection, ident).state in jobs.OPEN
    except ServiceError:  # a retention has deleted it
        return False
