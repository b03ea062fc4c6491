"""vLLM's Rust frontend: ``vllm-rs render`` over a folder of our making, without an engine.

The folder holds the template, the named tokens, the model's type, and a tokenizer whose tokens are bytes: the
ids of a prompt are its text. The program is part of every wheel of vLLM from 0.33 on.

The template is a stranger's, and this program has no limits of its own. So it runs under the supervisor of
engines, within ``MEMORY``, and is asked nothing more after an answer that takes too long.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from importer import config, launcher
from importer.engines.deaths import Accident, ParserFailure
from importer.engines.parsers import FORMATS, Answer, Conversation, EnginePrompt
from importer.engines.ports import LOOPBACK, free_port
from importer.engines.process import SUPERVISOR, lifeline
from importer.engines.tokenizer import byte_of_character
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.launcher import Purpose, isolated
from importer.reasons import Reason
from importer.sandbox.task import Closing

PROGRAM = "vllm-rs"
VARIABLE = "IMPORTER_VLLM_RS"  # a user's own program
PATH = "/v1/chat/completions/render"
START_SECONDS, SECONDS, PAUSE = 20.0, 10.0, 0.01  # it is up in 0.1 s and answers in 2 ms
GRACE = 0.5  # seconds between the death of importer and that of the program, and to see that it died
MEMORY = 3 << 30  # bytes of address space; 1.2 GiB are reserved at its start
MOST_ANSWER = 16 << 20  # bytes; an id takes four of them, and a template writes up to 100,000 characters
SETTINGS = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1"}
LEFT_OUT = {"added_tokens_decoder", "auto_map", "chat_template", "tokenizer_file"}


def program(python: Path | None = None) -> Path | None:
    """Return the program: of the user's variable, beside vLLM of ``python`` or of the managed environment
    for cards, or in a managed folder of its own.
    """
    named = os.environ.get(VARIABLE)
    if named:
        places = [Path(named).expanduser()]
    else:
        engines = config.home() / "engines"
        roots = [*([] if python is None else [python.parent.parent]), engines / "vllm-cuda" / "venv"]
        places = [p for root in roots for p in root.glob(f"lib/python3*/site-packages/vllm/{PROGRAM}")]
        places.append(engines / PROGRAM / PROGRAM)
    return next((path.absolute() for path in places if os.access(path, os.X_OK) and path.is_file()), None)


class RustRenderer:
    """The Rust frontend at ``path``; each question starts it once per form of contents, side by side."""

    name = "vllm-rust"

    def __init__(self, path: Path) -> None:
        self._path = path

    def version(self) -> str:
        """Return the version that the program reports; raises EngineError("worker-failed")."""
        try:
            done = launcher.run([str(self._path), "--version"], Purpose.PARSERS, seconds=START_SECONDS)
        except OSError as error:
            raise _failed(error.strerror or str(error)) from None
        return done.output.split()[-1] if done.output.split() else ""

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return the prompts; raises EngineError("worker-failed") where the program does not start."""
        with ExitStack() as stack:
            with tempfile.TemporaryDirectory(prefix="importer-render-") as folder:
                _write(Path(folder), tokens)
                servers = {f: stack.enter_context(_Server(self._path, folder, f)) for f in FORMATS}
                for server in servers.values():
                    server.wait()
            # The files are read by now, and gone also where importer is killed meanwhile.
            return {form: [server.answer(c) for c in conversations] for form, server in servers.items()}


