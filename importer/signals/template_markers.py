"""Evidence from the rendered template: a known wire format of tool calls, and the reasoning block."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from importer.chat_template.conventions import CONVENTIONS
from importer.chat_template.override import TemplateOverride
from importer.chat_template.samples import Sample, TemplateAnalysis
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.wire_formats import WireFormat, block_parser, format_of, has_own_block, instructed


class ShownReason(StrEnum):
    """Reasons from a rendered template."""

    NO_TEMPLATE = "no-template"
    MADE_FOR = "made-for"
    NO_CALLS = "no-calls"
    UNKNOWN_CALLS = "unknown-calls"
    CALLS = "calls"
    NO_REASONING = "no-reasoning"
    NOT_RENDERED = "not-rendered"
    THINKS = "thinks"


def evidence(analysis: TemplateAnalysis | None, source: str | None = None) -> list[Evidence]:
    """Return evidence by wire format, under vLLM's parser names; a note without a value for unknown formats.

    ``source`` names a template that is not the model's own.
    """
    if analysis is None:
        return [_note(key, Reason(ShownReason.NO_TEMPLATE)) for key in ("tool_parser", "reasoning_parser")]
    sample = next((s for s in analysis.samples if s.case == "one-call"), None)
    calls = None if sample is None else format_of(sample.prompt, sample.completion)
    facts = [_calls(analysis, sample, calls), _thinking(analysis, calls)]
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


def _calls(analysis: TemplateAnalysis, sample: Sample | None, wire_format: WireFormat | None) -> Evidence:
    if sample is None:
        instructed_format = instructed(analysis.tools_prompt)
        format_name = None if instructed_format is None else instructed_format.name
        reason = Reason(ShownReason.NO_CALLS, problem=analysis.problems.get("one-call"), asked=format_name)
        if instructed_format is None:
            return _note("tool_parser", reason)
        parser, quote = instructed_format.parsers["vllm"][0], analysis.tools_prompt[:160]
        return Evidence(Rule.TEMPLATE_INSTRUCTIONS, "tool_parser", parser, Source.TEMPLATE, reason, quote)
    quote = sample.completion[:160]
    if wire_format is None:
        return _note("tool_parser", Reason(ShownReason.UNKNOWN_CALLS), quote)
    reason, parser = Reason(ShownReason.CALLS, format=wire_format.name), wire_format.parsers["vllm"][0]
    return Evidence(Rule.TEMPLATE_FORMAT, "tool_parser", parser, Source.TEMPLATE, reason, quote)


def _thinking(analysis: TemplateAnalysis, calls: WireFormat | None) -> Evidence:
    thinking, key = analysis.thinking, "reasoning_parser"
    if thinking.markers is None:
        if not analysis.samples:
            return _note(
                key, Reason(ShownReason.NOT_RENDERED, problem=next(iter(analysis.problems.values()), None))
            )
        return Evidence(Rule.TEMPLATE_FORMAT, key, None, Source.TEMPLATE, Reason(ShownReason.NO_REASONING))
    quote = " … ".join(thinking.markers)
    alike = calls.name if not thinking.switch and calls is not None and has_own_block(calls) else None
    shown = thinking.source == "rendered" and not thinking.opened and thinking.default is None
    idle = shown and not thinking.switch and alike is None
    reason = Reason(
        ShownReason.THINKS, opened=thinking.opened, by=thinking.source, switch=thinking.switch,
        default=thinking.default, alike=alike, idle=idle,
    )  # fmt: skip
    parser = None if idle else block_parser(thinking.markers[0], calls)
    if parser is None and not idle:
        return _note(key, reason, quote)
    return Evidence(Rule.TEMPLATE_FORMAT, key, parser, Source.TEMPLATE, reason, quote)
