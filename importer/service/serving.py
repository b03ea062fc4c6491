"""The processes: a server, and a worker that runs jobs alone."""

from __future__ import annotations

import json
import logging
import signal
import threading
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType

import uvicorn

from importer.errors import ServiceError
from importer.gallery import keys
from importer.gallery.database import Database
from importer.gallery.gallery import Gallery
from importer.gallery.migrations import migrate
from importer.service.app import create
from importer.service.jobs.crew import Crew
from importer.service.settings import Settings

GRACE = 10  # seconds that requests have to end when the server does
LOG = logging.getLogger("importer")


class Server(uvicorn.Server):
    """Ends streams first, which would keep it from ending otherwise."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it in order, the second at once."""
        app = self.config.app
        app.state.ending = True  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> None:
    """Answer requests until a signal ends it; raises ServiceError and what the database raises."""
    _log(settings)
    _need_keys(settings)
    config = uvicorn.Config(
        create(settings), host=settings.host, port=settings.port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=GRACE, lifespan="on",
    )  # fmt: skip
    server = Server(config)
    try:
        with suppress(KeyboardInterrupt):  # the signal that ended it, once more
            server.run()
    except SystemExit:
        problem = "see the log above"
        raise ServiceError("not-listening", host=settings.host, port=settings.port, problem=problem) from None
    if not server.started:
        raise ServiceError(
            "not-listening", host=settings.host, port=settings.port, problem="it did not start"
        )


def work(settings: Settings) -> None:
    """Run jobs until a signal ends it."""
    _log(settings)
    database = Database(settings.url)
    migrate(database)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with Crew(Gallery(database), settings) as crew:
        LOG.info("working", extra={"said": {"device": crew.device, "engines": crew.me.engines}})
        ending.wait()
    database.close()


def _need_keys(settings: Settings) -> None:
    """Whoever is reached from elsewhere needs somebody who may ask."""
    if settings.loopback:
        return
    database = Database(settings.url)
    migrate(database)
    with database.reading() as connection:
        counted = [key for key in keys.listed(connection) if key["revoked_at"] is None]
    database.close()
    if not counted:
        problem = "any address but loopback needs an API key, and there is none: 'importer keys create NAME'"
        raise ServiceError("bad-setting", place=f"--host {settings.host}", problem=problem)


class Json(logging.Formatter):
    """One line of JSON for each entry."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message, and what is known beside it."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= getattr(record, "said", {})
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


def _log(settings: Settings) -> None:
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(Json() if settings.log_format == "json" else text)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    for name in ("dbos", "httpx", "httpx2", "httpcore", "httpcore2", "sqlalchemy", "uvicorn.error"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
