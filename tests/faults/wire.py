"""An engine whose server gets something wrong: answers are changed on their way. Only Python's own library.

``python wire.py PORT INNER '["operation", …]' ARGUMENT…`` starts ``python ARGUMENT…``, which serves on INNER,
and serves the same on PORT, but for what the operations do.
"""

from __future__ import annotations

import http.client
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the engine's Python runs this file
from tests.faults import interposing, operations, relaying, upstream
from tests.faults.conversation import Broken, Conversation, State


def named(*, of: str) -> dict[str, Callable[..., Any]]:
    """The operations on this, by their last argument: a request has no data of an answer yet."""
    modules = (operations, relaying, interposing, upstream)
    every = (one for module in modules for one in vars(module).values() if inspect.isfunction(one))
    public = (one for one in every if not one.__name__.startswith("_"))
    return {one.__name__: one for one in public if [*inspect.signature(one).parameters][-1] == of}


BEFORE, AFTER, LINES = (named(of=name) for name in ("_data", "data", "line"))
STREAMS, STATUSES = (named(of=name) for name in ("lines", "status"))
CHATS = "/v1/chat/completions"


def well_formed(request: Any) -> bool:
    """Whether a chat has what operations read of it: what has not is passed on as it came."""
    messages, tools = (request.get(key) or [] for key in ("messages", "tools"))
    if not messages or not isinstance(messages, list) or not isinstance(tools, list):
        return False
    turns = all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages)
    texts = turns and not any(isinstance(m.get("content"), int) for m in messages)
    return texts and all((tool.get("function") or {}).get("name") for tool in tools)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # an answer ends with its connection
    inner = 0
    state = State()
    operations: tuple[str, ...] = ()

    def do_GET(self) -> None:
        self._pass_on(None, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = json.loads(body) if self.path == CHATS else {}
        if not well_formed(request):
            self._pass_on(body, None)
            return
        chat = Conversation(request, self.state)
        self.state.asked += 1
        self.state.flying.append(chat.request)
        try:
            for name in self.operations:
                if name in BEFORE:
                    BEFORE[name](chat, {})
            self._pass_on(json.dumps(chat.request).encode(), chat)
        except Broken as error:
            told = json.dumps({"error": {"message": str(error)}})
            self._answer(error.status, "application/json", told.encode())
        except (BrokenPipeError, ConnectionResetError):
            self.state.left += 1
        finally:
            self.state.flying.remove(chat.request)

    def _pass_on(self, body: bytes | None, chat: Conversation | None) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.inner, timeout=300)
        head = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(self.command, self.path, body, head)
            answer = connection.getresponse()
        except OSError:  # not up yet: nobody answers
            self.close_connection = True
            return
        kind = answer.headers.get("Content-Type") or "application/json"
        if chat is None or answer.status != 200:
            status = answer.status
            for name in self.operations:
                status = STATUSES[name](status) if name in STATUSES else status
            self._answer(status, kind, answer.read())
        elif chat.whole:
            self._answer(200, kind, self._changed(chat, answer.read()))
        else:
            self._answer(200, kind, b"")
            events: Iterable[bytes] = (self._event(chat, line) for line in answer)
            for name in self.operations:
                events = STREAMS[name](events) if name in STREAMS else events
            for piece in events:
                self.wfile.write(piece)
                self.wfile.flush()
        connection.close()

    def _event(self, chat: Conversation, line: bytes) -> bytes:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or not data.startswith(b"{"):
            for name in self.operations:
                line = LINES[name](chat, line) if name in LINES else line
            return line
        events = [self._changed(chat, data)]
        events += [json.dumps(more, ensure_ascii=False).encode() for more in chat.kept.pop("more", ())]
        return b"\n\n".join(b"data: " + event for event in events) + b"\n"

    def _changed(self, chat: Conversation, body: bytes) -> bytes:
        data = json.loads(body)
        for name in self.operations:
            if name in AFTER:
                AFTER[name](chat, data)
        return json.dumps(data, ensure_ascii=False).encode()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


def main() -> None:
    port, inner, wanted = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    unknown = set(wanted) - {*BEFORE, *AFTER, *LINES, *STREAMS, *STATUSES}
    assert not unknown, unknown
    Handler.inner, Handler.operations = inner, tuple(wanted)
    with subprocess.Popen([sys.executable, *sys.argv[4:]]) as engine:
        Handler.state.engine = engine.pid
        server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code = engine.wait()
        raise SystemExit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
