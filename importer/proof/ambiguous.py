"""Parsers that a guessed reasoning block cannot refute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from importer.chat_template.markers import SHAPE
from importer.chat_template.study import TemplateAnalysis
from importer.proof.result import ParserVerdict
from importer.signals.template_markers import load_parser_markers

RENDERED = "rendered"  # the source of a block that the template itself writes
REASONED = ("thinking-whole", "thinking-opened")


def unsettled(
    verdicts: Sequence[ParserVerdict], analysis: TemplateAnalysis, engine: str
) -> list[ParserVerdict]:
    """Return the verdicts, those marked that the samples cannot refute.

    A template that writes no reasoning of its own shows markers alone, and not what stands between reasoning
    and answer. A parser with these markers and with further ones may be right, though it reads no sample.
    """
    thinking = analysis.thinking
    if thinking.markers is None or thinking.source == RENDERED:
        return [*verdicts]
    block = SHAPE.findall(" ".join(thinking.markers))
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    known = load_parser_markers(engine, "reasoning")
    open_ones = {
        name
        for name, parser in known.items()
        if block and all(marker in parser.markers for marker in block) and parser.strangers(text)
    }
    return [replace(v, unsettled=v.parser in open_ones and _fails_first_on_reasoning(v)) for v in verdicts]


def _fails_first_on_reasoning(verdict: ParserVerdict) -> bool:
    failed = [case for case in verdict.needed if case in verdict.failed]
    return bool(failed) and all(case in REASONED for case in failed)
