"""Calls as a template's instructions ask for them, where past turns are written with less.

Two losses of past turns are known by their form alone: text without quotes in calls of Python's syntax, and a
list of calls without the word that the instructions put before it (``functools[{"name": …}]``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from importer.chat_template.cases import ONE
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis

# A word right before a list of objects with a name; quotes and colons stand before it inside of JSON.
LISTED = re.compile(r"(?<![\w\"':])([A-Za-z_]\w{2,30})\[\s*\{\s*\"name\"")


def as_instructed(analysis: TemplateAnalysis) -> TemplateAnalysis:
    """Return the analysis with the calls of its samples as the model writes them."""
    one = next((s for s in analysis.samples if s.case == "one-call"), None)
    mend = None if one is None else _mending(one, analysis.tools_prompt)
    if mend is None:
        return analysis
    samples = (
        replace(s, completion=s.completion[: s.lead] + mend(s)) if s.calls else s for s in analysis.samples
    )
    return replace(analysis, samples=tuple(samples))


def _mending(one: Sample, instructions: str) -> Callable[[Sample], str] | None:
    text = one.behind
    if all(f"{key}={value}" in text for key, value in ONE.arguments.items()) and f"{ONE.name}(" in text:
        return _quoted
    word = LISTED.search(instructions)
    if word is not None and text.lstrip().startswith("{") and word[1] not in text:
        return lambda sample: _listed(sample, word[1])
    return None


def _quoted(sample: Sample) -> str:
    """Return the calls with their texts in quotes, as Python's syntax requires."""
    text = sample.behind
    for call in sample.calls:
        for key, value in call.arguments.items():
            if isinstance(value, str):
                text = text.replace(f"{key}={value}", f"{key}={value!r}", 1)
    return text


def _listed(sample: Sample, word: str) -> str:
    """Return the calls as one list behind the word."""
    text = sample.behind
    start, end = text.find("{"), text.rfind("}") + 1
    return f"{text[:start]}{word}[{text[start:end]}]{text[end:]}"
