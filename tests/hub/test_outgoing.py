"""A request to a foreign address is over in time, whatever its receiver sends; half a head is no answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from importer.hub import outgoing
from importer.hub.outgoing import AddressReason, Sent
from tests.waiting import PATIENCE, FreeTime

TOTAL, PAUSE = 1.0, 0.02
SOON = 60.0  # seconds with a free processor; without a limit it takes for ever
OK = b"HTTP/1.1 200 OK\r\n"
Answer = Callable[[socket.socket], None]


@contextmanager
def receiver(answer: Answer) -> Iterator[int]:
    """A server whose answer to one connection is made by hand."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            with suppress(OSError), server.accept()[0] as line:
                line.settimeout(PATIENCE)
                answer(line)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield server.getsockname()[1]
    thread.join(PATIENCE)
    assert not thread.is_alive()


def dripped(head: bytes, endless: bytes = b"x", pause: float = PAUSE) -> Answer:
    def answer(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(head)
        while True:  # until the sender ends the connection
            line.sendall(endless)
            time.sleep(pause)

    return answer


def sent_at_once(text: bytes) -> Answer:
    def answer(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(text)

    return answer


def silent(head: bytes) -> Answer:
    def answer(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(head)
        line.recv(1)

    return answer


FAILED = {
    "a header without an end": dripped(OK + b"x-drip: "),
    "headers without an end": dripped(OK, b"x-drip: 1\r\n"),
    "headers without an end, fast": dripped(OK, b"x-drip: 1\r\n" * 1000, 0),
    "a status line byte by byte": dripped(b"HTTP/1.1 200 ", b"O"),
    "interim answers without an end": dripped(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "silence within the head": silent(OK + b"a: 1\r\n"),
    "silence": silent(b""),
    "an end behind the status line": sent_at_once(OK),
    "an end within the status line": sent_at_once(b"HTTP/1.1 200 OK"),
    "an end before the empty line": sent_at_once(OK + b"content-length: 0\r\n"),
    "an end behind an interim answer": sent_at_once(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "nothing": sent_at_once(b""),
    "no HTTP": sent_at_once(b"200 OK\r\n\r\n"),
}


def posted(answer: Answer, scheme: str = "http") -> Sent:
    with receiver(answer) as port:
        clock = FreeTime()
        sent = outgoing.post(f"{scheme}://127.0.0.1:{port}/hook", {}, b"{}", private=True)
        assert clock.seconds < SOON
        return sent


@pytest.mark.parametrize("name", FAILED)
def test_half_a_head_is_a_failure_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "TOTAL", TOTAL)
    sent = posted(FAILED[name])
    assert sent.status is None, name
    assert sent.problem is not None
    assert sent.problem.kind in (AddressReason.NO_ANSWER, AddressReason.FAILED)


def test_a_handshake_byte_by_byte_is_a_failure_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "TOTAL", TOTAL)
    hello = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03"
    assert posted(dripped(hello, b"\x00"), "https").status is None


def test_a_slow_look_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "TOTAL", TOTAL)
    real = socket.getaddrinfo

    def slowly(*words: object, **more: object) -> object:
        time.sleep(TOTAL / 2)
        return real(*words, **more)  # type: ignore[arg-type]

    def counted(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(OK + b"x: ")
        while True:
            line.sendall(b"x")
            drips.append(1)
            time.sleep(PAUSE)

    drips: list[int] = []
    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    assert posted(counted).status is None
    assert len(drips) <= TOTAL / 2 / PAUSE + 1, "half of the time was left; a busy machine drips less"


def test_a_whole_head_counts_though_it_comes_in_pieces_and_its_body_has_no_end() -> None:
    def pieces(line: socket.socket) -> None:
        line.recv(65536)
        for piece in (b"HTTP/1.1 100 Continue\r\n\r\nHT", b"TP/1.1 202 Accepted\r\na: ", b"1\r\n\r", b"\n"):
            line.sendall(piece)
            time.sleep(0.05)

    assert posted(pieces) == Sent(202)
    assert posted(dripped(OK + b"\r\n")) == Sent(200)
    assert posted(sent_at_once(b"HTTP/1.1 500 no\r\n\r\n")) == Sent(500)
