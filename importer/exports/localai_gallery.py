"""A gallery for LocalAI with one entry, whose configuration is that of the export ``localai``."""

from __future__ import annotations

from typing import Any

from importer.document.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import Exported, Options, Refused
from importer.exports.localai import model
from importer.exports.text import yaml_text

HUB = "https://huggingface.co"


def export(document: Document, receipt: Receipt | None, _options: Options) -> Exported | Refused:
    """A list, as LocalAI fetches it; it has no ``files``, for with them LocalAI fetches no artifact."""
    found = model(document, receipt)
    if isinstance(found, Refused):
        return found
    origin, data, lost = found
    block = document.get("importer") or {}
    entry: dict[str, Any] = {
        "name": origin.name,
        "description": data.pop("description", f"Imported from {origin.model}"),
        "urls": [f"{HUB}/{origin.hub_id}"],
        "tags": _tags(document, block),
        "config_file": data,
    }
    if block.get("license"):
        entry["license"] = block["license"]
    if data.get("known_usecases"):
        entry["overrides"] = {"known_usecases": data["known_usecases"]}  # where its filters look
    return Exported({"index.yaml": yaml_text([entry], [*origin.says(), *lost])}, tuple(lost))


def _tags(document: Document, block: Document) -> list[str]:
    tags = ["llm", document["backend"], block.get("family"), *(document.get("known_usecases") or ())]
    return list(dict.fromkeys(str(tag) for tag in tags if tag))
