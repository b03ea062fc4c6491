"""What an idle server and an idle worker cost: processor time of one core in a minute without a request."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.row import Row
from benchmarks.service import processor
from tests.hubserver import HubServer
from tests.serving import Service

SECONDS, SETTLED = 60.0, 10.0
BUDGET = 0.5  # percent of a core


def rows() -> Iterable[Row]:
    """Return the share of a server alone, and of a server beside a worker."""
    with tempfile.TemporaryDirectory() as folder, HubServer({}) as hub:
        service = Service(Path(folder), hub)
        try:
            service.start("--log-level", "warning")
            yield _row("an idle server", service)
            service.start("--log-level", "warning", command="worker")
            yield _row("an idle server beside an idle worker", service)
        finally:
            service.close()


def _row(what: str, service: Service) -> Row:
    time.sleep(SETTLED)
    used = processor(service)
    time.sleep(SECONDS)
    share = 100 * (processor(service) - used) / SECONDS
    return Row(
        f"{what}: of one core in {SECONDS:.0f} s", f"{share:.2f} %", f"{BUDGET:.2f} %", share <= BUDGET
    )
