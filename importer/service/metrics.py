"""Figures for Prometheus, in a registry of this application; few labels, none of them a caller's words."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy import Connection, func, select
from starlette.types import Scope

from importer import __version__
from importer.gallery import executors, tables
from importer.gallery.database import Database

MEDIA_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Metrics:
    """What this process counts; what the database knows is asked when somebody looks."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "importer_requests_total", "Requests answered.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "importer_request_seconds", "Time to the end of an answer, streams left out.", labels,
            buckets=SECONDS, registry=self._registry,
        )  # fmt: skip

    def answered(self, scope: Scope, status: int, seconds: float, *, streamed: bool) -> None:
        """One request, under its route's template: a name in an address is no label."""
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        if not streamed:
            self._seconds.labels(method, route).observe(seconds)

    def text(self, database: Database) -> bytes:
        """Everything, as Prometheus reads it."""
        with database.reading() as connection:
            found = [*_gallery(connection)]
        shown = CollectorRegistry()
        shown.register(_Given(found))
        return generate_latest(self._registry) + generate_latest(shown)


class _Given(Collector):
    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """What was found."""
        yield from self._found


def _gallery(connection: Connection) -> Iterator[Metric]:
    build = GaugeMetricFamily("importer_build_info", "The importer's version.", labels=["version"])
    build.add_metric([__version__], 1)
    yield build
    c, j = tables.configs.c, tables.jobs.c
    documents = select(c.state, func.count()).where(c.deleted_at.is_(None)).group_by(c.state)
    yield _counted(
        "importer_documents", "Documents by state.", ["state"], connection.execute(documents).all()
    )
    by_state = select(j.kind, j.state, func.count()).group_by(j.kind, j.state)
    yield _counted(
        "importer_jobs", "Jobs by kind and state.", ["kind", "state"], connection.execute(by_state).all()
    )
    oldest = connection.execute(
        select(func.min(j.created_at)).where(j.state == "queued", j.kind != "imports")
    ).scalar()
    waited = 0.0 if oldest is None else time.time() - datetime.fromisoformat(oldest).timestamp()
    yield GaugeMetricFamily(
        "importer_oldest_queued_seconds", "How long the oldest job in a queue has waited.", max(0.0, waited)
    )
    there = [one for one in executors.everyone(connection) if not executors.overdue(one)]
    yield GaugeMetricFamily("importer_processes", "Processes that run jobs.", len(there))


def _counted(name: str, says: str, labels: list[str], rows: Iterable[Iterable[object]]) -> Metric:
    family = GaugeMetricFamily(name, says, labels=labels)
    for *values, number in rows:
        family.add_metric([str(v) for v in values], float(str(number)))
    return family
