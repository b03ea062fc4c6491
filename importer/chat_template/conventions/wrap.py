"""Dress a model's own template: a prelude folds tools, calls and results into turns that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from importer.chat_template import cases
from importer.chat_template.cases import ONE, TOOLS, CaseStyle, Turn
from importer.chat_template.conventions import CONVENTIONS
from importer.chat_template.find import Template
from importer.chat_template.probe import HOPELESS
from importer.chat_template.render import RenderJob, RenderRefused, Renders, Result
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import Setting, UsageError
from importer.reasons import Reason

SYSTEM = Turn("system", "Keep it short.")
REPLY = Turn("assistant", cases.ANSWER)
PLAIN = (cases.ASK, REPLY, cases.ASK_AGAIN)
# A round with a tool: each of these texts, and each tool's description, must be in the prompt.
ROUND = (
    SYSTEM, cases.ASK, Turn("assistant", cases.NARRATION, (ONE,)), Turn("tool", cases.RESULT),
    cases.ASK_AGAIN, REPLY, cases.ASK,
)  # fmt: skip


class DressReason(StrEnum):
    """Why a convention does not go with a model's own template."""

    CHANGED = "changed"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a template takes, found by rendering.

    ``system``  where it takes a system turn: as the first one, anywhere, or never.
    ``strict``  it refuses two turns of one role, or a conversation that the assistant begins.
    ``parts``   it takes content as a list of parts only.
    """

    system: Literal["first", "anywhere", "never"]
    strict: bool
    parts: bool


def wrap(own: Template, convention: str, vocabulary: Vocabulary, renderer: Renders) -> str:
    """Return the text of ``own`` behind a prelude that puts tools into its turns as ``convention`` has it.

    Raises UsageError("bad-value") for a template that does not show all that it is given.
    """
    bare = own.plain or own.text
    bench = _Bench(vocabulary, renderer)
    try:
        traits = bench.traits(bare)
        text = compose(bare, convention, traits)
        problem = bench.problem(text, bare, traits)
    except _HopelessError as error:
        problem = Reason(DressReason.REFUSED, words=error.reason)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=convention, problem=problem)
    return text


def compose(bare: str, convention: str, traits: Traits) -> str:
    """Prelude and template in one text; the prelude writes nothing, whatever the template begins with."""
    settings = {"system": f"'{traits.system}'", "strict": traits.strict, "parts": traits.parts}
    lines = [f"{{%- set dressed_{name} = {str(value).lower()} -%}}" for name, value in settings.items()]
    prelude = "\n".join([_ours(convention), *lines, _ours("fold")])
    # The last tag takes no more than its own line break away: what follows is the template's.
    return prelude.removesuffix("-%}") + "%}\n" + bare


@cache
def _ours(name: str) -> str:
    return (
        files("importer.chat_template.conventions")
        .joinpath(f"{name}.jinja")
        .read_text(encoding="utf-8")
        .rstrip("\n")
    )


def warm() -> None:
    """Read our texts, before the sandbox closes all files."""
    for name in ("fold", *CONVENTIONS):
        _ours(name)


class _HopelessError(Exception):
    """The template would do no better with any other conversation."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.kind)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Bench:
    """Renders conversations for their texts."""

    vocabulary: Vocabulary
    renderer: Renders

    def traits(self, bare: str) -> Traits:
        """Return what the template takes; it may refuse anything."""
        parts = not self._shows(bare, PLAIN) and self._shows(bare, PLAIN, parts=True)
        first = self._shows(bare, (SYSTEM, cases.ASK), parts)
        anywhere = first and self._shows(bare, (cases.ASK, REPLY, SYSTEM, cases.ASK_AGAIN), parts)
        loose = ((cases.ASK, cases.ASK_AGAIN), (REPLY, cases.ASK))
        strict = not all(self._shows(bare, turns, parts) for turns in loose)
        return Traits("anywhere" if anywhere else "first" if first else "never", strict, parts)

    def problem(self, text: str, bare: str, traits: Traits) -> Reason | None:
        """Return what the dressed template loses of a round with a tool, or changes in a plain
        conversation.
        """
        dressed = self._render(text, ROUND, traits.parts, TOOLS)
        if isinstance(dressed, RenderRefused):
            return Reason(DressReason.REFUSED, words=dressed.reason)
        said = [turn.text for turn in ROUND] + [tool["function"]["description"] for tool in TOOLS]
        lost = next((words for words in said if words not in dressed.text), None)
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
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Result:
        job = RenderJob(CaseStyle(parts=parts).messages(turns), tools, add_generation_prompt=True)
        result = self.renderer.render(template, [job], self.vocabulary.variables).results[0]
        if isinstance(result, RenderRefused) and result.kind in HOPELESS:
            raise _HopelessError(result.reason)
        return result
