"""SGLang: a command or the YAML of ``--config``, by the options of its adapter, with what they leave out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from importer.document import environment, template_file
from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address, grouped, number
from importer.engines.sglang import SGLang
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Options,
    Origin,
    Unexportable,
    argument_value,
    explained,
    script,
    unrun,
    with_variables,
    without_effect,
    yaml_text,
)
from importer.frozen import frozen
from importer.reasons import Reason

CHECKED = "Checked against the argument parser of SGLang, not run: its server needs an NVIDIA card."

PROGRAM = "sglang serve"
PORT = 30000  # where it listens by default
IMAGE = "lmsysorg/sglang"


@frozen
class SGLangPlacement:
    """The place of a server: its address, and the folder of its files by the path there."""

    address: Address
    folder: str


INSIDE = SGLangPlacement(Address("0.0.0.0", PORT), "/settings")  # noqa: S104 - all addresses of a container


@frozen
class SGLangService:
    """A document served by SGLang: ``words`` are its options, ``comments`` the first lines of the export.

    ``files``  its files beside the model, by their names in ``folder``.
    """

    origin: Origin
    words: list[str]
    files: dict[str, str]
    comments: list[Reason]
    lost: tuple[Reason, ...]
    variables: Mapping[str, str]

    def exported(self, name: str, text: str) -> Exported:
        """Return the export under ``name``, with the files of the server in the folder beside it."""
        files = {f"{folder_of(self.origin.name)}/{file}": content for file, content in self.files.items()}
        return Exported({name: text, **files}, self.lost)


def served(
    document: Document, receipt: Receipt | None, options: Options, place: SGLangPlacement | None = None
) -> SGLangService | ExportRefused:
    """Return the options of the adapter for ``document``, by default beside the export on this machine.

    Raises DocumentError("invalid").
    """
    engine = SGLang()
    if document["backend"] != engine.name:
        other = Reason(Unexportable.OTHER_BACKEND, backend=document["backend"], engine=engine.name)
        return ExportRefused(other, Reason(ExportRemedy.IMPORT_FOR, backends=[engine.name]))
    origin = Origin.of(document, receipt)
    place = place or SGLangPlacement(Address(port=PORT), f"./{folder_of(origin.name)}")
    files = engine.files(document, options.template)
    words = engine.settings(document, place.address, origin.revision, place.folder)
    sent = engine.client_sampling(document)
    lost = without_effect(document, lambda changed: _written(engine, changed, options.template), sent)
    comments = [*origin.comments(), *explained(PROGRAM, sent, lost), unrun(CHECKED)]
    return SGLangService(origin, words, files, comments, lost, environment.variables_of(document))


def _written(
    engine: SGLang, document: Document, template: ChatTemplate | None
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    files = engine.files(document, template) if template_file.named(document) else {}
    return engine.settings(document, folder="."), files, environment.variables_of(document)


def cards(document: Document) -> int:
    """Return the number of cards for the model: those that share layers, times the parts of the model."""
    parts = (document.get("engine_args") or {}).get("pp_size") or 1
    return int(document.get("tensor_parallel_size") or 1) * int(
        float(number(document, "engine_args.pp_size", parts))
    )


def folder_of(name: str) -> str:
    """Return the folder of files that an export for SGLang needs."""
    return f"{name}.sglang"


def _script(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    words = ["sglang", "serve", f"--model-path={service.origin.model}", *service.words]
    command = with_variables(service.variables, words)
    return service.exported(f"{service.origin.name}.sglang.sh", script(service.comments, [command]))


def _config(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, object] = {"model-path": service.origin.model}
    for flag, values in grouped(service.words):
        read = [argument_value(text) for text in values]
        data[flag.removeprefix("--")] = True if not read else read[0] if len(read) == 1 else read
    name = f"{service.origin.name}.sglang.yaml"
    words = with_variables(service.variables, ["sglang", "serve", "--config", name])
    command = Reason(ExportComment.COMMAND, command=shlex.join(words))
    return service.exported(name, yaml_text(data, [*service.comments, command]))


def export(
    form: str, document: Document, receipt: Receipt | None, options: Options
) -> Exported | ExportRefused:
    """Return the script of one command, or the file of ``--config``."""
    return (_config if form == "config" else _script)(document, receipt, options)
