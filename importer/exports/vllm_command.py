"""A command line for ``vllm serve``, from the Hub at the document's commit."""

from __future__ import annotations

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.exports.base import Exported, ExportRefused, Options, script
from importer.exports.vllm import beside, command, served, with_files


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    start = command(service, document, service.words, service.origin.model)
    text = script(service.comments, [start])
    return with_files(f"{service.origin.name}.vllm.sh", text, service, service.engine)
