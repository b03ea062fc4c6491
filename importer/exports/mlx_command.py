"""A command line for ``mlx_lm.server``."""

from __future__ import annotations

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.engines.mlx import Mlx
from importer.exports.base import Exported, ExportRefused, Options
from importer.exports.mlx import export_command

# Without this folder of the Hub client, mlx-lm answers to /v1/models with nothing (0.32.2).
CACHE = 'mkdir -p "${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}"'


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a script of one command, or of two where the model is on the Hub."""
    return export_command(document, receipt, Mlx(), "mlx_lm.server", options, first=(CACHE,))
