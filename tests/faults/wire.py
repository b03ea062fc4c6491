"""An engine whose server gets something wrong: answers are changed on their way. Only Python's own library.

``python wire.py PORT INNER '["operation", …]' ARGUMENT…`` starts ``python ARGUMENT…``, which serves on INNER,
and serves the same on PORT, but for what the operations do.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Data = dict[str, Any]
CHATS = "/v1/chat/completions"
MIDWAY = 12  # chats


class Conversation:
    """One chat on its way: ``request`` may be changed before, ``data`` of each answer or event after.

    ``whole`` unless it is streamed; ``kept`` is for what an operation remembers between two events.
    """

    def __init__(self, request: Data) -> None:
        self.request = request
        self.whole = not request.get("stream")
        self.kept: Data = {}

    def parts(self, data: Data) -> Iterator[Data]:
        """What the choices hold: messages or deltas."""
        for choice in data.get("choices") or ():
            part = choice.get("message" if self.whole else "delta")
            if isinstance(part, dict):
                yield part

    def calls(self, data: Data) -> Iterator[Data]:
        for part in self.parts(data):
            yield from part.get("tool_calls") or ()


Operation = Callable[[Conversation, Data], None]


def finish_is_stop(_chat: Conversation, data: Data) -> None:
    """A call ends with the word for a plain answer."""
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


def finish_is_stop_when_cut(_chat: Conversation, data: Data) -> None:
    """A cut answer ends with the word for a whole one."""
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "length":
            choice["finish_reason"] = "stop"


def arguments_twice(chat: Conversation, data: Data) -> None:
    """Arguments are JSON in JSON; an object where a text belongs is one, too."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if chat.whole and isinstance(function.get("arguments"), str):
            function["arguments"] = json.dumps(function["arguments"])


def values_as_text(chat: Conversation, data: Data) -> None:
    """Every value of the arguments is text, objects and numbers too."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        try:
            given = json.loads(function.get("arguments") or "")
        except ValueError:
            continue
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()}
        function["arguments"] = json.dumps(texts)


def streamed_call_as_text(chat: Conversation, data: Data) -> None:
    """Streamed calls arrive as content."""
    if chat.whole:
        return
    for part in chat.parts(data):
        for call in part.pop("tool_calls", None) or ():
            function = call.get("function") or {}
            name = f'{{"name": "{function["name"]}", "arguments": ' if function.get("name") else ""
            part["content"] = (part.get("content") or "") + name + (function.get("arguments") or "")
    finish_is_stop(chat, data)


def streamed_brace_lost(chat: Conversation, data: Data) -> None:
    """The last brace of streamed arguments does not arrive."""
    for call in () if chat.whole else chat.calls(data):
        function = call.get("function") or {}
        if (function.get("arguments") or "").endswith("}"):
            function["arguments"] = function["arguments"][:-1]


def no_ids(chat: Conversation, data: Data) -> None:
    """Calls have no id."""
    for call in chat.calls(data):
        call.pop("id", None)


def one_index(chat: Conversation, data: Data) -> None:
    """All calls of a stream have the same place."""
    for call in () if chat.whole else chat.calls(data):
        call["index"] = 0


def streamed_end_token(chat: Conversation, data: Data) -> None:
    """The token that ends a turn is decoded into a streamed answer."""
    for choice in () if chat.whole else data.get("choices") or ():
        if choice.get("finish_reason") == "stop":
            choice["delta"]["content"] = (choice["delta"].get("content") or "") + "<|im_end|>"


def reasoning_lost_when_streamed(chat: Conversation, data: Data) -> None:
    """Streamed thoughts arrive as content."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("reasoning", "reasoning_content"):
            if thought := part.pop(key, None):
                part["content"] = (part.get("content") or "") + thought


def counts_nothing(_chat: Conversation, data: Data) -> None:
    """The answer's tokens are counted as none."""
    if isinstance(data.get("usage"), dict):
        data["usage"]["completion_tokens"] = 0


def limit_unheard(chat: Conversation, _data: Data) -> None:
    """``max_tokens`` of a request is not heard."""
    chat.request["max_tokens"] = max(chat.request.get("max_tokens") or 0, 400)


def tools_dropped(chat: Conversation, _data: Data) -> None:
    """Tools of a request do not reach the template."""
    chat.request.pop("tools", None)


def system_dropped(chat: Conversation, _data: Data) -> None:
    """The system's turn does not reach the template."""
    chat.request["messages"] = [m for m in chat.request["messages"] if m.get("role") != "system"]


def last_turn_only(chat: Conversation, _data: Data) -> None:
    """Turns before the last of the user do not reach the template."""
    messages = chat.request["messages"]
    asked = [i for i, m in enumerate(messages) if m.get("role") == "user"]
    chat.request["messages"] = messages[asked[-1] :]


def names_invented(chat: Conversation, data: Data) -> None:
    """A refusal comes out as a call of a tool that nobody offered."""
    for choice in data.get("choices") or ():
        part = choice.get("message") or {}
        if chat.request.get("tools") and "cannot" in (part.get("content") or ""):
            function = {"name": "look_up", "arguments": "{}"}
            part["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
            part["content"], choice["finish_reason"] = None, "tool_calls"


def dies_midway(chat: Conversation, _data: Data) -> None:
    """Somebody kills the engine while it is asked, as the system does where the memory runs out."""
    Handler.asked += 1
    if Handler.asked == MIDWAY:
        os.kill(Handler.engine, signal.SIGKILL)


class Broken(Exception):
    """The server answers with an error of its own."""


def breaks_on_results(chat: Conversation, _data: Data) -> None:
    """A conversation in which a tool has spoken ends in an error of the server."""
    if any(m.get("role") == "tool" for m in chat.request["messages"]):
        raise Broken("TypeError: can only concatenate str (not 'NoneType') to str")


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (limit_unheard, tools_dropped, system_dropped, last_turn_only, breaks_on_results, dies_midway)
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        finish_is_stop,
        finish_is_stop_when_cut,
        arguments_twice,
        values_as_text,
        streamed_call_as_text,
        streamed_brace_lost,
        no_ids,
        one_index,
        streamed_end_token,
        reasoning_lost_when_streamed,
        counts_nothing,
        names_invented,
    )
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # an answer ends with its connection
    inner = engine = asked = 0
    operations: tuple[str, ...] = ()

    def do_GET(self) -> None:
        self._pass_on(None, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != CHATS:
            self._pass_on(body, None)
            return
        chat = Conversation(json.loads(body))
        try:
            for name in self.operations:
                if name in BEFORE:
                    BEFORE[name](chat, {})
        except Broken as error:
            self._answer(500, "application/json", json.dumps({"error": {"message": str(error)}}).encode())
            return
        self._pass_on(json.dumps(chat.request).encode(), chat)

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
            for line in answer:
                self.wfile.write(self._event(chat, line))
                self.wfile.flush()
        connection.close()

    def _event(self, chat: Conversation, line: bytes) -> bytes:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or not data.startswith(b"{"):
            return line
        return b"data: " + self._changed(chat, data) + b"\n"

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
    port, inner, operations = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    unknown = set(operations) - {*BEFORE, *AFTER}
    assert not unknown, unknown
    Handler.inner, Handler.operations = inner, tuple(operations)
    with subprocess.Popen([sys.executable, *sys.argv[4:]]) as engine:
        Handler.engine = engine.pid
        server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code = engine.wait()
        raise SystemExit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
