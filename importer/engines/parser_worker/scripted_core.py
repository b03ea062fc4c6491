"""vLLM's Rust frontend with an engine core that answers from a script.

The wire is that of vLLM 0.33 (``v1/engine/core.py``, ``v1/engine/__init__.py``): msgpack over ZeroMQ. The
core connects to two listening sockets that the frontend inherits, and introduces itself with the values of
``READY``. A request is an array with its id first and its sampling fourth; the script of a request stands
under its ``seed``, that no parser reads. An answer is an array of outputs: id, tokens, …, finish reason.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import zmq

from .wire import Overrun

HOST = "127.0.0.1"
MODEL = "model"
READY: Mapping[str, Any] = {
    "max_model_len": 1 << 20, "num_gpu_blocks": 1 << 16, "block_size": 16, "dp_stats_address": None,
    "dtype": "bfloat16", "vllm_version": "", "world_size": 1, "data_parallel_size": 1,
    "tensor_parallel_size": 1, "pipeline_parallel_size": 1, "decode_context_parallel_size": 1,
    "data_parallel_rank": 0, "max_num_seqs": 256, "max_num_batched_tokens": 1 << 20,
    "instance_id": "importer", "supports_lora": False, "max_loras": 0,
}  # fmt: skip
IDENTITY = (0).to_bytes(2, "little")  # of the engine with rank 0
ADD = b"\x00"
STOPPED = 0  # the finish reason of a stop token
SAMPLING = 3  # place of the sampling in a request
# One thread for each: dozens of them run on few cores.
VARIABLES = {
    "TOKIO_WORKER_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "MALLOC_ARENA_MAX": "2",  # or each thread reserves 64 MiB of the address space, that is bounded
    "NO_COLOR": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
START_SECONDS = 15.0  # it takes 0.1 s on a machine with nothing else to do
SHOWN = 300  # characters of an error
CONTEXT = zmq.Context()  # one for all: each has threads of its own


class FrontendError(Exception):
    """The server ended, or answered with an error; the text is its own."""


class Frontend:
    """A running server with its parsers; a context manager, and safe for several threads.

    ``grammar`` is the structural tag that the server demanded with the last request, if any.
    """

    def __init__(
        self, binary: str, folder: str, tool: str | None, reasoning: str | None, seconds: float
    ) -> None:
        """Start the server, and wait until it answers; raises FrontendError with its last words, or Overrun.

        ``seconds`` bounds each answer.
        """
        self.grammar: str | None = None
        self._seconds = seconds
        self._scripts: dict[int, Sequence[Sequence[int]]] = {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        clients, inputs, outputs = _listening(), _listening(), _listening()
        self._port = clients.getsockname()[1]
        arguments = {
            "model_tag": folder,
            "served_model_name": [MODEL],
            "tool_call_parser": tool or "none",
            "reasoning_parser": reasoning or "none",
            "tokenizer_mode": "hf",
            "generation_config": "vllm",
            "engine_ready_timeout_secs": int(START_SECONDS),
        }
        command = [binary, "frontend", "--args-json", json.dumps(arguments)]
        named = {"--listen-fd": clients, "--input-listener-fd": inputs, "--output-listener-fd": outputs}
        for flag, listener in named.items():
            command += [flag, str(listener.fileno())]
        self._process = subprocess.Popen(
            command,
            pass_fds=[listener.fileno() for listener in named.values()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **VARIABLES},
        )
        self._closing, closed = socket.socketpair()
        ports = inputs.getsockname()[1], outputs.getsockname()[1]
        self._core = threading.Thread(target=self._serve, args=(*ports, closed), daemon=True)
        self._core.start()
        for listener in named.values():
            listener.close()  # the server has them; without it, a client is refused at once
        self._wait()

    def __enter__(self) -> Frontend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and its core."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._closing.close()
        self._core.join(1)
        self._log.close()

    def ask(self, body: Mapping[str, Any], pieces: Sequence[Sequence[int]]) -> str:
        """Return the body of the answer to a chat request, whose tokens come in ``pieces``.

        Raises FrontendError for another status than 200.
        """
        with self._lock:
            number = len(self._scripts) + 1
            self._scripts[number] = pieces
        text = json.dumps({**body, "model": MODEL, "seed": number})
        status, answer = self._post(text)
        if status != 200:
            raise FrontendError(_words(answer))
        return answer

    def _post(self, text: str) -> tuple[int, str]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(HOST, self._port, timeout=self._seconds)
            self._local.connection = connection
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/chat/completions", text.encode(), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except TimeoutError:
            self._local.connection = None
            connection.close()
            raise Overrun(self._seconds) from None
        except (OSError, http.client.HTTPException) as error:
            self._local.connection = None
            connection.close()
            if self._process.poll() is not None:
                raise FrontendError(self._last_words()) from None
            raise FrontendError(f"no answer: {error}") from None

    def _wait(self) -> None:
        """Wait for the server; raises FrontendError, or Overrun on a machine that is too busy."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                words = self._last_words()
                self.close()
                raise FrontendError(words)
            connection = http.client.HTTPConnection(HOST, self._port, timeout=self._seconds)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.01)
        self.close()
        raise Overrun(START_SECONDS)

    def _last_words(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        _, _, cause = text.rpartition("Caused by:")
        words = " ".join((cause or text).split())
        return words[:SHOWN] if cause else words[-SHOWN:]

    def _serve(self, inputs: int, outputs: int, closed: socket.socket) -> None:
        """Answer the requests of the server until this side is closed."""
        with closed, CONTEXT.socket(zmq.DEALER) as asked, CONTEXT.socket(zmq.PUSH) as answered:
            for link in (asked, answered):
                link.setsockopt(zmq.LINGER, 0)
            asked.setsockopt(zmq.IDENTITY, IDENTITY)
            asked.connect(f"tcp://{HOST}:{inputs}")
            answered.connect(f"tcp://{HOST}:{outputs}")
            asked.send(msgspec.msgpack.encode(READY))
            poller = zmq.Poller()
            poller.register(asked, zmq.POLLIN)
            poller.register(closed, zmq.POLLIN)
            while True:
                ready = dict(poller.poll())
                if closed.fileno() in ready:
                    break
                kind, *frames = asked.recv_multipart()
                if kind == ADD:
                    self._answer(msgspec.msgpack.decode(frames[0]), answered)

    def _answer(self, request: Sequence[Any], answered: Any) -> None:
        """Send the pieces of the request's script, the last one with the end of the answer."""
        name, sampling = request[0], request[SAMPLING]
        self.grammar = (sampling.get("structured_outputs") or {}).get("structural_tag")
        pieces = self._scripts[sampling["seed"]]
        for number, piece in enumerate(pieces, 1):
            last = number == len(pieces)
            output = [name, list(piece), None, None, None, STOPPED if last else None]
            answer = [0, [output], None, time.monotonic(), None, [name] if last else None]
            answered.send(msgspec.msgpack.encode(answer))


def _listening() -> socket.socket:
    listener = socket.socket()
    listener.bind((HOST, 0))
    listener.listen(128)
    return listener


def _words(answer: str) -> str:
    """Return the words of an error in the form of OpenAI's API."""
    try:
        return str(json.loads(answer)["error"]["message"])[:SHOWN]
    except (ValueError, KeyError, TypeError):
        return answer[:SHOWN] or "an error without words"
