"""The YAML that ``sglang serve --config FILE`` reads: each key becomes a flag, each value its argument."""

from __future__ import annotations

import json
from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import ExportComment, Exported, ExportRefused, Options, yaml_text
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
        data[flag] = _value(text) if equals else True
    name = f"{service.origin.name}.sglang.yaml"
    command = Reason(ExportComment.COMMAND, command=f"sglang serve --config {name}")
    return service.exported(name, yaml_text(data, [*service.comments, command]))


def _value(text: str) -> Any:
    """Return an object or a number where SGLang writes the same word for it again, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    same = isinstance(value, dict) or (isinstance(value, int | float) and str(value) == text)
    return value if same and not isinstance(value, bool) else text
