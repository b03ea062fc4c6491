"""A command line for ``mlx_vlm.server``."""

from __future__ import annotations

from importer.document import chat_template
from importer.document.receipt import Receipt
from importer.engines.base import Document
from importer.engines.dressing import TEMPLATE
from importer.engines.mlx_vlm import MlxVlm
from importer.exports.base import Exported, Options, Refused
from importer.exports.kinds import ExportRemedy, Unexportable
from importer.exports.mlx import export_command
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | Refused:
    """A script of one command, or of two where the model is on the Hub."""
    if chat_template.named(document):
        remedy = Reason(ExportRemedy.SERVE_A_COPY, file=TEMPLATE)
        return Refused(Reason(Unexportable.TEMPLATE_IN_FOLDER), remedy)
    return export_command(document, receipt, MlxVlm(), "mlx_vlm.server", options)
