"""Probes of reasoning: apart from the answer, switched off, and cut."""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason
from importer.validation.context import TRIALS, WAYS, Context, together
from importer.validation.diagnosis import (
    all_thought,
    endless,
    misread,
    miswritten,
    only_streamed,
    streaming_fault,
    thought_shown,
    unread,
)
from importer.validation.errors import TemplateRefusedError
from importer.validation.expectations import CommonReason, no_chat, no_reasoning
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    Stage,
    differs,
    failing,
    holding,
    needless,
    not_done,
    note,
)
from importer.validation.probe import probe
from importer.validation.prompts import SUM, SUM_SILENT, SUM_THINKING
from importer.validation.remedy import Need, Remedy
from importer.validation.reply import Reply
from importer.validation.tool_markup import closing_marker, thinking_markup, thinks

TAIL = 24  # characters at the end of a prompt in which its last marker stands


@probe(
    "reasoning-off",
    "With thinking switched off, parsers that wait for the end of a thought took the answer for one.",
    needs=no_reasoning,
    ability="silence",
)
def reasoning_off(ctx: Context) -> Outcome:
    """Judge both ways, where the template has a switch, and request or document turn thinking off."""
    turned = turned_round(ctx)
    if turned is not None:
        return turned
    if not switched(ctx):
        return needless("the template has no switch for thinking")
    no_switch = ctx.promise.lacks("switches")
    if no_switch is not None and not is_silent(ctx):
        return NotApplicable(no_switch)
    prompt = SUM_SILENT if no_switch is None else SUM
    outcome = together(
        {
            way: ctx.judged(
                prompt, lambda reply: judge_reasoning_off(reply, ctx.promise.markers), stream=stream
            )
            for way, stream in WAYS.items()
        }
    )
    if not isinstance(outcome, Pass) and (left := left_open(ctx.rendered(prompt) or "")) is not None:
        return left
    asks = isinstance(outcome, Inconclusive) and no_switch is None
    if asks and switch_dropped(ctx.counted(SUM), ctx.counted(SUM_SILENT)):
        withheld = Reason(Remedy.OTHER_VERSION_TEMPLATE)
        return failing(outcome, Stage.PROMPT, withheld, note("the switch does not reach the prompt"))
    if isinstance(outcome, Inconclusive) and ctx.render is None:  # its template may have no switch
        return NotApplicable(outcome.reason, within=outcome.within, notes=outcome.notes)
    return outcome


def switch_dropped(plain: tuple[int, int] | None, silent: tuple[int, int] | None) -> bool:
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


def is_silent(ctx: Context) -> bool:
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
    came, expected = "closed where it is asked to think", "where it is told not to"
    return miswritten("the thinking block of a prompt", came, expected, Need.CLOSE_BLOCK)


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
    what = "the thinking block of a prompt, told not to think"
    return miswritten(what, f"{marker} alone", "closed", Need.CLOSE_BLOCK)


def judge_reasoning_off(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that must hold no thought."""
    content, reasoning = reply.content.strip(), reply.reasoning.strip()
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if (shown := thought_shown("content", content)) is not None:
        return shown
    if reasoning and content in ("", reasoning):
        return all_thought(content)
    if reasoning or not content:
        return not_done("the model thinks though it is told not to" if reasoning else "the answer is empty")
    return holding(f"answered {content[:60]!r}")


# Fields of the API's messages, and the two fields that clients read reasoning from.
FIELDS = {
    "role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations", "name",
    "reasoning", "reasoning_content",
}  # fmt: skip


@probe(
    "reasoning-apart",
    "Models whose template opens the block themselves leaked it; models that never think lost their answer.",
    needs=no_chat,
    ability="thoughts",
)
def reasoning_apart(ctx: Context) -> Outcome:
    """Judge a whole answer, then a streamed one.

    Without a reasoning parser, no reasoning may be in the content.
    """
    none = no_reasoning(ctx.promise)
    if none is not None:
        return _none_missing(ctx, none)
    whole = ctx.judged(SUM, judge_reasoning_apart)
    if isinstance(whole, Inconclusive):  # some models think only with the switch on
        turned = turned_round(ctx)
        if turned is not None:
            return turned
        switched = ctx.judged(SUM_THINKING, judge_reasoning_apart)
        no_switch = ctx.promise.lacks("switches")
        if isinstance(switched, Inconclusive) and no_switch is not None and is_silent(ctx):
            return replace(needless("the document switches thinking off"), notes=(no_switch,))
        return whole if isinstance(switched, Inconclusive) else switched
    if not isinstance(whole, Pass):
        return whole
    streamed = ctx.judged(SUM, judge_reasoning_apart, stream=True)
    if isinstance(streamed, Fail) or (streamed.gives(CommonReason.NO_THOUGHT) and _thinks_always(ctx)):
        return streaming_fault(ctx, SUM, only_streamed(streamed))
    return streamed


def _thinks_always(ctx: Context) -> bool:
    """Return whether further whole answers all have a thought: chance explains no stream without one."""
    return all(isinstance(judge_reasoning_apart(ctx.ask(SUM)), Pass) for _ in range(TRIALS))


def _none_missing(ctx: Context, none: Reason) -> Outcome:
    seen = ctx.look(SUM)
    if seen is not None and unread(seen, SUM) is not None:
        return misread("the thought of the model", "in no part of the answer", "in the reasoning")
    return NotApplicable(none)


def unknown_field(reply: Reply) -> str | None:
    """Return a field of the message, or of its pieces, that holds words and is unknown to clients."""
    texts: dict[str, str] = {}
    for part in reply.messages:
        for key in part.keys() - FIELDS:
            texts[key] = texts.get(key, "") + (part[key] if isinstance(part[key], str) else "")
    return next((key for key, text in texts.items() if len(text.split()) > 1), None)


def judge_reasoning_apart(reply: Reply) -> Outcome:
    """Judge an answer to a question worth a thought."""
    shown = thought_shown("content", reply.content) or thought_shown("reasoning", reply.reasoning)
    if shown is not None:
        return shown
    content, reasoning = reply.content.strip(), reply.reasoning.strip()
    if not reasoning:
        if (field := unknown_field(reply)) is not None:
            return differs("the field of a thought", field, "reasoning")
        if thinks(reply.written):
            return misread("the thought of the model", "in no part of the answer", "in the reasoning")
        return Inconclusive(Reason(CommonReason.NO_THOUGHT), Stage.DRAWN)
    if not content and reply.finish_reason == "length":
        return not_done("the model was still thinking at the limit of tokens")
    if content in ("", reasoning):
        return all_thought(content)
    return holding(f"thought {reasoning[:60]!r}, answered {content[:60]!r}")
