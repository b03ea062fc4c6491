"""A receiver of webhooks: it checks signatures as the specification has it, and answers what a test says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import listening


class Receiver(ThreadingHTTPServer):
    """``received`` has each request: its headers, its body, and whether the signature is right."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.secret, self.status, self.received = "", 204, list[dict[str, Any]]()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"

    def types(self) -> list[str]:
        return [one["body"]["type"] for one in self.received]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        ident, timestamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        key = base64.b64decode(self.server.secret.removeprefix("whsec_"))
        mac = hmac.digest(key, f"{ident}.{timestamp}.".encode() + body, hashlib.sha256)
        right = self.headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"
        self.server.received.append(
            {"id": ident, "body": json.loads(body), "signed": right, "path": self.path}
        )
        self.send_response(self.server.status)
        if self.server.status in (301, 307):
            self.send_header("Location", self.server.url.replace("/hook", "/elsewhere"))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens on loopback."""
    server = Receiver()
    with listening(server):
        yield server
