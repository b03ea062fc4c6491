"""Wrap a model's own template: a prelude folds tools, calls and results into turns that it accepts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from importer.chat_template import cases
from importer.chat_template.cases import ONE, TOOLS, CaseStyle, Turn
from importer.chat_template.conventions import CONVENTIONS
from importer.chat_template.find import Template
from importer.chat_template.probe import HOPELESS
from importer.chat_template.render import RenderJob, RenderRefused, Renders, Result
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

    CHANGED = "changed", "it would change what the model's own template writes without tools"
    LOST = "lost", "the model's own template does not show all that it is given, {text!r} is lost"
    REFUSED = "refused", "the model's own template does not go with it: {words}"


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
    settings = {"system": f"'{traits.system}'", "strict": traits.strict, "parts": traits.parts}
    lines = [f"{{%- set dressed_{name} = {str(value).lower()} -%}}" for name, value in settings.items()]
    prelude = "\n".join([convention_text(convention), *lines, convention_text("fold")])
    # The last tag removes only its own line break: the white space after it is the template's.
    return prelude.removesuffix("-%}") + "%}\n" + bare


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
        self,
        template: str,
        turns: Sequence[Turn],
        parts: bool,
        tools: Sequence[Tool] | None = None,
    ) -> Result:
        job = RenderJob(CaseStyle(parts=parts).messages(turns), tools, add_generation_prompt=True)
        result = self.renderer.render(template, [job], self.vocabulary.variables).results[0]
        if isinstance(result, RenderRefused) and result.kind in HOPELESS:
            raise _HopelessError(result.reason)
        return result
