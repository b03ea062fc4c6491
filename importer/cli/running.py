"""The command ``run``: serve a document, print a request for it, or talk to it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from importer.app.serving import serving
from importer.cli import messages, output
from importer.document import document_keys
from importer.document.store import named
from importer.errors import EngineError, UsageError
from importer.hub.local import ANYWHERE
from importer.validation.prompts import WEATHER

if TYPE_CHECKING:
    from importer.engines.process import EngineServer
    from importer.validation.reply import Reply

LOOK = 0.5  # seconds between two checks of the engine
CHAT_SECONDS = 600.0  # for one answer
QUESTION = str(WEATHER.messages[0]["content"])
# Requests of models that do not chat, by the use of a document.
OTHERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "embeddings": ("/v1/embeddings", {"input": QUESTION}),
    "rerank": ("/v1/rerank", {"query": QUESTION, "documents": ["It rains in Paris.", "Two boats are here."]}),
    "score": ("/classify", {"input": QUESTION}),
    "completion": ("/v1/completions", {"prompt": QUESTION, "max_tokens": 64}),
}
TRANSCRIPT, RECORDING = "transcript", "speech.wav"  # a file that a person has


def run(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C, or until the person has nothing more to say; raises ImporterError."""
    _, stored = named(arguments.name, arguments.folder)
    stored.check()
    if arguments.chat and not _chats(stored.data):
        raise UsageError("bad-option", option="--chat", problem=f"{stored.name} does not chat")
    engine = arguments.engine or stored.backend
    with (
        output.progress(f"{stored.name} on {engine}") as progress,
        serving(
            stored, engine, ANYWHERE, fetch=arguments.fetch, port=arguments.port, progress=progress
        ) as served,
    ):
        progress.stop()
        output.note(f"{stored.name} on {engine}: {served.base_url}/v1 (Ctrl-C stops it). Log: {served.log}.")
        try:
            if arguments.chat:
                chat(served)
            else:
                output.line(curl(served.base_url, served.model, stored.data))
                sys.stdout.flush()
                _wait(served)
        except KeyboardInterrupt:
            output.note(f"{stored.name}: stopped.")


def curl(base_url: str, model: str, document: Mapping[str, Any]) -> str:
    """Return a request for a terminal, with a tool where the document has a tool parser."""
    uses = _uses(document)
    if TRANSCRIPT in uses:
        fields = ("-F", f"model={model}", "-F", f"file=@{RECORDING}")
        return shlex.join(("curl", f"{base_url}/v1/audio/transcriptions", *fields))
    asked = "/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}]}
    path, body = asked if _chats(document) else next((OTHERS[u] for u in uses if u in OTHERS), asked)
    block = document.get("importer") or {}
    if block.get("kind") == "reward" or (block.get("outputs") or {}).get("each") == "token":
        path = "/pooling"  # has values that are no classes of a text
    tools = {"tools": [*WEATHER.tools]} if document_keys.parser(document, "tool_parser") else {}
    sent = shlex.quote(json.dumps({"model": model, **body, **tools}))
    return f"curl {base_url}{path} -H 'Content-Type: application/json' -d {sent}"


def _uses(document: Mapping[str, Any]) -> list[str]:
    return [str(use) for use in document.get("known_usecases") or ["chat"]]


def _chats(document: Mapping[str, Any]) -> bool:
    return "chat" in _uses(document)


def _wait(served: EngineServer) -> None:
    while served.alive:
        time.sleep(LOOK)
    raise EngineError(
        "unreachable", url=served.base_url, problem=f"the engine ended; its log is {served.log}"
    )


def chat(served: EngineServer) -> None:
    """Answer each line of the person with all before it, until the end of input or an empty line."""
    from importer.validation.client import Client
    from importer.validation.errors import ExchangeError

    client = Client(served.base_url, CHAT_SECONDS)
    turns: list[dict[str, str]] = []
    while line := (output.ask("> ") or "").strip():
        turns.append({"role": "user", "content": line})
        try:
            reply = client.chat({"model": served.model, "messages": turns, "stream": True}, [])
        except ExchangeError as error:
            if not served.alive:
                raise EngineError("unreachable", url=served.base_url, problem=error.reason) from None
            output.note(f"[refused] {messages.text(error.reason)}")
            turns.pop()
            continue
        _show(reply)
        turns.append({"role": "assistant", "content": reply.content})


def _show(reply: Reply) -> None:
    """Print the thought, the content and the calls of an answer."""
    if reply.reasoning:
        output.note(f"[thinks] {reply.reasoning.strip()}")
    for call in reply.tool_calls:
        output.note(f"[calls] {call.name}({call.arguments})")
    output.line(output.plain(reply.content.strip()))
    sys.stdout.flush()
