"""A ``kubectl`` of the tests' own: the real one reads the words, and the container of its pod is run here.

``kubectl run`` attaches to a container, and no package index has a control plane. The real program sends its
pod to an API that refuses it; then the container's command takes its place, with the client's stdin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KUBECTL = "REAL_KUBECTL"
POD = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["create", "get"]}
DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [POD]},
}
REFUSED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}


class Api(BaseHTTPRequestHandler):
    """The API: what exists, and the pods that were sent."""

    pods: list[dict[str, Any]] = []  # noqa: RUF012 - one server

    def answer(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        found = DISCOVERY.get(self.path.partition("?")[0])
        self.answer(200 if found else 404, found or REFUSED)

    def do_POST(self) -> None:
        self.pods.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(403, REFUSED)

    def log_message(self, *_: Any) -> None:
        pass


def put(folder: Path, kubectl: Path) -> None:
    """Put the program into a folder."""
    folder.mkdir(exist_ok=True)
    start = f'#!/bin/sh\n{KUBECTL}={kubectl} exec {sys.executable} {Path(__file__).resolve()} "$@"\n'
    (folder / "kubectl").write_text(start)
    (folder / "kubectl").chmod(0o755)


def main(words: list[str]) -> None:
    """Let the real program send its pod, and become its container."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = [*words[:1], f"--server=http://127.0.0.1:{server.server_port}", *words[1:]]
    sent = subprocess.run(
        [os.environ[KUBECTL], *at], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if len(Api.pods) != 1:
        sys.exit(sent.stderr)
    (container,) = Api.pods[0]["spec"]["containers"]
    if Api.pods[0]["spec"]["automountServiceAccountToken"] or not container["stdinOnce"]:
        sys.exit(f"not the pod of the preset: {Api.pods[0]}")
    os.execv(container["command"][0], container["command"])


if __name__ == "__main__":
    main(sys.argv[1:])
