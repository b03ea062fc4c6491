"""The probe of the switch for reasoning: without thinking, the answer is in the content, once, without a
block.
"""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import WAYS, Context, together
from importer.validation.diagnosis import endless
from importer.validation.errors import TemplateRefusedError
from importer.validation.expectations import CommonReason, Expectations, no_reasoning
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, failing
from importer.validation.prompts import SUM, SUM_SILENT, SUM_THINKING
from importer.validation.remedy import OTHER_REASONING_PARSER, Remedy
from importer.validation.reply import Reply
from importer.validation.tool_markup import closing_marker, thinking_markup


class ReasoningOffReason(ReasonKind):
    """The reasons of ``reasoning-off``."""

    NO_SWITCH = "no-switch", "the template has no switch for thinking"
    SWITCH_LOST = "switch-lost", "the switch does not reach the prompt"
    SWITCH_UNKNOWN = "switch-unknown", "nobody can tell whether its template has a switch"
    INVERTED = (
        "inverted",
        "the template closes the thinking block where it is asked to think, and not where it is told not to",
    )
    LEFT_OPEN = "left-open", "told not to think, the template opens {marker} and does not close it"
    AS_REASONING = "as-reasoning", "the answer arrives as reasoning"
    THINKS = "thinks", "the model thinks though it is told not to"


NAME = "reasoning-off"
LESSON = "With thinking switched off, parsers that wait for the end of a thought took the answer for one."
TAIL = 24  # characters at the end of a prompt in which its last marker stands


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or no reasoning parser."""
    return no_reasoning(promise)


def run(ctx: Context) -> Outcome:
    """Judge both ways, where the template has a switch, and request or document turn thinking off."""
    turned = turned_round(ctx)
    if turned is not None:
        return turned
    if not switched(ctx):
        return NotApplicable(Reason(ReasoningOffReason.NO_SWITCH))
    no_switch = ctx.promise.lacks("switches")
    if no_switch is not None and not silent(ctx):
        return NotApplicable(no_switch)
    prompt = SUM_SILENT if no_switch is None else SUM
    outcome = together(
        {
            way: ctx.judged(prompt, lambda reply: judge(reply, ctx.promise.markers), stream=stream)
            for way, stream in WAYS.items()
        }
    )
    if not isinstance(outcome, Pass) and (left := left_open(ctx.rendered(prompt) or "")) is not None:
        return left
    asks = isinstance(outcome, Inconclusive) and no_switch is None
    if asks and dropped(ctx.counted(SUM), ctx.counted(SUM_SILENT)):
        withheld = Reason(Remedy.OTHER_VERSION_TEMPLATE)
        return failing(outcome, "engine", withheld, Reason(ReasoningOffReason.SWITCH_LOST))
    if isinstance(outcome, Inconclusive) and ctx.render is None:
        unknown = Reason(ReasoningOffReason.SWITCH_UNKNOWN)
        return NotApplicable(outcome.reason, within=outcome.within, notes=(*outcome.notes, unknown))
    return outcome


def dropped(plain: tuple[int, int] | None, silent: tuple[int, int] | None) -> bool:
    """Return whether counted and rendered tokens agree without the switch, and only the rendered ones change
    with it.
    """
    if plain is None or silent is None:
        return False
    return plain[0] == silent[0] and plain[1] != silent[1] and plain[0] == plain[1]


def switched(ctx: Context) -> bool:
    """Return whether the switch changes the prompt; ``True`` where that is unknown."""
    if ctx.render is None:
        return True
    try:
        return len({ctx.render(prompt) for prompt in (SUM, SUM_SILENT, SUM_THINKING)}) > 1
    except TemplateRefusedError:
        return True


def silent(ctx: Context) -> bool:
    """Return whether the document itself switches thinking off."""
    plain = ctx.rendered(SUM)
    return plain is not None and plain == ctx.rendered(SUM_SILENT) != ctx.rendered(SUM_THINKING)


def turned_round(ctx: Context) -> Fail | None:
    """Return the fault of a template whose switch does the contrary."""
    return inverted(*(ctx.rendered(prompt) or "" for prompt in (SUM_THINKING, SUM_SILENT)))


def inverted(thinking: str, silent: str) -> Fail | None:
    """Return the fault of two prompts, with thinking and without, where only the first ends in a closed
    block.
    """
    if not _closes(thinking) or _closes(silent):
        return None
    return Fail(
        Reason(ReasoningOffReason.INVERTED),
        "configuration",
        Reason(Remedy.CLOSE_BLOCK),
    )


def _closes(rendered: str) -> bool:
    """Return whether a prompt ends with the closing marker of a block."""
    end = rendered.strip()
    marker = closing_marker(end[-TAIL:])
    return marker is not None and end.endswith(marker)


def left_open(rendered: str) -> Fail | None:
    """Return the fault of a prompt without thinking that ends in an open block."""
    marker = thinking_markup(rendered[-TAIL:].strip())
    if marker is None or not rendered.strip().endswith(marker) or "/" in marker or "END" in marker:
        return None
    return Fail(
        Reason(ReasoningOffReason.LEFT_OPEN, marker=marker),
        "configuration",
        Reason(Remedy.CLOSE_BLOCK),
    )


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that must hold no thought."""
    content, reasoning = reply.content.strip(), reply.reasoning.strip()
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if marker := thinking_markup(reply.content):
        return Fail(
            Reason(CommonReason.THINKING_MARKER, marker=marker, place="content"),
            "configuration",
            OTHER_REASONING_PARSER,
        )
    if reasoning and not content:
        return Fail(Reason(ReasoningOffReason.AS_REASONING), "configuration", OTHER_REASONING_PARSER)
    if reasoning and reasoning == content:
        return Fail(Reason(CommonReason.GIVEN_TWICE), "configuration",
                    OTHER_REASONING_PARSER)  # fmt: skip
    if reasoning:
        return Inconclusive(Reason(ReasoningOffReason.THINKS), "model")
    return (
        Pass(Reason(CommonReason.ANSWERED, content=content[:60]))
        if content
        else Inconclusive(Reason(CommonReason.EMPTY), "model")
    )
