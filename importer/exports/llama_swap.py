"""llama-swap: a configuration with one model, whose command starts the server of the document's engine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import Unstartable, invalid
from importer.exports import mlx, sglang, vllm
from importer.exports.base import Exported, Options, Service
from importer.exports.kinds import unrun
from importer.exports.texts import yaml_text
from importer.reasons import Reason

CHECKED = (
    "Checked against llama-swap's schema and its rules for a command, not run. Start llama-swap in "
    "this folder; the program of the engine stands in its PATH."
)

PORT = "${PORT}"  # llama-swap puts a free one in its place
MACRO = "${"
OF_ENVIRONMENT = re.compile(r"\$\{env\.[A-Za-z_]\w*\}")  # replaced in every text, without an escape
ANY = re.compile(r"\$\{[\w.-]+\}")  # outside of "env" an unknown one is refused
FLAG = re.compile(r"--port=[0-9]+")
SECONDS = 1800  # that a server may take to its start; llama-swap waits 120
# Servers that load the model that a request names: they are asked for the one of their start.
BY_REQUEST = frozenset(("mlx", "mlx-vlm"))
INPUTS = ("image", "audio")  # of llama-swap's list, beside text
SHORT, LONG = 128, 1024  # characters of a name, and of a description


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return the file of ``llama-swap --config``, and the files of the server in a folder beside it."""
    server, backend = _served(document, receipt, options), str(document["backend"])
    origin, block = server.origin, document.get("importer") or {}
    entry: dict[str, object] = {
        "cmd": _command(server),
        "proxy": f"http://127.0.0.1:{PORT}",
        "name": origin.name[:SHORT],
        "description": _prose(document.get("description") or origin.model)[:LONG],
    }
    if server.variables:
        entry["env"] = [f"{name}={_plain(document, value)}" for name, value in server.variables.items()]
    if backend in BY_REQUEST:
        model = f"./{server.folder}" if origin.hub_id and origin.revision else origin.model
        entry["useModelName"] = _plain(document, model, ANY)
    entry["capabilities"] = _capabilities(document)
    about = {"model": _prose(origin.model), "revision": origin.revision, "engine": origin.engine}
    entry["metadata"] = {key: value for key, value in about.items() if value}
    entry["metadata"] |= {"kind": block["kind"]} if "kind" in block else {}  # type: ignore[operator]
    comments = [*server.comments, unrun(CHECKED)]
    data = {"healthCheckTimeout": SECONDS, "models": {origin.name: entry}}
    return server.exported(f"{origin.name}.llama-swap.yaml", yaml_text(data, comments))


def _served(document: Document, receipt: Receipt | None, options: Options) -> Service:
    """Return the service of the document's engine, on this machine."""
    backend = str(document["backend"])
    if backend in mlx.SERVERS:
        return mlx.served(backend, document, receipt, options)
    served = sglang.served if backend == "sglang" else vllm.served
    return served(document, receipt, options)


def _command(service: Service) -> str:
    """Return the one command: llama-swap starts no shell, so several run in one, the last in its place."""
    line = " ".join(_ported([*service.program, *service.model, *service.words]))
    if not service.first:
        return line
    return shlex.join(["sh", "-c", " && ".join([*service.first, f"exec {line}"])])


def _ported(words: Sequence[str]) -> Iterable[str]:
    """Yield the words of a line with llama-swap's port in the place of the server's."""
    before = ""
    for word in words:
        yield f"--port={PORT}" if FLAG.fullmatch(word) else PORT if before == "--port" else _line([word])
        before = word


def _prose(text: object) -> str:
    return str(text).replace(MACRO, "$ {")


def _line(words: Iterable[str]) -> str:
    """Return a command line without a macro of llama-swap, which takes its quotes off after its macros."""
    return " ".join(shlex.quote(word).replace(MACRO, "$''{") for word in words)


def _plain(document: Document, value: str, macro: re.Pattern[str] = OF_ENVIRONMENT) -> str:
    """Return a value; raises DocumentError("invalid") for a variable of llama-swap's own in it."""
    if macro.search(value):
        raise invalid(document, Reason(Unstartable.MACRO, value=value))
    return value


def _capabilities(document: Document) -> dict[str, object]:
    """Return what clients may ask for; an empty list of outputs has no name here."""
    uses = {str(use) for use in document.get("known_usecases") or ()}
    limits = document.get("limit_mm_per_prompt") or {}
    inputs = [
        "text",
        *(name for name in INPUTS if limits.get(name) or (name == "image" and "vision" in uses)),
    ]
    options = [str(option) for option in document.get("options") or ()]
    context = document.get("max_model_len")
    found: dict[str, object] = {"in": inputs}
    found |= {} if uses & {"embeddings", "rerank", "score"} else {"out": ["text"]}
    found |= {"tools": True} if any(one.startswith("tool_parser:") for one in options) else {}
    found |= {"reranker": True} if "rerank" in uses else {}
    return found | ({"context": context} if isinstance(context, int) and context > 0 else {})
