"""The make of a running server, from answers as vLLM, mlx-lm, mlx-vlm and vllm-mlx give them."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from importer.validation.client import Client
from importer.validation.evidence_sources import Make, recognise
from tests.serving import listening

FINGERPRINT = "0.32.2-0.32.4-Linux-6.18.44-fc-v657-x86_64-with-glibc2.36-x86_64"
MESSAGE = {"choices": [{"index": 0, "finish_reason": "length", "message": {"content": "a"}}]}


@pytest.mark.parametrize(
    ("server", "answers", "make"),
    [
        ("mlx_vlm/0.7.10", {"/v1/models": {"data": [{"id": "m"}]}}, Make("mlx-vlm", "0.7.10")),
        ("uvicorn", {"/v1/models": {"data": [{"owned_by": "vllm-mlx"}]}}, Make("vllm-mlx", None)),
        ("envoy", {"/v1/models": {"data": [{"owned_by": "vllm"}]}, "/version": {"version": "0.32.0"}},
         Make("vllm", "0.32.0")),
        ("BaseHTTP/0.6", {"/v1/chat/completions": {**MESSAGE, "system_fingerprint": FINGERPRINT}},
         Make("mlx", "0.32.2")),
        ("x", {"/v1/chat/completions": {**MESSAGE, "system_fingerprint": "fp_44709d6fcb"}}, None),
        ("x", {"/v1/models": {"data": "none"}, "/v1/chat/completions": []}, None),
        ("x", {}, None),
    ],
)  # fmt: skip
def test_a_server_is_recognised_by_what_it_shows(
    server: str, answers: dict[str, Any], make: Make | None
) -> None:
    class Shows(BaseHTTPRequestHandler):
        def version_string(self) -> str:
            return server

        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    shown = ThreadingHTTPServer(("127.0.0.1", 0), Shows)
    with listening(shown):
        assert recognise(Client(f"http://127.0.0.1:{shown.server_port}"), "m") == make
