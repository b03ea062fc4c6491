"""Wrap a model's own template: a prelude folds tools, calls and results into turns that it accepts.

Offer tools before a template that writes calls and never shows tools: the calls stay the model's own.

A prelude puts the tools as JSON and the form of a call into the system turn, and hands calls on in the form
of messages that the template can write: arguments as JSON text, null in place of empty content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from importer.chat_template import cases, tool_calls
from importer.chat_template.cases import ASK, ONE, TOOLS, CaseStyle, Turn
from importer.chat_template.conventions import CONVENTIONS, OWN_CALLS
from importer.chat_template.find import Template
from importer.chat_template.probe import HOPELESS, Piece, ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import analyze_thinking
from importer.chat_template.render import RenderJob, RenderRefused, Renders, Result
from importer.chat_template.request_coverage.check import check
from importer.chat_template.samples import Tool
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

SYSTEM = Turn("system", "Keep it short.")
REPLY = Turn("assistant", cases.ANSWER)
PLAIN = (cases.ASK, REPLY, cases.ASK_AGAIN)
# A round with a tool: each of these texts, and each tool's description, must be in the prompt.
ROUND = (
    SYSTEM, cases.ASK, Turn("assistant", cases.NARRATION, (ONE,)), Turn("tool", cases.RESULT),
    cases.ASK_AGAIN, REPLY, cases.ASK,
)  # fmt: skip


class DressReason(ReasonKind):
    """Reasons why a convention cannot wrap a model's own template."""

    CHANGED = "it would change what the model's own template writes without tools"
    LOST = "the model's own template does not show all that it is given, {text!r} is lost"
    REFUSED = "the model's own template does not go with it: {words}"


@frozen
class Traits:
    """The turns that a template accepts, found by rendering.

    ``system``  where it accepts a system turn: as the first one, anywhere, or never.
    ``strict``  whether it refuses two turns of one role, or a conversation that the assistant begins.
    ``parts``   whether it accepts content as a list of parts only.
    """

    system: Literal["first", "anywhere", "never"]
    strict: bool
    parts: bool


def wrap(own: Template, convention: str, vocabulary: Vocabulary, renderer: Renders) -> str:
    """Return the text of ``own`` behind a prelude that puts tools into its turns, by ``convention``.

    Raises UsageError("bad-value") for a template that drops a part of the conversation.
    """
    bare = own.plain or own.text
    probe = _TraitProbe(vocabulary, renderer)
    try:
        traits = probe.traits(bare)
        text = compose(bare, convention, traits)
        problem = probe.problem(text, bare, traits)
    except _HopelessError as error:
        problem = Reason(DressReason.REFUSED, words=error.reason)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=convention, problem=problem)
    return text


def compose(bare: str, convention: str, traits: Traits) -> str:
    """Return prelude and template in one text; the prelude itself writes nothing."""
    settings = {"system": traits.system, "strict": traits.strict, "parts": traits.parts}
    return _behind([convention_text(convention), *_set("dressed", settings), convention_text("fold")], bare)


