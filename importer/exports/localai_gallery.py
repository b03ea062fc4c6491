"""A gallery for LocalAI with one entry, whose configuration is that of the export ``localai``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.config_file.name_allocator import ending
from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import Exported, ExportRefused, Options, Origin, yaml_text
from importer.exports.localai import model
from importer.reasons import Reason
from importer.signals.evidence import TASKS

HUB = "https://huggingface.co"
SHA256 = 64  # hex digits
PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][\w./+@-]*", re.ASCII)  # of a file below its folder


@dataclass(frozen=True, slots=True)
class GalleryEntry:
    """A document in the form of LocalAI's galleries.

    ``item``   one item of an index, with the configuration in it; its last key is ``urls``.
    ``file``   the file that an entry may name instead, with the configuration as text.
    ``about``  the description that LocalAI lists; for a device alone also its name (``device``).
    ``lost``   the parts that both lack.
    """

    item: str
    file: str
    about: Mapping[str, Any]
    lost: tuple[Reason, ...]


def export(document: Document, receipt: Receipt | None, _options: Options) -> Exported | ExportRefused:
    """Return a list in the form of an index.

    An entry with an artifact has no ``files``, since LocalAI then fetches no artifact.
    """
    result = entry(document, receipt)
    return result if isinstance(result, ExportRefused) else Exported({"index.yaml": result.item}, result.lost)


def entry(document: Document, receipt: Receipt | None) -> GalleryEntry | ExportRefused:
    """Return the entry of a document; raises DocumentError("invalid") as the export does."""
    converted = model(document, receipt)
    if isinstance(converted, ExportRefused):
        return converted
    origin, data, lost = converted
    block = document.get("importer") or {}
    about: dict[str, Any] = {
        "name": origin.name,
        "description": data.pop("description", f"Imported from {origin.model}"),
    }
    if block.get("license"):
        about["license"] = block["license"]
    own = _device(receipt)
    urls, tags = [f"{HUB}/{origin.hub_id}"], [*_tags(document, block), *own.values()]
    item: dict[str, Any] = {**about, "tags": tags, "config_file": data}
    if data.get("known_usecases"):
        item["overrides"] = {"known_usecases": data["known_usecases"]}  # where its filters look
    files = _files(origin, receipt) if "artifacts" not in data else []
    if files:
        item["files"] = files
    comments = [*origin.comments(), *lost]
    file = {**about, "urls": urls, "config_file": yaml_text(data, ()), **({"files": files} if files else {})}
    return GalleryEntry(
        yaml_text([item | {"urls": urls}], comments), yaml_text(file, comments),
        about | {"urls": urls, "tags": tags, "backend": document["backend"]} | own, tuple(lost),
    )  # fmt: skip


def _device(receipt: Receipt | None) -> dict[str, str]:
    """Return the device of a document for this device alone, as its name ends."""
    device = None if receipt is None else receipt.own_device
    return {} if device is None else {"device": ending(device)}


def _files(origin: Origin, receipt: Receipt | None) -> list[dict[str, str]]:
    """Return the files of the commit, where LocalAI's backends look for those of the model.

    LocalAI makes its folder of models the cache of the Hub's client (``pkg/model/initializers.go``). It
    checks a SHA-256; git's hash of a small file is none, but the file's URL names the commit.
    """
    own = receipt is not None and (receipt.model_id, receipt.revision) == (origin.hub_id, origin.revision)
    known = receipt.content_files if receipt is not None and own else None
    if known is None or origin.hub_id is None or origin.revision is None:
        return []
    if not all(PATH.fullmatch(path) for path in known):
        return []
    folder = f"models--{origin.hub_id.replace('/', '--')}/snapshots/{origin.revision}"
    url = f"{HUB}/{origin.hub_id}/resolve/{origin.revision}"
    return [
        {
            "filename": f"{folder}/{path}",
            **({"sha256": digest} if len(digest) == SHA256 else {}),
            "uri": f"{url}/{path}",
        }
        for path, digest in known.items()
    ]


def _tags(document: Document, block: Document) -> list[str]:
    first = None if block.get("kind") in TASKS else "llm"
    tags = [first, document["backend"], block.get("family"), *(document.get("known_usecases") or ())]
    return list(dict.fromkeys(str(tag) for tag in tags if tag))
