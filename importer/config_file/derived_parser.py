"""A parser as data in a document: the response template with which the parser ``hf`` reads the model.

The template is a part of the document's data, so the digest covers it. The engine gets it in a folder of
links to the model's files, whose ``tokenizer_config.json`` is the model's own with the template in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.config_file import field_paths
from importer.decisions.decision import Decision
from importer.decisions.derived import HF, REASONING, TOOL

KEY = "response_template"  # under ``importer``, and in a tokenizer's configuration
FILE = "tokenizer_config.json"


def entry(decisions: Mapping[str, Decision], template: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the document's entry, where a decided parser reads with the template; else none."""
    used = any(decisions[key].value == HF for key in (TOOL, REASONING))
    return {KEY: dict(template)} if used and template is not None else {}


def of(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the document's template, where one of its parsers reads with it."""
    block = document.get("importer")
    template = block.get(KEY) if isinstance(block, Mapping) else None
    used = any(field_paths.parser(document, key) == HF for key in (TOOL, REASONING))
    return template if used and isinstance(template, Mapping) and template else None
