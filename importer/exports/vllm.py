"""vLLM: a command or the YAML of ``--config``, by the fit's device and memory and the adapter's options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from importer.document import environment, template_file
from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address, Unstartable, grouped, invalid, number, stopwords
from importer.engines.registries import PINNED
from importer.engines.vllm import SPACE, Vllm, VllmCpu, VllmCuda, is_rust, server, sizes_cache, variables
from importer.engines.vllm import lost as lacking
from importer.exports.base import (
    Device,
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Loss,
    MemoryReason,
    Options,
    Origin,
    Unexportable,
    argument_value,
    explained,
    parser_as_data,
    script,
    with_variables,
    without_effect,
    yaml_text,
)
from importer.frozen import frozen
from importer.reasons import Reason

GIB = 2**30
BESIDE = 8 * GIB  # of a machine's own memory, that vLLM uses beside the cards
CACHE = 4  # GiB of it for the KV cache on processors: unset, vLLM takes 92 % of all memory, or does not start
KINDS: Mapping[str, Device] = {"cpu": "cpu", "cuda": "gpu"}
BUILDS: Mapping[Device, str] = {"cpu": "vllm", "gpu": "vllm-cuda"}  # keys of ``PINNED``
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


def memory(receipt: Receipt | None, chosen: Device) -> tuple[int, Reason] | None:
    """Return GiB of a machine's own memory with the reason; ``None`` without a fit."""
    fit: Mapping[str, Any] = (receipt.fit if receipt is not None else None) or {}
    if chosen == "gpu" and "weights" in fit:
        why = Reason(MemoryReason.WEIGHTS_ONCE, gib=BESIDE // GIB)
        return _gib(fit["weights"]["likely"] + BESIDE), why
    if chosen == "cpu" and _kind(receipt) == "cpu" and "estimate" in fit:
        high = fit["estimate"]["total"]["high"] * fit.get("cards", 1)
        return _gib(high), Reason(MemoryReason.ESTIMATE)
    return None


def _cache_of_one(receipt: Receipt | None) -> float:
    """Return the bytes that the fit counts for the KV cache of one whole context; 0 without a fit."""
    estimate: Mapping[str, Any] = ((receipt.fit if receipt is not None else None) or {}).get("estimate") or {}
    return sum(float(term["high"]) for term in estimate.get("terms", ()) if term["part"] == "kv cache")


def command(service: VllmService, document: Document, words: Sequence[str], *model: str) -> list[str]:
    """Return the command of a shell: ``vllm serve``, and on processors the module that it runs."""
    return with_variables(service.variables, [*start(service, document, *model), *words])


def start(service: VllmService, document: Document, *model: str) -> list[str]:
    """Return the first words of a command, without options and variables."""
    module = service.device == "cpu" and not is_rust(document)
    return ["python", *server(document, *model)] if module else ["vllm", "serve", *model]


def _gib(amount: float) -> int:
    return -int(-amount // GIB)


def _kind(receipt: Receipt | None) -> str:
    device = receipt.fit.get("device") if receipt is not None and receipt.fit else None
    return str((device or {}).get("kind", ""))


@frozen
class VllmPlacement:
    """The place of a server: its options beside the document, ``None`` where the consumer sets them.

    ``folder``  the folder of the adapter's files, by the path on the server.
    ``pinned``  whether the server fetches the model itself.
    """

    address: Address | None = None
    folder: str | None = None
    pinned: bool = True


@frozen
class VllmService:
    """A document served by vLLM: ``words`` are its options, ``comments`` the first lines of the export.

    ``engine``  the build that serves it.
    ``device``  the device that it runs on.
    ``files``   its files beside the model, by their names in the folder of the placement.
    """

    origin: Origin
    engine: str
    device: Device
    words: list[str]
    files: dict[str, str]
    comments: list[Reason]
    lost: tuple[Reason, ...]
    variables: Mapping[str, str]


def served(
    document: Document, receipt: Receipt | None, options: Options, place: Callable[[str], VllmPlacement]
) -> VllmService | ExportRefused:
    """Return the options of the adapter for ``document``; ``place`` returns the placement for its name.

    Raises DocumentError("invalid").
    """
    if document["backend"] != "vllm":
        lacks = Reason(Unexportable.VLLM_LACKS, backend=document["backend"])
        return ExportRefused(lacks, Reason(ExportRemedy.IMPORT_FOR, backends=["vllm"]))
    refused = parser_as_data(document)
    if refused is not None:
        return refused
    origin = Origin.of(document, receipt)
    device = fitted_device(options, receipt)
    engine: Vllm = VllmCpu() if device == "cpu" else VllmCuda()
    placement = place(origin.name)
    if placement.folder is None and template_file.named(document):
        remedy = Reason(ExportRemedy.WITHOUT_TEMPLATE)
        return ExportRefused(Reason(Unexportable.TEMPLATE_IS_FILE), remedy)
    files = {} if placement.folder is None else engine.files(document, options.template)
    revision = origin.revision if placement.pinned else None
    words = engine.settings(document, placement.address, revision, placement.folder)
    sent = engine.client_sampling(document)
    if placement.folder is None and engine.files(document):
        sent |= stopwords(document)
    lost = without_effect(document, partial(_settings_and_files, placement.folder, options.template), sent)
    if is_rust(document):
        lost += tuple(Reason(Loss.KEY, key=key) for key in lacking(document))
    comments = [*origin.comments(), *fitted_comments(receipt, device), *explained("vLLM", sent, lost)]
    chosen = _variables(document)
    if device == "cpu" and not sizes_cache(document) and SPACE not in chosen:
        chosen |= {SPACE: str(max(CACHE, _gib(_cache_of_one(receipt))))}
        comments.append(Reason(ExportComment.CACHE_GUESSED, variable=SPACE, gib=chosen[SPACE]))
    return VllmService(origin, engine.name, device, words, files, comments, lost, chosen)


def _settings_and_files(
    folder: str | None, template: ChatTemplate | None, document: Document
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return all output of the adapter for a document: its options, its files and its variables."""
    engine = VllmCuda()  # the build for processors always runs eagerly, whether the document sets that or not
    files = {} if folder is None else engine.files(document, template)
    return engine.settings(document, folder=folder), files, _variables(document)


def _variables(document: Document) -> dict[str, str]:
    return {**variables(document), **environment.variables_of(document)}


def beside(name: str) -> VllmPlacement:
    """Return the placement on this machine, with the files in a folder beside the export."""
    return VllmPlacement(Address(), f"./{folder_of(name)}")


def folder_of(name: str) -> str:
    """Return the folder of files that an export for vLLM needs."""
    return f"{name}.vllm"


def with_files(name: str, text: str, service: VllmService, engine: str = "") -> Exported:
    """Return the export under ``name``, with the files of the server in the folder beside it."""
    files = {f"{folder_of(service.origin.name)}/{file}": content for file, content in service.files.items()}
    return Exported({name: text, **files}, service.lost, engine)


def version(document: Document, build: str) -> str:
    """Return the engine version of the document, for image tags; without one the pinned one of the build."""
    engine = (document.get("importer") or {}).get("engine") or {}
    engine_version = str(engine.get("version") or PINNED[build])
    if not VERSION.fullmatch(engine_version):
        fields = {"key": "importer.engine.version", "value": engine_version, "wanted": "a version"}
        raise invalid(document, Reason(Unstartable.OTHER_TYPE, **fields))
    return engine_version


def devices(document: Document) -> int:
    """Return the number of cards for the model in one machine: of copies over machines its own."""
    values = {**(document.get("engine_args") or {}), **document}
    count = 1
    for key in DEGREES:
        value = values.get(f"{key}_local") or values.get(key)
        if value is not None:
            count *= int(float(number(document, key, value)))
    return count


def _script(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    words = command(service, document, service.words, service.origin.model)
    text = script(service.comments, [words])
    return with_files(f"{service.origin.name}.vllm.sh", text, service, service.engine)


def _config(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, object] = {"model": service.origin.model}
    for flag, values in grouped(service.words):
        key = flag.removeprefix("--")
        read = [argument_value(text) for text in values]
        data[key] = True if not read else read[0] if len(read) == 1 else read
        # Flag and argument become two words, and vLLM reads a word like -0.5 as a flag with a field.
        if any(text.startswith("-") and "." in text for text in values):
            raise invalid(document, Reason(Unstartable.NOT_IN_CONFIG_FILE, key=key, value=values))
    name = f"{service.origin.name}.vllm.yaml"
    line = shlex.join(command(service, document, ["--config", name]))
    comments = [*service.comments, Reason(ExportComment.COMMAND, command=line)]
    return with_files(name, yaml_text(data, comments), service, service.engine)


def export(
    form: str, document: Document, receipt: Receipt | None, options: Options
) -> Exported | ExportRefused:
    """Return the script of one command, or the file of ``--config``."""
    return (_config if form == "config" else _script)(document, receipt, options)
