"""vLLM: a command or the YAML of ``--config``, by the fit's device and memory and the adapter's options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from importer.document import environment, template_file
from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address, Unstartable, grouped, invalid, number, stopwords
from importer.engines.registries import PINNED
from importer.engines.vllm import BYTES, SHARE, SPACE, Vllm, VllmCpu, VllmCuda, is_rust, server, variables
from importer.engines.vllm import lost as lacking
from importer.exports.base import (
    Device,
    Exported,
    Options,
    Origin,
    Placement,
    Service,
    explained,
    folder_of,
    need_backend,
    need_named_parser,
    refused,
    without_effect,
)
from importer.exports.kinds import ExportComment, ExportRemedy, Loss, MemoryReason, Unexportable
from importer.memory.estimate_types import CACHES
from importer.reasons import Reason

GIB = 2**30
BESIDE = 8 * GIB  # of a machine's own memory, that vLLM uses beside the cards
CACHE = 4  # GiB of it for the KV cache on processors: unset, vLLM takes 92 % of all memory, or does not start
KINDS: Mapping[str, Device] = {"cpu": "cpu", "cuda": "gpu"}
BUILDS: Mapping[Device, str] = {"cpu": "vllm", "gpu": "vllm-cuda"}  # keys of ``PINNED``
IMAGES: Mapping[Device, str] = {"gpu": "vllm/vllm-openai", "cpu": "vllm/vllm-openai-cpu"}
VERSION = re.compile(r"[0-9]+(\.[0-9]+)+[0-9a-z.]*", re.ASCII)
DEGREES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def fitted_device(options: Options, receipt: Receipt | None) -> Device:
    """Return the device of the options, else that of the fit, else cards."""
    return options.device or KINDS.get(_kind(receipt), "gpu")


def fitted_comments(receipt: Receipt | None, chosen: Device) -> list[Reason]:
    """Return a warning where the fit is for another kind of device."""
    if not _kind(receipt) or KINDS.get(_kind(receipt)) == chosen:
        return []
    kind = "NVIDIA cards" if chosen == "gpu" else "processors"
    return [Reason(ExportComment.FITTED_TO_OTHER, meant=kind)]


def memory(document: Document, receipt: Receipt | None, chosen: Device) -> tuple[int, Reason] | None:
    """Return GiB of a machine's own memory with the reason; ``None`` without a fit."""
    fit: Mapping[str, Any] = (receipt.fit if receipt is not None else None) or {}
    if chosen == "gpu" and "weights" in fit:
        why = Reason(MemoryReason.WEIGHTS_ONCE, gib=BESIDE // GIB)
        return _gib(fit["weights"]["likely"] + BESIDE), why
    if chosen == "cpu" and "estimate" in fit:
        counted, held = _cache_of_one(receipt), _cache(document, receipt)
        rank = fit["estimate"]["total"]["high"] - counted + held  # each has a cache of its own
        return _gib(rank * devices(document)), Reason(MemoryReason.ESTIMATE, gib=_gib(held))
    return None


def _cache(document: Document, receipt: Receipt | None) -> float:
    """Return the bytes that the KV cache takes on processors: of the variable, else of the document, else of
    the fit.
    """
    variable = _space(document, receipt) or _variables(document).get(SPACE, "")
    size = (document.get("engine_args") or {}).get(BYTES)
    if variable.isdecimal():
        return int(variable) * GIB
    return size if isinstance(size, int) else _cache_of_one(receipt)


def _space(document: Document, receipt: Receipt | None) -> str | None:
    """Return the GiB for the KV cache that an export for processors sets, where the document has no size.

    The share of a card is none of a machine's own memory.
    """
    values = {**(document.get("engine_args") or {}), **document}
    sized = BYTES in values or (SHARE in values and _kind(receipt) == "cpu")
    if sized or SPACE in _variables(document):
        return None
    return str(max(CACHE, _gib(_cache_of_one(receipt))))


def _cache_of_one(receipt: Receipt | None) -> float:
    """Return the bytes that the fit counts for the KV cache of one whole context; 0 without a fit."""
    estimate: Mapping[str, Any] = ((receipt.fit if receipt is not None else None) or {}).get("estimate") or {}
    return sum(float(term["high"]) for term in estimate.get("terms", ()) if term["part"] in CACHES)


def _gib(amount: float) -> int:
    return -int(-amount // GIB)


def _kind(receipt: Receipt | None) -> str:
    device = receipt.fit.get("device") if receipt is not None and receipt.fit else None
    return str((device or {}).get("kind", ""))


def served(
    document: Document,
    receipt: Receipt | None,
    options: Options,
    place: Placement | None = None,
    *,
    fetches: bool = False,
) -> Service:
    """Return the service of ``document``, by default beside the export on this machine.

    ``fetches``  whether the consumer fetches the model from the Hub. Raises DocumentError: "cannot-export",
    "invalid".
    """
    need_backend(document, "vllm")
    need_named_parser(document)
    origin = Origin.of(document, receipt)
    if fetches and origin.hub_id is None:
        raise refused(document, Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    device = fitted_device(options, receipt)
    engine: Vllm = VllmCpu() if device == "cpu" else VllmCuda()
    place = place or Placement(Address(), f"./{folder_of(origin.name, 'vllm')}")
    if place.folder is None and template_file.named(document):
        remedy = Reason(ExportRemedy.WITHOUT_TEMPLATE)
        raise refused(document, Reason(Unexportable.TEMPLATE_IS_FILE), remedy)
    files = {} if place.folder is None else engine.files(document, options.template)
    revision = origin.revision if place.pinned else None
    words = engine.settings(document, place.address, revision, place.folder)
    sent = engine.client_sampling(document)
    if place.folder is None and engine.files(document):
        sent |= stopwords(document)
    lost = without_effect(document, partial(_settings_and_files, place.folder, options.template), sent)
    if is_rust(document):
        lost += tuple(Reason(Loss.KEY, key=key) for key in lacking(document))
    comments = [*origin.comments(), *fitted_comments(receipt, device), *explained("vLLM", sent, lost)]
    chosen = _variables(document)
    space = _space(document, receipt) if device == "cpu" else None
    if space is not None:
        chosen |= {SPACE: space}
        comments.append(Reason(ExportComment.CACHE_GUESSED, variable=SPACE, gib=space))
    by_module = device == "cpu" and not is_rust(document)
    program = ["python", *server(document)] if by_module else ["vllm", "serve"]
    model = f"--model={origin.model}" if by_module else origin.model
    return Service(origin, "vllm", program, [model], words, comments, lost, chosen, files, (), device)


def _settings_and_files(
    folder: str | None, template: ChatTemplate | None, document: Document
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return all output of the adapter for a document: its options, its files and its variables."""
    engine = VllmCuda()  # the build for processors always runs eagerly, whether the document sets that or not
    files = {} if folder is None else engine.files(document, template)
    return engine.settings(document, folder=folder), files, _variables(document)


def _variables(document: Document) -> dict[str, str]:
    return {**variables(document), **environment.variables_of(document)}


def version(document: Document, build: str) -> str:
    """Return the engine version of the document, for image tags; without one the pinned one of the build."""
    engine = (document.get("importer") or {}).get("engine") or {}
    engine_version = str(engine.get("version") or PINNED[build])
    if not VERSION.fullmatch(engine_version):
        fields = {"key": "importer.engine.version", "value": engine_version, "wanted": "a version"}
        raise invalid(document, Reason(Unstartable.OTHER_TYPE, **fields))
    return engine_version


def image(document: Document, device: Device) -> str:
    """Return vLLM's image at the version of the document's engine."""
    return f"{IMAGES[device]}:v{version(document, BUILDS[device])}"


def devices(document: Document) -> int:
    """Return the number of cards for the model in one machine: of copies over machines its own."""
    values = {**(document.get("engine_args") or {}), **document}
    count = 1
    for key in DEGREES:
        value = values.get(f"{key}_local") or values.get(key)
        if value is not None:
            count *= int(float(number(document, key, value)))
    return count


def export(form: str, document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return the script of one command, or the file of ``--config``."""
    service = served(document, receipt, options)
    if form == "command":
        return service.script()
    for flag, values in grouped([*service.words]):
        # Flag and argument become two words, and vLLM reads a word like -0.5 as a flag with a field.
        if any(text.startswith("-") and "." in text for text in values):
            key = flag.removeprefix("--")
            raise invalid(document, Reason(Unstartable.NOT_IN_CONFIG_FILE, key=key, value=values))
    return service.config("model")
