"""What every export for vLLM shares: the words that the engine's own adapter writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from importer.document import chat_template
from importer.document.chat_template import ChatTemplate
from importer.document.receipt import Receipt
from importer.engines.base import Address, Document, Unstartable, invalid, number, stopwords
from importer.engines.registries import PINNED
from importer.engines.vllm import Vllm, VllmCpu, VllmCuda
from importer.exports import fitted
from importer.exports.base import Device, Exported, Options, Origin, Refused, explained, unheard
from importer.exports.kinds import ExportRemedy, Unexportable
from importer.reasons import Reason

VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[0-9a-z.]*", re.ASCII)
DEGREES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server will run: what it is told beside the document, ``None`` where the consumer sees to that.

    ``folder``  where the adapter's files will lie, as the server sees it.
    ``pinned``  whether the server fetches the model itself.
    """

    address: Address | None = None
    folder: str | None = None
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class Served:
    """How vLLM would serve a document: ``words`` are its options, ``comments`` what the export begins with.

    ``device``  what it runs on.
    ``files`` are what it reads beside the model, by their names in the place's folder.
    """

    origin: Origin
    device: Device
    words: list[str]
    files: dict[str, str]
    comments: list[Reason]
    lost: tuple[Reason, ...]


def served(
    document: Document, receipt: Receipt | None, options: Options, place: Callable[[str], Place]
) -> Served | Refused:
    """The adapter's own words for ``document``; ``place`` is asked with its name.

    Raises DocumentError("invalid").
    """
    if document["backend"] != "vllm":
        lacks = Reason(Unexportable.VLLM_LACKS, backend=document["backend"])
        return Refused(lacks, Reason(ExportRemedy.IMPORT_FOR, backends=["vllm"]))
    origin = Origin.of(document, receipt)
    device = fitted.device(options, receipt)
    engine: Vllm = VllmCpu() if device == "cpu" else VllmCuda()
    there = place(origin.name)
    if there.folder is None and chat_template.named(document):
        remedy = Reason(ExportRemedy.WITHOUT_TEMPLATE)
        return Refused(Reason(Unexportable.TEMPLATE_IS_FILE), remedy)
    files = {} if there.folder is None else engine.files(document, options.template)
    revision = origin.revision if there.pinned else None
    words = engine.settings(document, there.address, revision, there.folder)
    sent = engine.client_sampling(document)
    if there.folder is None and engine.files(document):
        sent |= stopwords(document)
    lost = unheard(document, partial(_told, there.folder, options.template), sent)
    comments = [*origin.comments(), *fitted.comments(receipt, device), *explained("vLLM", sent, lost)]
    return Served(origin, device, words, files, comments, lost)


def _told(
    folder: str | None, template: ChatTemplate | None, document: Document
) -> tuple[list[str], dict[str, str]]:
    engine = VllmCuda()  # the build for processors always runs eagerly, whatever a document says
    files = {} if folder is None else engine.files(document, template)
    return engine.settings(document, folder=folder), files


def beside(name: str) -> Place:
    """A server of this machine, with the files in a folder beside the export."""
    return Place(Address(), f"./{folder_of(name)}")


def folder_of(name: str) -> str:
    """The folder of files that an export for vLLM needs."""
    return f"{name}.vllm"


def with_files(name: str, text: str, found: Served) -> Exported:
    """The export under ``name``, and what the server reads in the folder beside it."""
    files = {f"{folder_of(found.origin.name)}/{file}": content for file, content in found.files.items()}
    return Exported({name: text, **files}, found.lost)


def version(document: Document) -> str:
    """The engine's version that the document was written for, as image tags have it."""
    engine = (document.get("importer") or {}).get("engine") or {}
    found = str(engine.get("version") or PINNED["vllm"])
    if not VERSION.fullmatch(found):
        raise invalid(document, Reason(Unstartable.NOT_A_VERSION, value=found))
    return found


def devices(document: Document) -> int:
    """How many cards the document spreads the model over."""
    given = {**(document.get("engine_args") or {}), **document}
    count = 1
    for key in DEGREES:
        if given.get(key) is not None:
            count *= int(float(number(document, key, given[key])))
    return count
