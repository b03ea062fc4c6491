"""The YAML that ``sglang serve --config FILE`` reads: each key becomes a flag, each value its argument."""

from __future__ import annotations

from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import ExportComment, Exported, ExportRefused, Options, argument_value, yaml_text
from importer.exports.sglang import served
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, Any] = {"model-path": service.origin.model}
    for word in service.words:
        flag, equals, text = word.removeprefix("--").partition("=")
        data[flag] = argument_value(text) if equals else True
    name = f"{service.origin.name}.sglang.yaml"
    command = Reason(ExportComment.COMMAND, command=f"sglang serve --config {name}")
    return service.exported(name, yaml_text(data, [*service.comments, command]))
