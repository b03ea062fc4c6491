"""What every export for vLLM shares: the words that the engine's own adapter writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from importer.document.receipt import Receipt
from importer.engines.base import Address, Document, invalid, number
from importer.engines.registries import PINNED
from importer.engines.vllm import Vllm, VllmCpu, VllmCuda
from importer.exports.base import Options, Origin, Refused, explained, unheard

VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[0-9a-z.]*", re.ASCII)
DEGREES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Served:
    """How vLLM would serve a document: ``words`` are its options, ``says`` the comments to begin with."""

    origin: Origin
    words: list[str]
    says: list[str]
    lost: tuple[str, ...]


def served(
    document: Document,
    receipt: Receipt | None,
    options: Options,
    address: Address | None,
    *,
    pinned: bool = True,
) -> Served | Refused:
    """The adapter's own words for ``document``; raises DocumentError("invalid").

    ``address`` is ``None`` where the consumer says where to listen, ``pinned`` false where it fetches the
    model itself.
    """
    if document["backend"] != "vllm":
        return Refused(
            f"it is written for {document['backend']}, whose parsers and settings vLLM does not have",
            "Import the model again with --backend vllm.",
        )
    origin = Origin.of(document, receipt)
    engine: Vllm = VllmCpu() if options.device == "cpu" else VllmCuda()
    words = engine.settings(document, address, origin.revision if pinned else None)
    sent = engine.client_sampling(document)
    lost = tuple(unheard(document, VllmCuda().settings, sent))
    return Served(origin, words, [*origin.says(), *explained("vLLM", sent, lost)], lost)


def version(document: Document) -> str:
    """The engine's version that the document was written for, as image tags have it."""
    engine = (document.get("importer") or {}).get("engine") or {}
    found = str(engine.get("version") or PINNED["vllm"])
    if not VERSION.fullmatch(found):
        raise invalid(document, f"importer.engine.version is {found!r} and not a version")
    return found


def devices(document: Document) -> int:
    """How many cards the document spreads the model over."""
    given = {**(document.get("engine_args") or {}), **document}
    count = 1
    for key in DEGREES:
        if given.get(key) is not None:
            count *= int(float(number(document, key, given[key])))
    return count
