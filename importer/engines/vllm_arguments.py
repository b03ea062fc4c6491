"""The options of vLLM that a document may set: ``engine_args``, and ``options`` that begin with ``--``."""

from __future__ import annotations

from collections.abc import Iterator

from importer.config_file import check, document_keys
from importer.engines.arguments import joined, written
from importer.engines.base import Document, word

NAMES = "served_model_name"


def parsers(document: Document) -> Iterator[str]:
    """Yield the flags for the parsers of the document; vllm-mlx has the same ones."""
    tools, thoughts = (document_keys.parser(document, key) for key in ("tool_parser", "reasoning_parser"))
    if tools is not None:
        yield "--enable-auto-tool-choice"
        yield f"--tool-call-parser={word(document, 'tool_parser', tools)}"
    if thoughts is not None:
        yield f"--reasoning-parser={word(document, 'reasoning_parser', thoughts)}"


def with_flags(document: Document) -> Document:
    """Return the document with its flags moved to ``engine_args``; existing ``engine_args`` win, as in
    LocalAI.
    """
    flags = [o for o in document_keys.of(document) if o.key.startswith("--")]
    if not flags:
        return document
    options = [o.text for o in document_keys.of(document) if not o.key.startswith("--")]
    arguments = {**check.combined(map(check.flag, flags)), **(document.get("engine_args") or {})}
    return {**document, "options": options, "engine_args": arguments}


def extra(document: Document) -> Iterator[str]:
    """Yield the words of ``engine_args`` without the names of the model; raises DocumentError("invalid")."""
    yield from joined(written(document, "vllm", leave=(NAMES,)))


def names(document: Document) -> list[str]:
    """Return the words with the names of the served model: that of the document is the first."""
    told = (document.get("engine_args") or {}).get(NAMES) or ()
    further = [n for n in ([told] if isinstance(told, str) else told) if n != document["name"]]
    flag = f"--{NAMES.replace('_', '-')}"
    return [flag, document["name"], *further] if further else [f"{flag}={document['name']}"]


def flag(key: str) -> str:
    """Return a key as vLLM's command line spells it."""
    return key.replace("_", "-")
