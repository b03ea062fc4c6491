"""A command line for ``vllm-mlx serve``."""

from __future__ import annotations

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.engines.vllm_mlx import VllmMlx
from importer.exports.base import Exported, ExportRefused, Options
from importer.exports.mlx import export_command


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, or of two where the model is on the Hub."""
    return export_command(document, receipt, VllmMlx(), "vllm-mlx serve", options, infers=False)
