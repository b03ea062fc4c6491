"""Programs that answer as no cluster does: what they print stands in files, one for each question."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

RUN = "run-1"
# The words of kubectl without its place: the first file that is there answers.
KUBECTL = """#!/bin/sh
[ "$1" = config ] && exit 0
shift 6
[ "$1" = create ] && cat >/dev/null
for name in "$1-$2" "$1"; do [ -e "{folder}/$name" ] && break; done
"""
PLAIN = '#!/bin/sh\nname="{tool}-said"\n'
SSH = "#!/bin/sh\ncat >/dev/null\nname=ssh-said\n"
ANSWER = """
[ -e "{folder}/$name.err" ] && cat "{folder}/$name.err" >&2
cat "{folder}/$name" 2>/dev/null
[ -e "{folder}/$name.code" ] && exit "$(cat "{folder}/$name.code")"
exit 0
"""
HEADS = {"kubectl": KUBECTL, "ssh": SSH}


def put(folder: Path, tool: str) -> None:
    """Put a program in ``folder``; its answers lie beside it."""
    text = (HEADS.get(tool, PLAIN) + ANSWER).replace("{folder}", str(folder)).replace("{tool}", tool)
    (folder / tool).write_text(text)
    (folder / tool).chmod(0o755)


def job(**more: Any) -> dict[str, Any]:
    metadata = {"name": RUN, "uid": "3f2a-1", "labels": {"importer/run": RUN}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": {"active": 1}, **more}


def pod(**more: Any) -> dict[str, Any]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": f"{RUN}-x7k2p"}, "spec": {"nodeName": "gpu-07"}, "status": status, **more}


def items(*found: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [*found]}


SOUND: Mapping[str, Any] = {
    "get-job": job(), "get-pods": items(pod()), "get-configmaps": items(), "get-events": items(),
    "ray": {"submission_id": RUN, "status": "RUNNING", "message": "it runs"},
    "ray-logs": {"logs": "importer-step one\n"},
}  # fmt: skip
DEEP, LARGE, MANY = 100_000, 100 * 2**20, 100_000


def text(data: Any) -> bytes:
    return json.dumps(data, indent=1).encode()


def odd(sound: Any) -> Mapping[str, Callable[[], bytes]]:
    """Answers that are none, whatever was asked."""
    good = text(sound)
    return {
        "empty-object": lambda: b"{}",
        "null": lambda: b"null",
        "string": lambda: b'"Running"',
        "list-of-numbers": lambda: b"[1, 2]",
        "text": lambda: b"error: You must be logged in to the server",
        "cut": lambda: good[:-3],
        "text-before": lambda: b"Welcome to the cluster!\n" + good.replace(b"\n", b""),
        "text-after": lambda: good.replace(b"\n", b"") + b"\nbye",
        "two-documents": lambda: good.replace(b"\n", b"") + b"\n" + good.replace(b"\n", b""),
        "bom": lambda: b"\xef\xbb\xbf" + good.replace(b"\n", b""),
        "utf-16": lambda: good.decode().encode("utf-16"),
        "invalid-utf-8": lambda: b"\xff\xfe\xfd{",
        "nul-around": lambda: b"\0" + good.replace(b"\n", b"") + b"\0",
        "ansi": lambda: b"\x1b[2J\x1b[31mtrouble\x1b[0m",
        "nan": lambda: b"[NaN]",
        "huge-integer": lambda: b"9" * 100_000,
        "deep-lists-closed": lambda: b"[" * DEEP + b"]" * DEEP,
        "deep-objects": lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep-status": lambda: b'{"status":' + b"[" * DEEP + b"]" * DEEP + b"}",
        "surrogate": lambda: b'{"status": "\\ud800", "items": ["\\udfff"]}',
        "duplicate-keys": lambda: (
            b'{"items": [], "items": 1, "status": [], "status": {}, "logs": "", "logs": 1}'
        ),
        "large": lambda: b"x" * LARGE,
        "large-space": lambda: b" " * LARGE,
    }


def wrong(name: str) -> Mapping[str, Callable[[], bytes]]:
    """Answers of the right shape and types with a value that is none, for one question."""
    found: dict[str, list[Any]] = {
        "get-job": [
            job(metadata=None), job(metadata={"name": RUN, "uid": "u\0"}), job(kind="Pod"),
            job(metadata={"name": "another", "uid": "u"}), job(status={"conditions": [None]}),
        ],
        "get-pods": [
            items(pod(metadata={"name": "--all"})), items(pod(metadata={"name": "a\0b"})),
            items(pod(metadata={"name": "x" * 10**6})), items(pod(status={"phase": "Sleeping"})),
            items(*[pod()] * MANY), items(*[1] * MANY),
        ],
        "ray": [{"status": "running"}, {"status": "SLEEPING"}, {"status": "RUNNING", "message": 7}],
        "ray-logs": [{"logs": None}],
    }  # fmt: skip
    return {f"wrong-{number}": partial(text, data) for number, data in enumerate(found.get(name, []))}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DRIPS = {
    "body": HEAD + b"Content-Length: 1000000\r\n\r\n",
    "body-without-length": HEAD + b"\r\n",
    "chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n",
    "chunk-size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    "header": HEAD + b"X-Long: ",
    "status": b"HTTP/1.1 200 ",
    "nothing": b"",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,  # again and again
}


@contextmanager
def dripping(head: bytes, *, again: bool = False) -> Iterator[int]:
    """A server that answers with ``head``, then one byte after another or the head ``again``, for ever."""
    ending = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(head)
            while not ending.is_set():
                connection.sendall(head if again else b"x")
                time.sleep(0.05)

    def serve() -> None:
        while not ending.is_set():
            with suppress(TimeoutError):
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        ending.set()
        thread.join()
        server.close()
