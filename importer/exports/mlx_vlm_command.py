"""A command line for ``mlx_vlm.server``."""

from __future__ import annotations

from importer.config_file import template_file
from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.engines.base import TEMPLATE
from importer.engines.mlx_vlm import MlxVlm
from importer.exports.base import Exported, ExportRefused, ExportRemedy, Options, Unexportable
from importer.exports.mlx import export_command
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, or of two where the model is on the Hub."""
    if template_file.named(document):
        remedy = Reason(ExportRemedy.SERVE_A_COPY, file=TEMPLATE)
        return ExportRefused(Reason(Unexportable.TEMPLATE_IN_FOLDER), remedy)
    return export_command(document, receipt, MlxVlm(), "mlx_vlm.server", options)
