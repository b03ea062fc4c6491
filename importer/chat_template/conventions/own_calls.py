"""Offer tools before a template that writes calls and never shows tools: the calls stay the model's own.

A prelude puts the tools as JSON and the form of a call into the system turn, and hands calls on in the form
of messages that the template can write: arguments as JSON text, null in place of empty content.
"""

from __future__ import annotations

import json
from dataclasses import replace

from importer.chat_template import tool_calls
from importer.chat_template.cases import ASK, ONE, TOOLS, CaseStyle, Turn
from importer.chat_template.conventions.wrap import convention_text
from importer.chat_template.find import Template
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import analyze_thinking
from importer.chat_template.render import Renders
from importer.chat_template.request_coverage.check import check
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import Setting, UsageError
from importer.reasons import Reason, ReasonKind

NAME = "own-calls"
SYSTEM = Turn("system", "Keep it short.")
# The words of the case in the place of a call's parts.
EXAMPLE = {ONE.name: "first_function", "city": "name", "Paris": "value"}


class OwnCallsReason(ReasonKind):
    """Reasons why tools cannot be offered before a template."""

    NO_CALLS = "no-calls", "the model's own template writes no call"
    HIDDEN = "hidden", "the model's own template does not show its system turn"


def offer(own: Template, vocabulary: Vocabulary, renderer: Renders) -> str:
    """Return the text of ``own`` behind a prelude that shows the tools; its calls stay as they are.

    Raises UsageError("bad-value") for a template without calls, or one that shows no tools even so.
    """
    probe = TemplateProbe(own, vocabulary, renderer)
    tool_calls.find_form(probe)
    example = _example(probe)
    if example is None:
        raise _refused(OwnCallsReason.NO_CALLS)
    text = compose(own.text, probe.style, example, system=_takes_system(probe))
    offered = TemplateProbe(replace(own, text=text, plain=""), vocabulary, renderer)
    tool_calls.find_form(offered)
    if check(offered, analyze_thinking(offered)).tools != "shown":
        raise _refused(OwnCallsReason.HIDDEN)
    return text


def compose(own: str, style: CaseStyle, example: str, *, system: bool) -> str:
    """Return prelude and template in one text; the prelude itself writes nothing."""
    settings = {
        "example": example, "system": system, "parts": style.parts, "text": style.arguments == "text",
        "empty": style.empty,
    }  # fmt: skip
    lines = [
        f"{{%- set offered_{name} = {json.dumps(value, ensure_ascii=False)} -%}}"
        for name, value in settings.items()
    ]
    prelude = "\n".join([*lines, convention_text("own_calls")])
    # The last tag removes only its own line break: the white space after it is the template's.
    return prelude.removesuffix("-%}") + "%}\n" + own


def _example(probe: TemplateProbe) -> str | None:
    """Return the text of a call in the template's own form, with words that name its parts."""
    [piece] = probe.cut([ProbeRequest((ASK,), Turn("assistant", calls=(ONE,)), TOOLS)])
    if not isinstance(piece, Piece) or ONE.name not in piece.completion:
        return None
    text = piece.completion.strip()
    for word, name in EXAMPLE.items():
        text = text.replace(word, name)
    return text


def _takes_system(probe: TemplateProbe) -> bool:
    """Return whether the template shows a system turn before the first question."""
    ask = ProbeRequest((ASK,), ASK, probe.no_tools)
    [result] = probe.render([probe.job((SYSTEM, ASK), ask, generate=True)])
    return SYSTEM.text in getattr(result, "text", "")


def _refused(problem: OwnCallsReason) -> UsageError:
    return UsageError("bad-value", setting=Setting.TEMPLATE, value=NAME, problem=Reason(problem))
