"""The YAML that ``sglang serve --config FILE`` reads: each key becomes a flag, each value its argument."""

from __future__ import annotations

import shlex

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.engines.arguments import grouped
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    Options,
    argument_value,
    with_variables,
    yaml_text,
)
from importer.exports.sglang import served
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, object] = {"model-path": service.origin.model}
    for flag, values in grouped(service.words):
        read = [argument_value(text) for text in values]
        data[flag.removeprefix("--")] = True if not read else read[0] if len(read) == 1 else read
    name = f"{service.origin.name}.sglang.yaml"
    words = with_variables(service.variables, ["sglang", "serve", "--config", name])
    command = Reason(ExportComment.COMMAND, command=shlex.join(words))
    return service.exported(name, yaml_text(data, [*service.comments, command]))
