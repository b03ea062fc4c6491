"""The processes: a server, and a worker that runs jobs alone."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from contextlib import closing, suppress
from types import FrameType
from typing import Any

import uvicorn

from importer.errors import InternalError, ServiceError
from importer.gallery import keys
from importer.gallery.gallery import Gallery
from importer.gallery.opening import opened
from importer.service import logs
from importer.service.app import create
from importer.service.jobs.crew import Crew
from importer.service.listening import listening
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
            LOG.info("listening on http://%s:%s", host, sockets[0].getsockname()[1] if sockets else "")

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """Whoever watches a job is told that it ends here, and is not waited for."""
        self.config.app.state.desk.watching.end()  # type: ignore[union-attr]
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it in order, the second at once."""
        app = self.config.app
        app.state.ending = True  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> None:
    """Answer requests until a signal ends it; raises ServiceError and what the database raises."""
    logs.begin(settings)
    _check(settings)
    sockets = listening(settings.host, settings.port)
    config = uvicorn.Config(
        create(settings), host=settings.host, port=settings.port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=GRACE, lifespan="on", ws="none",
        http=patience(settings.body_seconds), limit_concurrency=settings.connections,
        proxy_headers=bool(settings.trusted_proxy), forwarded_allow_ips=settings.trusted_proxy,
    )  # fmt: skip
    server = Server(config)
    with suppress(
        KeyboardInterrupt, SystemExit
    ):  # the signal that ended it, once more; that it did not start
        server.run(sockets)
    if not server.started:
        raise InternalError("internal", problem="the server did not start; see the log above")


def work(settings: Settings) -> None:
    """Run jobs until a signal ends it."""
    logs.begin(settings)
    database = opened(settings.url)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with Crew(Gallery(database), settings) as crew:
        LOG.info("working", extra={"said": {"device": crew.device, "engines": crew.me.engines}})
        ending.wait()
    database.close()


def _check(settings: Settings) -> None:
    """Whether the database can be used; whoever is reached from elsewhere needs somebody who may ask."""
    database = opened(settings.url)
    with closing(database), database.reading() as connection:
        counted = [key for key in keys.listed(connection) if key["revoked_at"] is None]
    if not (counted or settings.loopback):
        problem = "any address but loopback needs an API key, and there is none: 'importer keys create NAME'"
        raise ServiceError("bad-setting", place=f"--host {settings.host}", problem=problem)
