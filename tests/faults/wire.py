"""An engine whose server gets something wrong: answers are changed on their way. Only Python's own library.

``python wire.py PORT INNER '["operation", …]' ARGUMENT…`` starts ``python ARGUMENT…``, which serves on INNER,
and serves the same on PORT, but for what the operations do.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the engine's Python runs this file
from tests.faults import (
    blind_a_wire,
    blind_b_relaying,
    blind_c_wire,
    blind_d_wire,
    blind_e_wire,
    blind_f_wire,
    blind_g_wire,
    blind_h_wire,
    blind_i_wire,
    blind_j_wire,
    blind_k_wire,
    blind_l_wire,
    blind_m_wire,
    blind_n_wire,
    blind_o_wire,
    blind_p_wire,
    blind_q_wire,
    blind_r_wire,
    interposing,
    operations,
    relaying,
)
from tests.faults.conversation import Broken, Conversation, State

BEFORE = (
    operations.BEFORE
    | relaying.BEFORE
    | interposing.BEFORE
    | blind_a_wire.BEFORE
    | blind_b_relaying.BEFORE
    | blind_c_wire.BEFORE
    | blind_d_wire.BEFORE
    | blind_e_wire.BEFORE
    | blind_f_wire.BEFORE
    | blind_h_wire.BEFORE
    | blind_g_wire.BEFORE
    | blind_i_wire.BEFORE
    | blind_j_wire.BEFORE
    | blind_k_wire.BEFORE
    | blind_l_wire.BEFORE
    | blind_m_wire.BEFORE
    | blind_n_wire.BEFORE
    | blind_o_wire.BEFORE
    | blind_p_wire.BEFORE
    | blind_q_wire.BEFORE
    | blind_r_wire.BEFORE
)
AFTER = (
    operations.AFTER
    | relaying.AFTER
    | interposing.AFTER
    | blind_a_wire.AFTER
    | blind_b_relaying.AFTER
    | blind_c_wire.AFTER
    | blind_d_wire.AFTER
    | blind_e_wire.AFTER
    | blind_f_wire.AFTER
    | blind_h_wire.AFTER
    | blind_g_wire.AFTER
    | blind_i_wire.AFTER
    | blind_j_wire.AFTER
    | blind_k_wire.AFTER
    | blind_l_wire.AFTER
    | blind_m_wire.AFTER
    | blind_n_wire.AFTER
    | blind_o_wire.AFTER
    | blind_p_wire.AFTER
    | blind_q_wire.AFTER
    | blind_r_wire.AFTER
)
LINES = relaying.LINES | blind_a_wire.LINES | blind_r_wire.LINES
STREAMS = (
    interposing.STREAMS
    | blind_c_wire.STREAMS
    | blind_d_wire.STREAMS
    | blind_f_wire.STREAMS
    | blind_h_wire.STREAMS
    | blind_g_wire.STREAMS
    | blind_i_wire.STREAMS
    | blind_j_wire.STREAMS
    | blind_k_wire.STREAMS
    | blind_l_wire.STREAMS
    | blind_m_wire.STREAMS
    | blind_n_wire.STREAMS
    | blind_o_wire.STREAMS
    | blind_p_wire.STREAMS
    | blind_q_wire.STREAMS
    | blind_r_wire.STREAMS
)
CHATS = "/v1/chat/completions"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # an answer ends with its connection
    inner = 0
    state = State()
    operations: tuple[str, ...] = ()

    def do_GET(self) -> None:
        self._pass_on(None, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != CHATS:
            self._pass_on(body, None)
            return
        chat = Conversation(json.loads(body), self.state)
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
            self._answer(answer.status, kind, answer.read())
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
    unknown = set(wanted) - {*BEFORE, *AFTER, *LINES, *STREAMS}
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
