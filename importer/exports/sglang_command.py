"""A command line for ``sglang serve``, from the Hub at the document's commit."""

from __future__ import annotations

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import Exported, ExportRefused, Options, script
from importer.exports.sglang import served


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    command = ["sglang", "serve", f"--model-path={service.origin.model}", *service.words]
    return service.exported(f"{service.origin.name}.sglang.sh", script(service.comments, [command]))
