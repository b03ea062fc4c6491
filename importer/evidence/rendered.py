"""What the rendered template shows by itself: a known wire format, and whether and how it thinks."""

from __future__ import annotations

from dataclasses import replace

from importer.evidence.fact import Evidence
from importer.evidence.formats import Format, block_parser, format_of, has_own_block, instructed
from importer.messages import render
from importer.template.given import Given
from importer.template.ours import CONVENTIONS
from importer.template.study import Sample, Study

SOURCE = "the chat template"
HOW = {
    "rendered": "renders reasoning in a block",
    "prompt": "writes a block into the prompt",
    "stripped": "cuts reasoning blocks out of past turns",
    "instructed": "asks for reasoning in its system prompt",
    None: "shows reasoning",
}


def evidence(study: Study | None, source: str | None = None) -> list[Evidence]:
    """Claims by format, under vLLM's parser names; what shows nothing is said as a note without a claim.

    ``source`` names a template that is not the model's own.
    """
    if study is None:
        says = "the repository has no chat template that could be read"
        return [Evidence("template", key, None, SOURCE, says) for key in ("tool_parser", "reasoning_parser")]
    sample = next((s for s in study.samples if s.case == "one-call"), None)
    calls = None if sample is None else format_of(sample.prompt, sample.completion)
    facts = [_calls(study, sample, calls), _thinking(study, calls)]
    return [replace(fact, source=source or SOURCE) for fact in facts]


def given_by(given: Given, backend: str) -> list[Evidence]:
    """What a template of ours says by its name: the parser that it was written for."""
    if given.name not in CONVENTIONS:
        return []
    parser = CONVENTIONS[given.name].parsers[backend]
    says = f"{given.source} writes calls for {parser}"
    return [Evidence("given-template", "tool_parser", parser, given.source, says)]


def _calls(study: Study, sample: Sample | None, found: Format | None) -> Evidence:
    if sample is None:
        says = "the template renders no tool calls"
        if study.problems.get("one-call"):
            says += f" ({render(study.problems['one-call'])})"
        told = instructed(study.tools_prompt)
        if told is not None:
            says += f", but asks for them in the format {told.name}"
            quote = study.tools_prompt[:160]
            return Evidence(
                "template-instructions", "tool_parser", told.parsers["vllm"][0], SOURCE, says, quote
            )
        return Evidence("template", "tool_parser", None, SOURCE, says)
    quote = sample.completion[:160]
    if found is None:
        says = "the template renders tool calls in a format that is not known by its markers"
        return Evidence("template", "tool_parser", None, SOURCE, says, quote)
    says = f"the template writes tool calls in the format {found.name}"
    return Evidence("template-format", "tool_parser", found.parsers["vllm"][0], SOURCE, says, quote)


def _thinking(study: Study, calls: Format | None) -> Evidence:
    thinking = study.thinking
    if thinking.markers is None:
        says = "the template renders no reasoning"
        if not study.samples:
            first = next(map(render, study.problems.values()), "unknown")
            says = f"the template could not be rendered: {first}"
            return Evidence("template", "reasoning_parser", None, SOURCE, says)
        return Evidence("template-format", "reasoning_parser", None, SOURCE, says)
    quote = " … ".join(thinking.markers)
    says = f"the template {'opens a block in the prompt' if thinking.opened else HOW[thinking.source]}"
    if thinking.switch:
        default = {True: "on", False: "off", None: "unsaid"}[thinking.default]
        says += f", switched by {thinking.switch}, by default {default}"
    elif calls is not None and has_own_block(calls):
        says += f", as models that write {calls.name} calls do"
    elif thinking.source == "rendered" and not thinking.opened and thinking.default is None:
        says += ", but neither opens one nor switches it: nothing shows that this model thinks"
        return Evidence("template-format", "reasoning_parser", None, SOURCE, says, quote)
    parser = block_parser(thinking.markers[0], calls)
    return Evidence(
        "template" if parser is None else "template-format", "reasoning_parser", parser, SOURCE, says, quote
    )
