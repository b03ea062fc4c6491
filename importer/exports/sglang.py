"""The common part of both exports for SGLang: the options of its adapter, and what they leave out."""

from __future__ import annotations

from dataclasses import dataclass

from importer.config_file import template_file
from importer.config_file.receipt import Receipt
from importer.config_file.template_file import ChatTemplate
from importer.engines.base import Address, Document
from importer.engines.sglang import SGLang
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Options,
    Origin,
    Unexportable,
    explained,
    without_effect,
)
from importer.reasons import Reason

PROGRAM = "sglang serve"
ADDRESS = Address(port=30000)  # where it listens by default


@dataclass(frozen=True, slots=True)
class SGLangService:
    """A document served by SGLang: ``words`` are its options, ``comments`` the first lines of the export.

    ``files``  its files beside the model, by their names in ``folder``.
    """

    origin: Origin
    words: list[str]
    files: dict[str, str]
    comments: list[Reason]
    lost: tuple[Reason, ...]

    def exported(self, name: str, text: str) -> Exported:
        """Return the export under ``name``, with the files of the server in the folder beside it."""
        files = {f"{folder_of(self.origin.name)}/{file}": content for file, content in self.files.items()}
        return Exported({name: text, **files}, self.lost)


def served(document: Document, receipt: Receipt | None, options: Options) -> SGLangService | ExportRefused:
    """Return the options of the adapter for ``document``; raises DocumentError("invalid")."""
    engine = SGLang()
    if document["backend"] != engine.name:
        other = Reason(Unexportable.OTHER_BACKEND, backend=document["backend"], engine=engine.name)
        return ExportRefused(other, Reason(ExportRemedy.IMPORT_FOR, backends=[engine.name]))
    origin = Origin.of(document, receipt)
    folder = f"./{folder_of(origin.name)}"
    files = engine.files(document, options.template)
    words = engine.settings(document, ADDRESS, origin.revision, folder)
    sent = engine.client_sampling(document)
    lost = without_effect(document, lambda changed: _written(engine, changed, options.template), sent)
    comments = [*origin.comments(), *explained(PROGRAM, sent, lost), Reason(ExportComment.UNRUN_SGLANG)]
    return SGLangService(origin, words, files, comments, lost)


def _written(
    engine: SGLang, document: Document, template: ChatTemplate | None
) -> tuple[list[str], dict[str, str]]:
    files = engine.files(document, template) if template_file.named(document) else {}
    return engine.settings(document, folder="."), files


def folder_of(name: str) -> str:
    """Return the folder of files that an export for SGLang needs."""
    return f"{name}.sglang"