class _Server(Closing):
    """One running program, with one form of contents."""

    def __init__(self, path: Path, folder: str, form: str) -> None:
        self._port = free_port()
        argv = [
            str(path), "render", folder, f"--port={self._port}", "--tool-call-parser=none",
            "--reasoning-parser=none", "--served-model-name=model", f"--chat-template-content-format={form}",
        ]  # fmt: skip
        self._form = form
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._late: Reason | None = None
        with ExitStack() as stack:
            stack.callback(self._log.close)
            watched = stack.enter_context(lifeline())
            command = isolated(str(SUPERVISOR), str(watched), str(GRACE), *argv)
            try:
                self._process = launcher.start(
                    command, Purpose.PARSERS, stdout=self._log, stderr=self._log, extra=SETTINGS,
                    keep=(watched,),
                )  # fmt: skip
            except OSError as error:
                raise _failed(error.strerror or str(error)) from None
            stack.callback(launcher.end, self._process)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def answer(self, conversation: Conversation) -> Answer:
        """Return the prompt of one conversation, or the message of the refusal.

        Once an answer was late there is no other: the program may still be busy with it.
        """
        if self._late is not None:
            return self._late
        body = {
            "model": "model",
            "messages": [_once(message) for message in conversation.messages],
            "chat_template_kwargs": dict(conversation.kwargs),
        } | ({"tools": [*conversation.tools], "tool_choice": "none"} if conversation.tools else {})
        try:
            status, text = self._post(json.dumps(body))
        except (OSError, http.client.HTTPException):
            if launcher.ended(self._process, GRACE) is not None:
                raise _failed(self._last_line()) from None
            self._late = Reason(Accident.OVERRUN, seconds=SECONDS)
            return self._late
        if len(text) > MOST_ANSWER:
            return Reason(Accident.MEMORY)
        try:
            data = json.loads(text)
        except ValueError:
            return _refused(text.decode(errors="replace"))
        if status != http.client.OK:
            return _refused(_message(data) or f"HTTP {status}")
        return EnginePrompt(text_of(data["token_ids"]), None if self._form == "auto" else self._form)

    def wait(self) -> None:
        """Return once the program serves; raises EngineError where it ends or does not start in time."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection((LOOPBACK, self._port), timeout=SECONDS):
                break
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise _failed(self._last_line())
            time.sleep(PAUSE)
        for program_ in psutil.Process(self._process.pid).children():
            if psutil.LINUX:  # no other system bounds another process
                program_.rlimit(psutil.RLIMIT_AS, (MEMORY, MEMORY))

    def _post(self, body: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=SECONDS)
        try:
            connection.request("POST", PATH, body.encode(), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read(MOST_ANSWER + 1)
        finally:
            connection.close()

    def _last_line(self) -> str:
        self._log.seek(0)
        lines = self._log.read()[-2000:].decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"{PROGRAM} ended"


def text_of(ids: Sequence[int]) -> str:
    """Return the text of a prompt in tokens of ``_vocabulary``."""
    letters = _alphabet()
    return bytes(letters[i] for i in ids).decode("utf-8", "replace")


@cache
def _alphabet() -> tuple[int, ...]:
    """Return the byte of each id: byte-level vocabularies list printable bytes first, by their character."""
    return tuple(byte for _, byte in sorted(byte_of_character().items()))


def _write(folder: Path, tokens: Tokens) -> None:
    """Write the files that the program reads of a model."""
    vocabulary = {character: n for n, character in enumerate(sorted(byte_of_character()))}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    tokenizer: dict[str, object] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "ignore_merges": True},
    }  # fmt: skip
    settings: dict[str, object] = {k: v for k, v in tokens.settings.items() if k not in LEFT_OUT}
    named = {f"{key}_token": text for key in ("bos", "eos") if (text := getattr(tokens, key)) is not None}
    template: Any = tokens.chat_template
    if isinstance(template, Mapping):
        listed = isinstance(tokens.settings.get("chat_template"), list)  # else files, of which it reads one
        named_set = [{"name": n, "template": t} for n, t in template.items()]
        settings["chat_template"] = named_set if listed else template["default"]
    elif template is not None:
        settings["chat_template"] = template
    for name, data in {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {**settings, **named},
        "config.json": {"model_type": tokens.model_type or "", "vocab_size": 256},
    }.items():
        (folder / name).write_text(json.dumps(data), encoding="utf-8")


def _once(message: Mapping[str, object]) -> Mapping[str, object]:
    """Return a message with one of the two names of reasoning: the program refuses both."""
    return {k: v for k, v in message.items() if k != "reasoning_content" or "reasoning" not in message}


def _message(data: Any) -> str:
    error = data.get("error") if isinstance(data, Mapping) else None
    return str(error.get("message", "")) if isinstance(error, Mapping) else ""


def _refused(words: str) -> Reason:
    return Reason(ParserFailure.RAISED, words=" ".join(words.split())[:300])


def _failed(problem: str) -> EngineError:
    return EngineError("worker-failed", name=PROGRAM, problem=problem)
