"""The log, as text or JSON, and the metrics for Prometheus, with few labels and no text of callers."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy import Connection, func, select
from starlette.types import Scope

from importer import config
from importer.service.settings import Settings
from importer.storage import processes, tables
from importer.storage.database import Database
from importer.version import __version__

QUIET = ("httpx", "httpx2", "httpcore", "httpcore2", "sqlalchemy", "uvicorn.error")
# An API key, a token of the Hub, a password in a URL: no entry should have one, and none is logged.
SECRETS = re.compile(
    r"(?P<key>\bimp_[0-9a-f]{12}_)[\w-]{20,}|(?P<token>\bhf_)\w{8,}|(?P<user>://[^\s:/@]{0,200}:)[^\s/@]+(?=@)"
)
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
job_id: ContextVar[str | None] = ContextVar("job_id", default=None)


class AnswerCut(Exception):
    """Ends an answer that a fault has cut; the fault has its entry in the log, with the request's id."""


def _not_logged_yet(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], AnswerCut))


@contextmanager
def of_job(ident: str) -> Iterator[None]:
    """Add a job's id to the log entries of the block."""
    token = job_id.set(ident)
    try:
        yield
    finally:
        job_id.reset(token)


class Json(logging.Formatter):
    """One line of JSON for each entry."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line with time, level, logger, message and fields."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        entry |= {"message": record.getMessage(), **_ids(), **getattr(record, "fields", {})}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(entry, default=str))  # ASCII: Unicode has line ends of its own


class Text(logging.Formatter):
    """The same for eyes; no entry steers a terminal or looks like two."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and message, then the lines of an error."""
        text = without_secrets(super().format(record))
        plain = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
        return plain if record.exc_info else plain.replace("\n", "\\n")


def _ids() -> dict[str, str]:
    ids = {"request": request_id.get(), "job": job_id.get()}
    return {name: ident for name, ident in ids.items() if ident is not None}


def without_secrets(text: str) -> str:
    """Return a line without keys, tokens and passwords."""
    for variable in config.TOKENS:
        if len(value := os.environ.get(variable, "").strip()) >= 8:
            text = text.replace(value, "***")
    return SECRETS.sub(lambda m: f"{m['key'] or m['token'] or m['user']}***", text)


def begin(settings: Settings) -> None:
    """Log to stderr as the settings require."""
    handler = logging.StreamHandler()
    text = Text("%(asctime)s %(levelname)s %(name)s: %(message)s")
    chosen = settings.log_format
    eyes = chosen == "text" or (chosen == "auto" and handler.stream.isatty())
    handler.setFormatter(text if eyes else Json())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    quiet()


def quiet() -> None:
    """Keep the routine of libraries out of the log, and the server's entry for a fault that has one."""
    logging.getLogger("uvicorn.error").addFilter(_not_logged_yet)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


MEDIA_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
J = tables.jobs.c
KINDS = ("import", "validation", "recheck")  # of the jobs that wait in the queue
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Metrics:
    """The counters of this process; figures of the database are read at each scrape."""

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
        """Count a request under its route's template, so that no name in an address is one."""
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        if not streamed:
            self._seconds.labels(method, route).observe(seconds)

    def text(self, database: Database) -> bytes:
        """Return all metrics in Prometheus's format."""
        with database.reading() as connection:
            families = [*_gallery(connection)]
        shown = CollectorRegistry()
        shown.register(_FixedCollector(families))
        return generate_latest(self._registry) + generate_latest(shown)


class _FixedCollector(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the database."""
        yield from self._families


def _gallery(connection: Connection) -> Iterator[Metric]:
    build = GaugeMetricFamily("importer_build_info", "The importer's version.", labels=["version"])
    build.add_metric([__version__], 1)
    yield build
    c = tables.configs.c
    documents = select(c.state, func.count()).where(c.deleted_at.is_(None)).group_by(c.state)
    yield _counted(
        "importer_documents", "Documents by state.", ["state"], connection.execute(documents).all()
    )
    by_state = select(J.kind, J.state, func.count()).group_by(J.kind, J.state)
    yield _counted(
        "importer_jobs", "Jobs by kind and state.", ["kind", "state"], connection.execute(by_state).all()
    )
    yield _waiting(connection)
    running = [one for one in processes.all_executors(connection) if not processes.overdue(one)]
    yield GaugeMetricFamily("importer_processes", "Processes that run jobs.", len(running))


def _waiting(connection: Connection) -> Metric:
    """Return the age of the oldest job that waits, for each kind; 0 where none does."""
    oldest = select(J.kind, func.min(J.created_at)).where(J.state == "queued").group_by(J.kind)
    since = {kind: datetime.fromisoformat(at).timestamp() for kind, at in connection.execute(oldest)}
    now = time.time()
    ages = [(kind, max(0.0, now - since.get(kind, now))) for kind in KINDS]
    return _counted(
        "importer_oldest_queued_seconds", "How long the oldest job in a queue has waited.", ["kind"], ages
    )


def _counted(name: str, description: str, labels: list[str], rows: Iterable[Iterable[object]]) -> Metric:
    family = GaugeMetricFamily(name, description, labels=labels)
    for *values, number in rows:
        family.add_metric([str(v) for v in values], float(str(number)))
    return family
