"""A server of a few lines that is started like an engine: it serves, dies, hangs or holds on, as told.

``python toy_engine.py PORT MODE``. Beside it stands ``Toy``, its adapter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def adapter(mode: str, *, warm_up: bool = False, host: str = "", on_cards: bool = False) -> Any:
    """The adapter; its imports stay out of the toy's own process."""
    from importer.engines.base import Launch, Readiness
    from importer.engines.deaths import Death, Died

    warm = ("/warm", {"n": 1}) if warm_up else None
    ready = Readiness("/health", fatal=(503,), warm_up=warm, seconds=120)

    @dataclass(frozen=True)
    class Toy:
        name: str = "toy"
        distributions: tuple[str, ...] = ("toy",)
        readiness: Readiness = ready
        deaths: tuple[Death, ...] = (
            Death(r"(?P<words>ToyError: .*)", Died.LAST_WORDS),
            Death(r"No available memory for the cache", Died.NO_MEMORY_FOR_CACHE, "environment"),
        )
        takes_template: bool = True
        needs_card: bool = on_cards
        system: tuple[tuple[str, str], ...] = ()

        def plan(self) -> tuple[tuple[str, ...], ...]:
            return ()

        def launch(self, document: Any, model_dir: Path, port: int, template: Any = None) -> Launch:
            words = (str(Path(__file__)), str(port), mode, *(("--host", host) if host else ()))
            return Launch(
                words, "toy-model", {"TOY": "1", "TOY_MODEL": str(model_dir), **(document.get("env") or {})}
            )

        def client_sampling(self, document: Any) -> dict[str, Any]:
            return {}

    return Toy()


class Handler(BaseHTTPRequestHandler):
    mode = ""

    def do_GET(self) -> None:
        status = 503 if self.mode == "broken" else 404 if self.mode == "never" else 200
        self.answer(status, {"env": dict(os.environ), "cwd": str(Path.cwd())})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.mode == "stuck":
            time.sleep(60)
        self.answer(404 if self.mode == "cold" else 200, {})

    def answer(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def die(mode: str) -> None:
    """End at the start, where this mode or a variable asks for that."""
    if mode == "dies":
        raise SystemExit("ToyError: no wheels")
    if mode == "finds-no-room":
        raise SystemExit("ValueError: No available memory for the cache blocks.")
    if mode == "dies-strangely":
        raise RuntimeError("something nobody has seen")
    config = Path(os.environ.get("TOY_MODEL", "/none"), "config.json")
    if mode == "wants-config" and not config.is_file():
        raise RuntimeError("something in these files")
    if mode == "hates-quantization" and "quantization_config" in config.read_text():
        raise RuntimeError("something in these files")
    if os.environ.get("TOY_HATES"):
        raise RuntimeError("it does not say why")


def main(port: int, mode: str, host: str = "127.0.0.1") -> None:
    print("toy starts", flush=True)
    Handler.mode = mode
    die(mode)
    if mode == "still":
        print("RuntimeError: a thread ended", flush=True)
        time.sleep(600)
    if mode == "busy":
        print("RuntimeError: tried again", flush=True)
        while time.process_time() < 3:
            pass
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "parent":  # a worker that its own parent forgets
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ThreadingHTTPServer((host, port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *sys.argv[4:])
