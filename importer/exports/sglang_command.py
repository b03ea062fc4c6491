"""A command line for ``sglang serve``, from the Hub at the document's commit."""

from __future__ import annotations

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.exports.base import Exported, ExportRefused, Options, script, with_variables
from importer.exports.sglang import served


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    words = ["sglang", "serve", f"--model-path={service.origin.model}", *service.words]
    command = with_variables(service.variables, words)
    return service.exported(f"{service.origin.name}.sglang.sh", script(service.comments, [command]))
