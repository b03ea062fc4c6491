"""A small server of the OpenAI API in this process: it says hello, or calls the tool that it is offered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import listening

CALL = {
    "id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"location": "Rome"}'},
}  # fmt: skip


class Api(BaseHTTPRequestHandler):
    """It serves the model ``hers`` and has no /health; with ``key`` it lets nobody else in.

    ``names``  what it lists; with none it has no list. ``knows``  the names that it answers to, and to none
    as the first of them; any name by default.
    """

    asked: list[dict[str, Any]]
    key: str | None = None
    tokenizes = False
    moved_to: str | None = None
    names: tuple[str, ...] = ("hers",)
    knows: tuple[str, ...] = ()

    def do_GET(self) -> None:
        if self.moved_to is not None:
            self._move()
        elif self.path == "/v1/models" and self.names:
            self._answer(200, {"data": [{"id": name} for name in self.names]})
        elif self.path == "/version":
            self._answer(200, {"version": "9.8.7"})
        else:
            self._answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.moved_to is not None:
            self._move()
            return
        if self.path in ("/tokenize", "/detokenize") and self.tokenizes:
            if self.knows and body.get("model") not in self.knows:
                self._answer(404, {"detail": "The model does not exist."})
                return
            text = str(body.get("prompt", ""))
            back = "".join(map(chr, body.get("tokens", ())))
            self._answer(
                200 if "prompt" in body or "tokens" in body else 422,
                {"tokens": list(map(ord, text)), "prompt": back},
            )
            return
        if self.path != "/v1/chat/completions":
            self._answer(404, {"detail": "Not Found"})
            return
        told = {"authorization": self.headers["Authorization"], "headers": dict(self.headers)}
        self.asked.append({**body, **told})
        served = body.get("model", next(iter(self.knows), None))
        if self.knows and served not in self.knows:
            self._answer(404, {"error": {"message": f"The model {served} does not exist."}})
            return
        message = {"role": "assistant", "content": f"Hello, {self.headers['Authorization']}!"}
        if body.get("tools"):
            message = {"role": "assistant", "content": "", "tool_calls": [CALL]}
        reason = "tool_calls" if body.get("tools") else "stop"
        if body.get("stream"):
            delta = {**message, "tool_calls": [{**CALL, "index": 0}]} if body.get("tools") else message
            event = json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
            self._send(200, f"data: {event}\n\ndata: [DONE]\n\n".encode())
        else:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._answer(200, {"model": served, "choices": [choice]})

    def _move(self) -> None:
        """Send the caller to another host, as a gateway may."""
        self.send_response(307)
        self.send_header("Location", f"{self.moved_to}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, status: int, data: object) -> None:
        if self.key is not None and self.headers["Authorization"] != f"Bearer {self.key}":
            status, data = 401, {"error": {"message": f"wrong key: {self.headers['Authorization']}"}}
        self._send(status, json.dumps(data).encode())

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def api(
    key: str | None = None,
    *,
    tokenizes: bool = False,
    moved_to: str | None = None,
    names: tuple[str, ...] = ("hers",),
    knows: tuple[str, ...] = (),
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address and what it is asked."""
    asked: list[dict[str, Any]] = []
    told = {"key": key, "tokenizes": tokenizes, "moved_to": moved_to, "names": names, "knows": knows}
    handler = type("Api", (Api,), {"asked": asked, **told})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
