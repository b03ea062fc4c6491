"""Requests at a steady rate, each timed from when it was due: a slow server is not asked less often."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """Status, headers in small letters, body, and seconds from when it was due."""

    status: int
    headers: Headers
    body: bytes
    seconds: float


@dataclass
class Client:
    """Connections that are kept; HTTP/1.1 as far as the service speaks it."""

    host: str
    port: int
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def ask(
        self, method: str, path: str, headers: Headers | None = None, body: bytes = b"",
        due: float | None = None,
    ) -> Answer:  # fmt: skip
        """One request and its whole answer."""
        begun = time.perf_counter() if due is None else due
        message = self.head(method, path, {**(headers or {}), "Content-Length": str(len(body))}) + body
        status, told, reader, writer = await self._sent(message)
        content = b"" if status in (204, 304) else await reader.readexactly(int(told["content-length"]))
        seconds = time.perf_counter() - begun
        if told.get("connection") == "close":
            writer.close()
        else:
            self.idle.append((reader, writer))
        return Answer(status, told, content, seconds)

    async def _sent(
        self, message: bytes
    ) -> tuple[int, dict[str, str], asyncio.StreamReader, asyncio.StreamWriter]:
        """An answer's head; a kept connection that the server has ended meanwhile is none."""
        while self.idle:
            reader, writer = self.idle.pop()
            try:
                writer.write(message)
                return *await read_head(reader), reader, writer
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
        reader, writer = await self.connect()
        writer.write(message)
        return *await read_head(reader), reader, writer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection."""
        return await asyncio.open_connection(self.host, self.port, limit=1 << 20)

    def head(self, method: str, path: str, headers: Headers) -> bytes:
        """A request's head."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    async def steady(
        self, rate: float, seconds: float, path: Callable[[int], str], headers: Headers | None = None
    ) -> list[Answer]:
        """``rate`` requests a second, whatever becomes of them."""
        begun, tasks = time.perf_counter() + 0.1, []
        for number in range(int(rate * seconds)):
            due = begun + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(self.ask("GET", path(number), headers, due=due)))
        return list(await asyncio.gather(*tasks))

    def close(self) -> None:
        """End all connections."""
        for _, writer in self.idle:
            writer.close()
        self.idle.clear()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """An answer's status and headers."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    told = (line.partition(":") for line in lines if line)
    return int(first.split()[1]), {name.strip().lower(): value.strip() for name, _, value in told}


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
