"""Evidence from the rendered template: the learnt wire format of tool calls, and the reasoning block.

A format is recognised in the rendered text of a known call. Parsers are found by the markers in their own
sources (``parser_markers``), and only stand in for a proof.
"""

from __future__ import annotations

import re
from dataclasses import replace

from importer.chat_template.conventions import CONVENTIONS
from importer.chat_template.learnt_format import WireFormat, learn_format
from importer.chat_template.markers import SHAPE
from importer.chat_template.override import TemplateOverride
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.parser_markers import fitting, load, markers_in
from importer.signals.reasons import ShownReason

ENGINE = "vllm"  # the names of the tables
COMMON = 5  # parsers that know a block's marker, from which it is no format of its own
# Words of a name for a model that reasons; vendors use them for models of any family.
REASONS = re.compile(r"(?:^|[^a-z])(?:thinking|think|thinker|reasoning|reasoner)(?:[^a-z]|$)", re.IGNORECASE)
STRIPPED = "stripped"  # the source of a block that the template only cuts out of past turns
CLOSES = re.compile(r"</|end|suffix", re.IGNORECASE)


def evidence(analysis: TemplateAnalysis | None, source: str | None = None, name: str = "") -> list[Evidence]:
    """Return evidence by wire format, under vLLM's parser names; a note without a value for unknown formats.

    ``source`` names a template that is not the model's own; ``name`` is the repository's.
    """
    if analysis is None:
        return [_note(key, Reason(ShownReason.NO_TEMPLATE)) for key in ("tool_parser", "reasoning_parser")]
    sample = next((s for s in analysis.samples if s.case == "one-call"), None)
    calls = learn_format(analysis.samples)
    facts = [_calls(analysis, sample, calls), _thinking(analysis, named=REASONS.search(name) is not None)]
    return [replace(fact, source=source or Source.TEMPLATE) for fact in facts]


def from_override(override: TemplateOverride, backend: str) -> list[Evidence]:
    """Return the parser that one of importer's own templates was written for, by the template's name."""
    if override.name not in CONVENTIONS:
        return []
    parser = CONVENTIONS[override.name].parsers[backend]
    reason = Reason(ShownReason.MADE_FOR, convention=override.name, parser=parser)
    return [Evidence(Rule.TEMPLATE_OVERRIDE, "tool_parser", parser, override.source, reason)]


def _note(key: str, reason: Reason, quote: str = "") -> Evidence:
    """Return evidence from the template that names no parser."""
    return Evidence(Rule.TEMPLATE, key, None, Source.TEMPLATE, reason, quote)


def _calls(analysis: TemplateAnalysis, sample: Sample | None, calls: WireFormat | None) -> Evidence:
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    if sample is None or calls is None:
        parser = _instructed(analysis.tools_prompt)
        reason = Reason(
            ShownReason.NO_CALLS, problem=analysis.problems.get("one-call"), asked=parser,
            shown=analysis.tools_rendered or analysis.tools_named,
        )  # fmt: skip
        if parser is None:
            return _note("tool_parser", reason)
        quote = analysis.tools_prompt[:160]
        return Evidence(Rule.TEMPLATE_INSTRUCTIONS, "tool_parser", parser, Source.TEMPLATE, reason, quote)
    quote = sample.completion[:160]
    known = fitting(ENGINE, "tool", calls.markers, text)
    if not known:
        return _note("tool_parser", Reason(ShownReason.UNKNOWN_CALLS), quote)
    reason = Reason(ShownReason.CALLS, format=calls.label)
    return Evidence(Rule.TEMPLATE_FORMAT, "tool_parser", known[0], Source.TEMPLATE, reason, quote)


def _instructed(prompt: str) -> str | None:
    """Return the parser whose opening marker the instructions of tools name, and the fewest strangers."""
    opening = [m for m in markers_in(prompt, ENGINE, "tool") if not CLOSES.search(m)]
    calling = [m for m in opening if "call" in m.lower() or "action" in m.lower()]
    known = fitting(ENGINE, "tool", calling[:1], prompt)
    return known[0] if known else None


def _thinking(analysis: TemplateAnalysis, *, named: bool) -> Evidence:
    thinking, key = analysis.thinking, "reasoning_parser"
    if thinking.markers is None:
        if not analysis.samples:
            return _note(
                key, Reason(ShownReason.NOT_RENDERED, problem=next(iter(analysis.problems.values()), None))
            )
        if thinking.switch:
            return _note(key, Reason(ShownReason.SWITCHES, switch=thinking.switch))
        return Evidence(Rule.TEMPLATE_FORMAT, key, None, Source.TEMPLATE, Reason(ShownReason.NO_REASONING))
    quote = " … ".join(thinking.markers)
    block = SHAPE.findall(" ".join(thinking.markers)) or [*thinking.markers]
    own = sum(block[0] in parser.markers for parser in load(ENGINE, "reasoning").values()) < COMMON
    past = thinking.source in ("rendered", STRIPPED) and not thinking.opened and thinking.default is None
    idle = past and not thinking.switch and not own and not named
    alike = thinking.markers[0] if past and own and not thinking.switch else None
    reason = Reason(
        ShownReason.THINKS, opened=thinking.opened, by=thinking.source, switch=thinking.switch,
        default=thinking.default, alike=alike, idle=idle,
    )  # fmt: skip
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    parser = None if idle else next(iter(fitting(ENGINE, "reasoning", block, text)), None)
    if parser is None and not idle:
        return _note(key, reason, quote)
    return Evidence(Rule.TEMPLATE_FORMAT, key, parser, Source.TEMPLATE, reason, quote)
