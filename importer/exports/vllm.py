"""What every export for vLLM shares: the words that the engine's own adapter writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from importer.config_file import template_file
from importer.config_file.receipt import Receipt
from importer.config_file.template_file import ChatTemplate
from importer.engines.base import Address, Document, Unstartable, invalid, number, stopwords
from importer.engines.registries import PINNED
from importer.engines.vllm import Vllm, VllmCpu, VllmCuda
from importer.exports.base import (
    Device,
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    MemoryReason,
    Options,
    Origin,
    Unexportable,
    explained,
    unheard,
)
from importer.reasons import Reason

GIB = 2**30
BESIDE = 8 * GIB  # of a machine's own memory, which vLLM takes beside what is on the cards
KINDS: Mapping[str, Device] = {"cpu": "cpu", "cuda": "gpu"}


def fitted_device(options: Options, receipt: Receipt | None) -> Device:
    """Return what was asked for, else what the document was fitted to, else cards."""
    return options.device or KINDS.get(_kind(receipt), "gpu")


def fitted_comments(receipt: Receipt | None, chosen: Device) -> list[Reason]:
    """Return a warning where the document was fitted to something else."""
    if receipt is None or receipt.fit is None or KINDS.get(_kind(receipt)) == chosen:
        return []
    meant = "NVIDIA cards" if chosen == "gpu" else "processors"
    return [Reason(ExportComment.FITTED_TO_OTHER, meant=meant)]


def memory(receipt: Receipt | None, chosen: Device) -> tuple[int, Reason] | None:
    """GiB of a machine's own memory, and why; ``None`` where no fit tells."""
    fit: Mapping[str, Any] = (receipt.fit if receipt is not None else None) or {}
    if chosen == "gpu" and "weights" in fit:
        why = Reason(MemoryReason.WEIGHTS_ONCE, gib=BESIDE // GIB)
        return _gib(fit["weights"]["likely"] + BESIDE), why
    if chosen == "cpu" and _kind(receipt) == "cpu" and "estimate" in fit:
        high = fit["estimate"]["total"]["high"] * fit.get("cards", 1)
        return _gib(high), Reason(MemoryReason.ESTIMATE)
    return None


def _gib(amount: float) -> int:
    return -int(-amount // GIB)


def _kind(receipt: Receipt | None) -> str:
    return str(receipt.fit["device"].get("kind")) if receipt is not None and receipt.fit else ""


VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[0-9a-z.]*", re.ASCII)
DEGREES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class VllmPlacement:
    """Where a server will run: what it is told beside the document, ``None`` where the consumer sees to that.

    ``folder``  where the adapter's files will lie, as the server sees it.
    ``pinned``  whether the server fetches the model itself.
    """

    address: Address | None = None
    folder: str | None = None
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class VllmService:
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
    document: Document, receipt: Receipt | None, options: Options, place: Callable[[str], VllmPlacement]
) -> VllmService | ExportRefused:
    """Return the adapter's own words for ``document``; ``place`` is asked with its name.

    Raises DocumentError("invalid").
    """
    if document["backend"] != "vllm":
        lacks = Reason(Unexportable.VLLM_LACKS, backend=document["backend"])
        return ExportRefused(lacks, Reason(ExportRemedy.IMPORT_FOR, backends=["vllm"]))
    origin = Origin.of(document, receipt)
    device = fitted_device(options, receipt)
    engine: Vllm = VllmCpu() if device == "cpu" else VllmCuda()
    there = place(origin.name)
    if there.folder is None and template_file.named(document):
        remedy = Reason(ExportRemedy.WITHOUT_TEMPLATE)
        return ExportRefused(Reason(Unexportable.TEMPLATE_IS_FILE), remedy)
    files = {} if there.folder is None else engine.files(document, options.template)
    revision = origin.revision if there.pinned else None
    words = engine.settings(document, there.address, revision, there.folder)
    sent = engine.client_sampling(document)
    if there.folder is None and engine.files(document):
        sent |= stopwords(document)
    lost = unheard(document, partial(_told, there.folder, options.template), sent)
    comments = [*origin.comments(), *fitted_comments(receipt, device), *explained("vLLM", sent, lost)]
    return VllmService(origin, device, words, files, comments, lost)


def _told(
    folder: str | None, template: ChatTemplate | None, document: Document
) -> tuple[list[str], dict[str, str]]:
    engine = VllmCuda()  # the build for processors always runs eagerly, whatever a document says
    files = {} if folder is None else engine.files(document, template)
    return engine.settings(document, folder=folder), files


def beside(name: str) -> VllmPlacement:
    """Return a server of this machine, with the files in a folder beside the export."""
    return VllmPlacement(Address(), f"./{folder_of(name)}")


def folder_of(name: str) -> str:
    """Return the folder of files that an export for vLLM needs."""
    return f"{name}.vllm"


def with_files(name: str, text: str, found: VllmService) -> Exported:
    """Return the export under ``name``, and what the server reads in the folder beside it."""
    files = {f"{folder_of(found.origin.name)}/{file}": content for file, content in found.files.items()}
    return Exported({name: text, **files}, found.lost)


def version(document: Document) -> str:
    """Return the engine's version that the document was written for, as image tags have it."""
    engine = (document.get("importer") or {}).get("engine") or {}
    found = str(engine.get("version") or PINNED["vllm"])
    if not VERSION.fullmatch(found):
        raise invalid(document, Reason(Unstartable.NOT_A_VERSION, value=found))
    return found


def devices(document: Document) -> int:
    """Return how many cards the document spreads the model over."""
    given = {**(document.get("engine_args") or {}), **document}
    count = 1
    for key in DEGREES:
        if given.get(key) is not None:
            count *= int(float(number(document, key, given[key])))
    return count
