"""The processes of the service: a server, and a worker that runs jobs alone."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from contextlib import closing, suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from importer.errors import InternalError, ServiceError
from importer.service import telemetry
from importer.service.app import create
from importer.service.domain.gallery import Gallery
from importer.service.jobs.runner import Runner
from importer.service.settings import Settings
from importer.storage import keys
from importer.storage.schema import open_database


class HeaderTimeout(H11Protocol):
    """Closes a connection whose next request's head takes longer; bodies are timed where they are read."""

    seconds = 30.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request's head."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Stop the timeout at the end of a head; start it at the first bytes of the next one."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


BACKLOG = 2048  # connections that wait to be taken


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises ServiceError("not-listening")."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise ServiceError("not-listening", host=host, port=port, problem=problem) from None
    # Connections inherit it. asyncio sets it for sockets of its own making alone, and a body that waits for
    # the acknowledgement of its head comes 40 ms late.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


# Seconds until a thread that computes, as an import, lets another one run: with Python's five milliseconds
# a request that changes threads four times waited for tens.
SWITCH = 0.001
RESERVE = 100  # connections above the limit that get a problem, or the answer to a health check
TICK = 1.0  # seconds between two updates of the header Date
GRACE = 10  # seconds that requests have to end when the server does
LOG = logging.getLogger("importer")


class ImporterServer(uvicorn.Server):
    """A server that ends event streams first, and freezes objects of the start for the garbage collector."""

    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Start, and freeze the present objects: a collection of them took a tenth of a second."""
        await super().startup(sockets=sockets)
        gc.collect()
        gc.freeze()
        if self.started:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            place = f"http://{host}:{sockets[0].getsockname()[1] if sockets else ''}"
            LOG.info("listening on %s: page, API and gallery; Ctrl-C stops", place)

    async def main_loop(self) -> None:
        """Wait for a signal; update the header ``Date`` once a second, in place of ten looks a second."""
        self._signalled, self._loop = asyncio.Event(), asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._signalled.wait(), TICK)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """End the watchers' streams, then shut down."""
        self.config.app.state.desk.watching.end()  # type: ignore[union-attr]
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down in order at the first signal, at once at the second."""
        app = self.config.app
        app.state.ending = True  # type: ignore[union-attr]
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)


def serve(settings: Settings) -> None:
    """Answer requests until a signal; raises ServiceError and the database's errors."""
    telemetry.begin(settings)
    sys.setswitchinterval(SWITCH)
    _check(settings)
    listens = listening(settings.host, settings.port)
    app = create(settings)
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=GRACE, lifespan="on", ws="none",
        http=type("Patience", (HeaderTimeout,), {"seconds": settings.body_seconds}),
        limit_concurrency=settings.connections + RESERVE,
        proxy_headers=bool(settings.trusted_proxy), forwarded_allow_ips=settings.trusted_proxy,
    )  # fmt: skip
    server = ImporterServer(config)
    app.state.connections = server.server_state.connections
    with suppress(KeyboardInterrupt, SystemExit):  # the signal once more; that it did not start
        server.run([listens])
    if not server.started:
        raise InternalError("internal", problem="the server did not start; see the log above")


def work(settings: Settings) -> None:
    """Run jobs until a signal."""
    telemetry.begin(settings)
    database = open_database(settings.url)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with Runner(Gallery(database), settings) as runner:
        LOG.info("working", extra={"fields": {"device": runner.device, "engines": runner.me.engines}})
        ending.wait()
    database.close()


def _check(settings: Settings) -> None:
    """Check the database, and that any host but loopback has an API key.

    Raises ServiceError("bad-setting").
    """
    database = open_database(settings.url)
    with closing(database), database.reading() as connection:
        counted = [key for key in keys.listed(connection) if key["revoked_at"] is None]
    if not (counted or settings.loopback):
        command = "'importer admin api-keys create NAME'"
        problem = f"any address but loopback needs an API key, and there is none: {command}"
        raise ServiceError("bad-setting", place=f"--host {settings.host}", problem=problem)
