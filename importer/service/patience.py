"""HTTP/1.1 as uvicorn speaks it, with an end to connections that never finish a request's head."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Patience(H11Protocol):
    """Closes a connection whose next request's head takes longer; bodies are timed where they are read."""

    seconds = 30.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request's head is awaited."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        """A head that is whole ends the wait; the first bytes of a further one begin another."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is awaited."""
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


def patience(seconds: float) -> type[Patience]:
    """The protocol with another limit."""
    return type("Patience", (Patience,), {"seconds": seconds})
