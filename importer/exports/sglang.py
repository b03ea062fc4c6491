"""SGLang: a command or the YAML of ``--config``, by the options of its adapter, with what they leave out."""

from __future__ import annotations

from importer.document import environment, template_file
from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address, number
from importer.engines.sglang import SGLang
from importer.exports.base import (
    Exported,
    Options,
    Origin,
    Placement,
    Service,
    explained,
    folder_of,
    need_backend,
    without_effect,
)
from importer.exports.kinds import unrun
from importer.exports.vllm import version

CHECKED = "Checked against the argument parser of SGLang, not run: its server needs an NVIDIA card."

PROGRAM = ("sglang", "serve")
PORT = 30000  # where it listens by default


def served(
    document: Document, receipt: Receipt | None, options: Options, place: Placement | None = None
) -> Service:
    """Return the service of ``document``, by default beside the export on this machine.

    Raises DocumentError: "cannot-export", "invalid".
    """
    engine = SGLang()
    need_backend(document, engine.name)
    origin = Origin.of(document, receipt)
    place = place or Placement(Address(port=PORT), f"./{folder_of(origin.name, engine.name)}")
    words = engine.settings(document, place.address, origin.revision, place.folder)
    sent = engine.client_sampling(document)
    lost = without_effect(document, lambda changed: _written(engine, changed, options.template), sent)
    comments = [*origin.comments(), *explained(" ".join(PROGRAM), sent, lost), unrun(CHECKED)]
    return Service(
        origin, engine.name, PROGRAM, [f"--model-path={origin.model}"], words, comments, lost,
        environment.variables_of(document), engine.files(document, options.template),
    )  # fmt: skip


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


def image(document: Document) -> str:
    """Return SGLang's image at the version of the document's engine."""
    return f"lmsysorg/sglang:v{version(document, 'sglang')}"


def export(form: str, document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return the script of one command, or the file of ``--config``."""
    service = served(document, receipt, options)
    return service.config("model-path") if form == "config" else service.script()
