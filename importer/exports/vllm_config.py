"""The YAML that ``vllm serve --config FILE`` reads: each key becomes a flag, each value its argument."""

from __future__ import annotations

from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document, Unstartable, invalid
from importer.exports.base import ExportComment, Exported, ExportRefused, Options, argument_value, yaml_text
from importer.exports.vllm import beside, served, with_files
from importer.reasons import Reason


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a file with the keys in the order of the command line, the model first."""
    service = served(document, receipt, options, beside)
    if isinstance(service, ExportRefused):
        return service
    data: dict[str, Any] = {"model": service.origin.model}
    for word in service.words:
        flag, equals, text = word.removeprefix("--").partition("=")
        data[flag] = argument_value(text) if equals else True
        # Flag and argument become two words, and vLLM reads a word like -0.5 as a flag with a field.
        if text.startswith("-") and "." in text:
            raise invalid(document, Reason(Unstartable.NOT_IN_CONFIG_FILE, key=flag, value=text))
    name = f"{service.origin.name}.vllm.yaml"
    chosen = "".join(f"{variable}={value} " for variable, value in service.variables.items())
    command = Reason(ExportComment.COMMAND, command=f"{chosen}vllm serve --config {name}")
    return with_files(name, yaml_text(data, [*service.comments, command]), service)
