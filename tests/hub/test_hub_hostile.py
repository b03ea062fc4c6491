"""Answers of a Hub that never end, told byte by byte on a socket: each ends in a sentence, in time."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import count, repeat
from pathlib import Path

import pytest

from importer.errors import HubError
from importer.hub import client
from importer.hub.client import Deadline
from tests.hubserver import isolate
from tests.waiting import FreeTime, wait_until

SHORT = Deadline(connect=1, read=2, whole=1.5, waits=0.5, pause=0.01, tries=3)
SOON = 60.0  # seconds with a free processor; without a limit it takes for ever
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\nContent-Length: 99999999999\r\n\r\n"
Script = Callable[[int], Iterator[bytes | float]]  # for a port: bytes to send, seconds to wait


class Wire:
    """A server that answers each connection as its script says, until the other side is gone."""

    def __init__(self, script: Script, *, handshake: bool = False) -> None:
        self.script, self.begun, self.gone = script, 0, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"http{'s' * handshake}://127.0.0.1:{self.port}"
        self._reads = not handshake
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listening.accept()
            except OSError:
                return
            self.begun += 1
            threading.Thread(target=self._answer, args=(one,), daemon=True).start()

    def _answer(self, one: socket.socket) -> None:
        with one:
            try:
                if self._reads:
                    one.recv(65536)
                for step in self.script(self.port):
                    if isinstance(step, bytes):
                        one.sendall(step)
                    else:
                        time.sleep(step)
            except OSError:
                self.gone += 1

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(script: Script, *, handshake: bool = False) -> Wire:
        made.append(Wire(script, handshake=handshake))
        isolate(monkeypatch, tmp_path, made[-1].url)
        return made[-1]

    yield make
    for one in made:
        one.close()


def each(*steps: bytes | float, first: bytes = b"") -> Script:
    """``first``, then the steps again and again."""

    def script(_: int) -> Iterator[bytes | float]:
        yield first
        while True:
            yield from steps

    return script


def redirects(port: int) -> Iterator[bytes | float]:
    yield 0.3
    yield f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/x\r\nContent-Length: 0\r\n\r\n".encode()


def headers(_: int) -> Iterator[bytes | float]:
    yield OK
    for number in count():
        yield b"X-%d: 1\r\n" % number


def empty_blocks(_: int) -> Iterator[bytes | float]:
    packed = zlib.compressobj(wbits=31)
    yield GZIP + packed.flush(zlib.Z_FULL_FLUSH)
    while True:
        yield packed.flush(zlib.Z_FULL_FLUSH) + b"\0\0\0\xff\xff" * 1000


ENDLESS: dict[str, Script] = {
    "nothing at all": each(1.0),
    "a byte of the status line now and then": each(b"H", 0.2),
    "a header now and then": each(b"X-A: 1\r\n", 0.2, first=OK),
    "headers without end": headers,
    "one header without end": each(b"x" * 1000, first=OK + b"X-Long: "),
    "interim answers": each(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "an interim answer now and then": each(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.2),
    "a byte of the body now and then": each(b"x", 0.2, first=OK + b"Content-Length: 999999\r\n\r\n"),
    "a body without end": each(b"x" * 65536, first=OK + b"\r\n"),
    "a chunk now and then": each(b"1\r\nx\r\n", 0.2, first=CHUNKED),
    "a chunk's extension": each(b";a=b", 0.01, first=CHUNKED + b"1"),
    "extensions of small chunks": each(b"1;" + b"x" * 9000 + b"\r\nx\r\n", first=CHUNKED),
    "trailers": each(b"X-A: 1\r\n", 0.05, first=CHUNKED + b"1\r\nx\r\n0\r\n"),
    "a file name in gzip": each(b"a" * 60000, first=GZIP + b"\x1f\x8b\x08\x08" + b"\0" * 6),
    "a slow file name in gzip": each(b"a", 0.1, first=GZIP + b"\x1f\x8b\x08\x08" + b"\0" * 6),
    "an extra field in gzip": each(b"a", 0.1, first=GZIP + b"\x1f\x8b\x08\x04" + b"\0" * 6 + b"\xff\xff"),
    "empty blocks of deflate": empty_blocks,
    "slow empty blocks of deflate": each(
        b"\0\0\0\xff\xff", 0.1, first=GZIP + gzip.compress(b"", mtime=0)[:10]
    ),
    "redirects now and then": redirects,
    "words after an answer": each(b"x" * 1000, first=OK + b"Content-Length: 5\r\n\r\nhello"),
}  # fmt: skip


def got(url: str, limit: int = 1_000_000, patience: Deadline = SHORT) -> str:
    """What came of it: an error's kind, ``too large``, or the body."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "PATIENCE", patience)
            return client.get(f"{url}/api/models/a/b", limit=limit).body.decode()
    except HubError as error:
        return error.kind
    except client.TooLarge:
        return "too large"


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_ends(wire: Callable[..., Wire], name: str) -> None:
    one = wire(ENDLESS[name])
    clock = FreeTime()
    found = got(one.url)
    assert clock.seconds < SOON
    assert found in ("hello" if name.startswith("words") else "network", "bad-answer", "too large"), found


