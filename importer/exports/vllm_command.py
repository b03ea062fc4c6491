"""A command line for ``vllm serve``, from the Hub at the document's commit."""

from __future__ import annotations

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.exports.base import Exported, ExportRefused, Options, script, with_variables
from importer.exports.vllm import beside, served, with_files


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, every word quoted for a shell."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    command = with_variables(service.variables, ["vllm", "serve", service.origin.model, *service.words])
    return with_files(f"{service.origin.name}.vllm.sh", script(service.comments, [command]), service)