def _set(prefix: str, settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{{%- set {prefix}_{name} = {json.dumps(value, ensure_ascii=False)} -%}}"


def _behind(prelude: Sequence[str], own: str) -> str:
    """Return a template behind a prelude, whose last tag removes only its own line break."""
    return "\n".join(prelude).removesuffix("-%}") + "%}\n" + own


@cache
def convention_text(name: str) -> str:
    """Return the Jinja text of a file beside this module."""
    return Path(__file__).with_name(f"{name}.jinja").read_text(encoding="utf-8").rstrip("\n")


def warm() -> None:
    """Read the texts of all conventions, before the sandbox closes all files."""
    for name in ("fold", "own_calls", *CONVENTIONS):
        convention_text(name)


class _HopelessError(Exception):
    """The template fails with every conversation."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.kind)
        self.reason = reason


@frozen
class _TraitProbe:
    """Renders conversations to find the traits of a template."""

    vocabulary: Vocabulary
    renderer: Renders

    def traits(self, bare: str) -> Traits:
        """Return the traits of a template; it may refuse any conversation."""
        parts = not self._shows(bare, PLAIN) and self._shows(bare, PLAIN, parts=True)
        first = self._shows(bare, (SYSTEM, cases.ASK), parts)
        anywhere = first and self._shows(bare, (cases.ASK, REPLY, SYSTEM, cases.ASK_AGAIN), parts)
        loose = ((cases.ASK, cases.ASK_AGAIN), (REPLY, cases.ASK))
        strict = not all(self._shows(bare, turns, parts) for turns in loose)
        return Traits("anywhere" if anywhere else "first" if first else "never", strict, parts)

    def problem(self, text: str, bare: str, traits: Traits) -> Reason | None:
        """Return the text that the wrapped template loses, or its change of a plain conversation, if any."""
        dressed = self._render(text, ROUND, traits.parts, TOOLS)
        if isinstance(dressed, RenderRefused):
            return Reason(DressReason.REFUSED, words=dressed.reason)
        texts = [turn.text for turn in ROUND] + [tool["function"]["description"] for tool in TOOLS]
        lost = next((words for words in texts if words not in dressed.text), None)
        if lost is not None:
            return Reason(DressReason.LOST, text=lost)
        if self._render(text, PLAIN, traits.parts) != self._render(bare, PLAIN, traits.parts):
            return Reason(DressReason.CHANGED)
        return None

    def _shows(self, template: str, turns: Sequence[Turn], parts: bool = False) -> bool:
        result = self._render(template, turns, parts)
        if isinstance(result, RenderRefused) or "'text'" in result.text:
            return False
        return all(turn.text in result.text for turn in turns)

    def _render(
        self, template: str, turns: Sequence[Turn], parts: bool, tools: Sequence[Tool] | None = None
    ) -> Result:
        job = RenderJob(CaseStyle(parts=parts).messages(turns), tools, add_generation_prompt=True)
        result = self.renderer.render(template, [job], self.vocabulary.variables).results[0]
        if isinstance(result, RenderRefused) and result.kind in HOPELESS:
            raise _HopelessError(result.reason)
        return result


SYSTEM_OF_CALLS = Turn("system", "Keep it short.")
# The words of the case in the place of a call's parts.
EXAMPLE = {ONE.name: "first_function", "city": "name", "Paris": "value"}


class OwnCallsReason(ReasonKind):
    """Reasons why tools cannot be offered before a template."""

    NO_CALLS = "the model's own template writes no call"
    HIDDEN = "the model's own template does not show its system turn"


def offer_own_calls(own: Template, vocabulary: Vocabulary, renderer: Renders) -> str:
    """Return the text of ``own`` behind a prelude that shows the tools; its calls stay as they are.

    Raises UsageError("bad-value") for a template without calls, or one that shows no tools even so.
    """
    probe = TemplateProbe(own, vocabulary, renderer)
    tool_calls.find_form(probe)
    example = _example(probe)
    if example is None:
        raise _refused(OwnCallsReason.NO_CALLS)
    text = compose_own_calls(own.text, probe.style, example, system=_takes_system(probe))
    offered = TemplateProbe(replace(own, text=text, plain=""), vocabulary, renderer)
    tool_calls.find_form(offered)
    if check(offered, analyze_thinking(offered)).tools != "shown":
        raise _refused(OwnCallsReason.HIDDEN)
    return text


def compose_own_calls(own: str, style: CaseStyle, example: str, *, system: bool) -> str:
    """Return prelude and template in one text; the prelude itself writes nothing."""
    settings = {
        "example": example, "system": system, "parts": style.parts, "text": style.arguments == "text",
        "empty": style.empty,
    }  # fmt: skip
    return _behind([*_set("offered", settings), convention_text("own_calls")], own)


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
    [result] = probe.render([probe.job((SYSTEM_OF_CALLS, ASK), ask, generate=True)])
    return SYSTEM_OF_CALLS.text in getattr(result, "text", "")


def _refused(problem: OwnCallsReason) -> UsageError:
    return UsageError("bad-value", setting=Setting.TEMPLATE, value=OWN_CALLS, problem=Reason(problem))