@pytest.mark.slow
def test_who_is_left_is_hung_up_on(wire: Callable[..., Wire]) -> None:
    """Nothing goes on reading in the background."""
    one = wire(ENDLESS["interim answers"])
    assert got(one.url) == "network"
    wait_until(lambda: one.gone == one.begun > 0)


def test_a_handshake_without_end_ends(wire: Callable[..., Wire]) -> None:
    one = wire(each(b"\x16", 0.2), handshake=True)
    clock = FreeTime()
    assert got(one.url) == "network"
    assert clock.seconds < SOON


@pytest.mark.slow
def test_one_limit_holds_for_all_tries(wire: Callable[..., Wire]) -> None:
    """Each try is cut off after half of the time: the third one has none left."""

    def half(_: int) -> Iterator[bytes | float]:
        yield OK + b"Content-Length: 9\r\n\r\nx"
        yield 1.0

    one = wire(half)
    clock = FreeTime()
    assert got(one.url, patience=Deadline(whole=1.5, waits=9, pause=0.01, tries=50)) in (
        "network",
        "bad-answer",
    )
    assert clock.seconds < SOON
    assert one.begun <= 3


@pytest.mark.parametrize(
    ("told", "sent", "found"),
    [
        (b"Content-Length: 5", b"hello", "hello"),
        (b"Content-Length: 9", b"hello", "bad-answer"),
        (b"Content-Length: 3", b"hello", "hel"),
        (b"Content-Length: -1", b"hello", "bad-answer"),
        (b"Content-Length: 5\r\nContent-Length: 6", b"hello", "bad-answer"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n", "hello"),
        (b"Transfer-Encoding: chunked", b"fffffffffffff\r\nhello", "bad-answer"),
        (b"Transfer-Encoding: chunked", b"-5\r\nhello\r\n0\r\n\r\n", "bad-answer"),
        (b"Content-Encoding: gzip", gzip.compress(b"hello", mtime=0), "hello"),
        (b"Content-Encoding: GZIP ", gzip.compress(b"hello", mtime=0), "hello"),
        (b"Content-Encoding: gzip", gzip.compress(b"hello", mtime=0)[:-9], "bad-answer"),
        (b"Content-Encoding: gzip", b"", "bad-answer"),
        (b"Content-Encoding: gzip", b"hello", "bad-answer"),
        (b"Content-Encoding: gzip", gzip.compress(b"x" * 10_000_000, mtime=0), "too large"),
        (b"Content-Encoding: br", b"hello", "bad-answer"),
        (b"Content-Encoding: gzip, gzip", gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "bad-answer"),
        (b"Content-Encoding: identity", b"hello", "hello"),
        (b"X: y", b"x" * 1_000_001, "too large"),
    ],
)
def test_lengths_and_codings_are_believed_as_far_as_they_are_true(
    wire: Callable[..., Wire], told: bytes, sent: bytes, found: str
) -> None:
    one = wire(lambda _: iter([OK + told + b"\r\nConnection: close\r\n\r\n" + sent]))
    assert got(one.url) == found


def test_a_connection_is_used_again(wire: Callable[..., Wire]) -> None:
    """The limit of one answer is none of the next on the same connection."""

    def three(_: int) -> Iterator[bytes | float]:
        for _time in repeat(None, 3):
            yield OK + b"Content-Length: 5\r\n\r\nhello"
            yield 0.4

    one = wire(three)
    patience = Deadline(connect=1, read=1, whole=1.0, waits=0, pause=0, tries=1)
    assert [got(one.url, patience=patience) for _ in range(3)] == ["hello"] * 3
    assert one.begun == 1
