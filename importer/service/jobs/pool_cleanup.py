"""What jobs on pools leave at the far end, removed after each of them has ended, also after kills.

The end of such a job leaves a row in the same transaction. A run is ended by the process that followed it, so
that none is submitted behind it; where that process is gone, by any other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from importer import launchers
from importer.errors import ImporterError
from importer.launchers.base import RemoteRun
from importer.launchers.follow import end
from importer.service.domain.pools import pool
from importer.service.jobs.live_jobs import LiveJobs
from importer.service.settings import Settings
from importer.storage import executors, leftovers
from importer.storage.database import Database, driver_message
from importer.storage.executors import Executor
from importer.storage.leftovers import Remains

LOG = logging.getLogger(__name__)
LOOK, LATER = 2.0, 60.0  # seconds between two looks, and until a cluster that failed is asked again
GIVEN_UP = 86_400.0  # seconds after which a cluster is no longer asked


class PoolCleanup:
    """Removes what is left on the pools that this process knows."""

    def __init__(
        self, database: Database, settings: Settings, live: LiveJobs, me: Executor,
        exited: Callable[[Executor], bool],
    ) -> None:  # fmt: skip
        self._database, self._settings, self._live, self._me = database, settings, live, me
        self._exited, self._later = exited, dict[Remains, float]()

    def run(self, ending: threading.Event) -> None:
        """Look for what is left until the process ends."""
        while not ending.wait(LOOK):
            try:
                self.look()
            except SQLAlchemyError as error:  # the next look tries again
                LOG.warning("nothing was removed from pools: %s", driver_message(error))

    def look(self) -> None:
        """Remove what can be removed now."""
        with self._database.reading() as connection:
            found = leftovers.all_remains(connection)
            others = executors.all_executors(connection) if found else []
        alive = {one.id for one in others if one.id != self._me.id and not self._exited(one)}
        for one in found:
            if one.held in alive or (one.held == self._me.id and one.job in self._live.all()):
                continue
            if time.monotonic() >= self._later.get(one, 0.0):
                self._remove(one)

    def _remove(self, one: Remains) -> None:
        try:
            target = pool(self._settings, one.on).target
            end(launchers.get(target), RemoteRun.of(one.remote, target))
        except ImporterError as error:
            LOG.warning("the run %s is not removed: %s", one.remote, error.sentence())
            if time.time() - one.since < GIVEN_UP:
                self._later[one] = time.monotonic() + LATER
                return
        self._later.pop(one, None)
        with self._database.writing() as connection:
            leftovers.forget(connection, one)
