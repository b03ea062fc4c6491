"""The processes: a server, and a worker that runs jobs alone."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

from importer.errors import ServiceError
from importer.gallery import keys
from importer.gallery.database import Database
from importer.gallery.gallery import Gallery
from importer.gallery.migrations import migrate
from importer.service import logs
from importer.service.app import create
from importer.service.jobs.crew import Crew
from importer.service.patience import patience
from importer.service.settings import Settings

GRACE = 10  # seconds that requests have to end when the server does
LOG = logging.getLogger("importer")


class Server(uvicorn.Server):
    """Ends streams first, which would keep it from ending; looks for no garbage where there is none."""

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """What is there now stays: looking through all of it took a tenth of a second, now and then."""
        await super().startup(sockets=sockets)
        gc.collect()
        gc.freeze()
        if self.started:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            LOG.info("listening on http://%s:%s", host, self.config.port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it in order, the second at once."""
        app = self.config.app
        app.state.ending = True  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> None:
    """Answer requests until a signal ends it; raises ServiceError and what the database raises."""
    logs.begin(settings)
    _need_keys(settings)
    config = uvicorn.Config(
        create(settings), host=settings.host, port=settings.port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=GRACE, lifespan="on", ws="none",
        http=patience(settings.body_seconds), limit_concurrency=settings.connections,
        proxy_headers=bool(settings.trusted_proxy), forwarded_allow_ips=settings.trusted_proxy,
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
    logs.begin(settings)
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
