"""The YAML that ``vllm serve --config FILE`` reads: each key becomes a flag, each value its argument."""

from __future__ import annotations

import shlex

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
from importer.engines.arguments import grouped
from importer.engines.base import Unstartable, invalid
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    Options,
    argument_value,
    yaml_text,
)
from importer.exports.vllm import beside, command, served, with_files
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, object] = {"model": service.origin.model}
    for flag, values in grouped(service.words):
        key = flag.removeprefix("--")
        read = [argument_value(text) for text in values]
        data[key] = True if not read else read[0] if len(read) == 1 else read
        # Flag and argument become two words, and vLLM reads a word like -0.5 as a flag with a field.
        if any(text.startswith("-") and "." in text for text in values):
            raise invalid(document, Reason(Unstartable.NOT_IN_CONFIG_FILE, key=key, value=values))
    name = f"{service.origin.name}.vllm.yaml"
    start = shlex.join(command(service, document, ["--config", name]))
    comments = [*service.comments, Reason(ExportComment.COMMAND, command=start)]
    return with_files(name, yaml_text(data, comments), service, service.engine)
