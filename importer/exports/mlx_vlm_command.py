"""A command line for ``mlx_vlm.server``."""

from __future__ import annotations

from importer.document import chat_template
from importer.document.receipt import Receipt
from importer.engines.base import Document
from importer.engines.mlx_vlm import MlxVlm
from importer.exports.base import Exported, Options, Refused
from importer.exports.mlx import export_command


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | Refused:
    """A script of one command, or of two where the model is on the Hub."""
    if chat_template.named(document):
        return Refused(
            "its server takes a chat template from the model's folder only",
            "Put the template into a copy of that folder as chat_template.jinja, and serve the copy.",
        )
    return export_command(document, receipt, MlxVlm(), "mlx_vlm.server", options)
