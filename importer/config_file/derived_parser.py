"""A parser as data in a document: the response template with which the parser ``hf`` reads the model.

The template is a part of the document's data, so the digest covers it. The engine gets it in a folder of
links to the model's files, whose ``tokenizer_config.json`` is the model's own with the template in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.config_file import document_keys
from importer.config_file.diff import KeyPath
from importer.decisions.decision import Decision
from importer.decisions.derived import HF, REASONING, TOOL
from importer.reasons import Reason

KEY = "response_template"  # under ``importer``, and in a tokenizer's configuration
FILE = "tokenizer_config.json"
PATTERN = "_pattern"  # how the keys of regular expressions end, at every depth


def entry(decisions: Mapping[str, Decision], template: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the document's entry, where a decided parser reads with the template; else none."""
    used = any(decisions[key].value == HF for key in (TOOL, REASONING))
    return {KEY: dict(template)} if used and template is not None else {}


def of(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the document's template, where one of its parsers reads with it."""
    block = document.get("importer")
    template = block.get(KEY) if isinstance(block, Mapping) else None
    used = any(document_keys.parser(document, key) == HF for key in (TOOL, REASONING))
    return template if used and isinstance(template, Mapping) and template else None


def faults(document: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Reason]]:
    """Yield a pattern of the template that takes too long on some text; a bounded child tries them all.

    Also where no parser reads with the template: another edit may turn one on. Raises SandboxError.
    """
    block = document.get("importer")
    template = block.get(KEY) if isinstance(block, Mapping) else None
    found = [*_patterns(template, ("importer", KEY))]
    if not found:
        return
    from importer.config_file import slow_patterns

    refused = slow_patterns.refused(tuple(text for _, text in found))
    if refused is not None:
        yield found[refused[0]][0], refused[1]


def _patterns(value: object, path: KeyPath, of_pattern: bool = False) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts under keys of patterns, with their places."""
    if isinstance(value, str):
        if of_pattern:
            yield path, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            named = of_pattern or (isinstance(key, str) and key.endswith(PATTERN))
            yield from _patterns(inner, (*path, key), named)
