"""Servers of the OpenAI API that never end, drip, or answer with texts of adversarial shapes."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import listening

PAUSE = 0.2  # seconds between two drops
PIECE = 65_536  # bytes sent at once
LONG = 15 * 1024 * 1024  # bytes of a text
EVENT = json.dumps({"choices": [{"index": 0, "delta": {"content": "a"}}]})
SHAPES: Mapping[str, str] = {
    "words": "one two ", "stops": "ten\n", "calls": "<tool_call>", "call-names": '{"name": "get_weather", ',
    "brackets": "[", "braces": '{"a":', "backticks": "```", "thoughts": "<think>a</think>", "open": "<think",
    "unicode": "\U0001f600\u0301\uff5c", "zeros": "\u0000", "spaces": " \n", "numbers": "1, 2, 3, ",
    "quotes": "\\\"'", "turns": "\nuser:", "lone": "\ud800", "pieces": "\u0120a\u2581",
}  # fmt: skip
MIXED = "mixed"  # one shape after another
OK = b"HTTP/1.1 200 OK\r\n"
# What begins an answer, what follows without end, and the seconds between two pieces of it.
ENDLESS: Mapping[str, tuple[bytes, bytes, float]] = {
    "endless-events": (OK + b"\r\n", f"data: {EVENT}\n\n".encode() * 100, 0),
    "dripping-events": (OK + f"\r\ndata: {EVENT}\n\n".encode(), b":", PAUSE),
    "endless-body": (OK + b'\r\n{"choices": [{"message": {"content": "', b"a" * PIECE, 0),
    "endless-lists": (OK + b'\r\n{"choices": [', b"[]," * 20_000, 0),
    "headers": (OK, b"a", PAUSE),
    "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0", PAUSE),
    "refusal": (b"HTTP/1.1 500 Oh\r\n\r\n", b"a" * PIECE, 0),
}


def dense(count: int) -> bytes:
    """An answer with as many events as fit, each with as many small values."""
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": "a"}, "x": [[]] * 9}]})
    return f"data: {event}\n\n".encode() * count


def written(path: str, request: Mapping[str, Any], text: str) -> bytes:
    """Write a text in each place of an answer in the format of the path."""
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "input_tokens": 9, "output_tokens": 9}
    if path == "/v1/completions":
        return json.dumps({"choices": [{"text": text, "finish_reason": "stop"}], "usage": usage}).encode()
    if path == "/v1/messages":
        blocks = [{"type": "text", "text": text}]
        said = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
        return json.dumps({**said, "usage": usage}).encode()
    if path == "/v1/responses":
        item = {"type": "message", "id": "a", "content": [{"type": "output_text", "text": text}]}
        said = {"object": "response", "id": "r", "status": "completed", "output": [item]}
        return json.dumps({**said, "usage": usage}).encode()
    if path != "/v1/chat/completions":
        return json.dumps({"tokens": [1, 2, 3], "prompt": text}).encode()
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if request.get("tools"):
        call = {"name": request["tools"][0]["function"]["name"], "arguments": text}
        message["tool_calls"] = [{"id": "a", "index": 0, "type": "function", "function": call}]
    choice: dict[str, Any] = {"index": 0, "finish_reason": "tool_calls" if request.get("tools") else "stop"}
    if request.get("logprobs"):
        tops = [{"token": text[:10_000], "logprob": -0.1}] * 3
        choice["logprobs"] = {"content": [{**tops[0], "top_logprobs": tops}] * 20}
    if request.get("stream"):
        event = json.dumps({"choices": [{**choice, "delta": message}], "usage": usage})
        return f"data: {event}\n\ndata: [DONE]\n\n".encode()
    return json.dumps({"choices": [{**choice, "message": message}], "usage": usage}).encode()


class HostileApi(BaseHTTPRequestHandler):
    """``kind`` is what it does; it does so after ``polite`` ordinary answers to a POST, or to GET as well."""

    kind = ""
    polite = 0
    size = LONG
    gets = False
    protocol_version = "HTTP/1.0"
    served: list[str]

    def do_GET(self) -> None:
        if self.gets:
            self.harm({})
        else:
            self.answer(json.dumps({"data": [{"id": "hers"}]}).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        self.served.append(self.path)
        if len(self.served) <= self.polite:
            self.answer(written(self.path, request, "Hello!"))
        else:
            self.harm(request)

    def harm(self, request: Mapping[str, Any]) -> None:
        if self.kind in ENDLESS:
            head, piece, pause = ENDLESS[self.kind]
            self.wfile.write(head)
            while True:
                self.wfile.write(piece)
                time.sleep(pause)
        elif self.kind == "gzip":
            self.answer(gzip.compress(b"\0" * 50_000_000), ("Content-Encoding", "gzip"))
        elif self.kind == "dense":
            self.answer(dense(self.size // 150))
        else:
            kinds = [*SHAPES] if self.kind == MIXED else [self.kind]
            unit = SHAPES[kinds[len(self.served) % len(kinds)]]
            self.answer(written(self.path, request, unit * (self.size // len(unit))))

    def begin(self, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for header in headers:
            self.send_header(*header)
        self.end_headers()

    def answer(self, body: bytes, *headers: tuple[str, str]) -> None:
        self.begin(("Content-Length", str(len(body))), *headers)
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """The client leaves where it has had enough."""


@contextmanager
def hostile_api(kind: str, *, polite: int = 0, size: int = LONG, gets: bool = False) -> Iterator[str]:
    """The address of a server that does ``kind``."""
    named = {"kind": kind, "polite": polite, "size": size, "gets": gets, "served": []}
    server = Server(("127.0.0.1", 0), type("Hostile", (HostileApi,), named))
    with listening(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"
