"""Servers that never end an answer, each slow in another part of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DRIPS = {
    "body": HEAD + b"Content-Length: 1000000\r\n\r\n",
    "body-without-length": HEAD + b"\r\n",
    "chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n",
    "chunk-size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    "header": HEAD + b"X-Long: ",
    "status": b"HTTP/1.1 200 ",
    "nothing": b"",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,  # again and again
}


@contextmanager
def dripping(head: bytes, *, again: bool = False) -> Iterator[int]:
    """A server that answers with ``head``, then one byte after another or the head ``again``, for ever."""
    ending = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(head)
            while not ending.is_set():
                connection.sendall(head if again else b"x")
                time.sleep(0.05)

    def serve() -> None:
        while not ending.is_set():
            with suppress(TimeoutError):
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        ending.set()
        thread.join()
        server.close()
