"""The probe of earlier calls: they reach the prompt, in the format of the model."""

from __future__ import annotations

import re
from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import left_out
from importer.validation.expectations import CommonReason, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import WEATHER, WEATHER_ANSWERED, WEATHER_CALLED_LONGER, Prompt
from importer.validation.remedy import Remedy


class CallsKeptReason(ReasonKind):
    """The reasons of ``calls-kept``."""

    CALLS_UNSEEN = "calls-unseen", "earlier calls do not reach the prompt: a longer one makes it no longer"
    NULL_IS_NO_TEXT = "null-is-no-text", "null is no text"
    NULL_IS_TEXT = (
        "null-is-text",
        "a call's turn whose content is null makes {null} tokens of prompt, one without text {empty}",
    )
    OTHER_FORM = (
        "other-form",
        "the template writes a call's arguments as {form}: {quote!r}; the model does not",
    )
    KEPT = "kept", "earlier calls reach the prompt"


NAME = "calls-kept"
LESSON = (
    "Templates that drop earlier calls, or write arguments in another form, teach the model to do so, too."
)
# Forms of an argument other than the JSON that models are trained on.
FORMS = {
    "text inside text": re.compile(r"""\\["']location\\["']\s*:\s*\\["']Paris"""),
    "a Python dictionary": re.compile(r"""'location'\s*:\s*'Paris"""),
}
# A turn with calls has no text: clients send null there.
WITH_NULL = replace(
    WEATHER_ANSWERED,
    name="weather-answered-null",
    messages=tuple({**m, "content": None} if "tool_calls" in m else m for m in WEATHER_ANSWERED.messages),
)
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Compare prompt tokens after a short call and a longer one; then judge how the template writes the
    call.
    """
    counts = [_counted(ctx, prompt) for prompt in (WEATHER_ANSWERED, WEATHER_CALLED_LONGER)]
    if None in counts:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if counts[0] == counts[1]:
        reason = Reason(CallsKeptReason.CALLS_UNSEEN)
        remedy = Reason(Remedy.RENDER_CALLS)
        return left_out(ctx, (WEATHER_ANSWERED, WEATHER_CALLED_LONGER), reason, remedy)
    null = _counted(ctx, WITH_NULL)
    if null is not None and null != counts[0]:
        return judge_null(null, counts[0] or 0)
    seen, rendered = ctx.look(WEATHER), ctx.rendered(WEATHER_ANSWERED)
    return judge(rendered or "", seen.written if seen is not None else "")


def _counted(ctx: Context, prompt: Prompt) -> int | None:
    return ctx.first(replace(prompt, extra={"max_tokens": 1}, name=f"{prompt.name}-counted")).usage.prompt


def judge_null(null: int, empty: int) -> Outcome:
    """Judge prompt tokens where the turn of a call has null as its text, and where it has an empty one."""
    if null == empty:
        return Pass(Reason(CallsKeptReason.NULL_IS_NO_TEXT))
    return Fail(
        Reason(CallsKeptReason.NULL_IS_TEXT, null=null, empty=empty),
        "configuration",
        Reason(Remedy.WRITE_NULL_AS_NOTHING),
        trials=2,
    )


def judge(rendered: str, written: str) -> Outcome:
    """Judge a conversation with a call as the template writes it, beside a call of the model."""
    for name, form in FORMS.items():
        match = form.search(rendered)
        if match and written and not form.search(written):
            return Fail(
                Reason(CallsKeptReason.OTHER_FORM, form=name, quote=match.group()),
                "configuration",
                Reason(Remedy.WRITE_ARGUMENTS),
            )
    return Pass(Reason(CallsKeptReason.KEPT), trials=2)
