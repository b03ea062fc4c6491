"""A command line for ``vllm serve``, from the Hub at the document's commit."""

from __future__ import annotations

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import Exported, ExportRefused, Options, script
from importer.exports.vllm import beside, served, with_files


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one command, every word quoted for a shell."""
    found = served(document, receipt, options, beside)
    if isinstance(found, ExportRefused):
        return found
    command = ["vllm", "serve", found.origin.model, *found.words]
    return with_files(f"{found.origin.name}.vllm.sh", script(found.comments, [command]), found)
