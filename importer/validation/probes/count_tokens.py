"""The probe of ``/v1/messages/count_tokens``: its count is that of the same request."""

from __future__ import annotations

from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation import other_apis
from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETING, WEATHER, Prompt


class CountTokensReason(ReasonKind):
    """The reasons of ``count-tokens``."""

    NO_NUMBER = "no-number", "{prompt}: input_tokens is {before!r}"
    DIFFERS = "differs", "{prompt}: {before} tokens counted before, {after} in the answer"
    NO_COUNT = "no-count", "the answers do not count their prompt"
    COUNTED = "counted", "{prompt} {tokens}"
    SAME = "same", "tokens before as in the answer: {counts}"


NAME = "count-tokens"
LESSON = (
    "Agents cut their history by this count; where tools were left out of it, prompts overran the context."
)
FEATURE = "counts"
needs = other_apis.needs_anthropic


def run(ctx: Context) -> Outcome:
    """Count a greeting, and a question with a tool."""
    prompts = [GREETING, WEATHER] if ctx.promise.tool_parser else [GREETING]
    return judge([(prompt.name, counted(ctx, prompt), used(ctx, prompt)) for prompt in prompts])


def counted(ctx: Context, prompt: Prompt) -> Any:
    """Return the count of the endpoint."""
    body = {"model": ctx.model, **other_apis.request(prompt)}
    answer = ctx.client.post(f"{other_apis.PATH}/count_tokens", body, ctx.log)
    return answer.get("input_tokens") if isinstance(answer, dict) else None


def used(ctx: Context, prompt: Prompt) -> int | None:
    """Return the prompt tokens in the usage of the answer."""
    return other_apis.ask_anthropic(ctx, prompt, max_tokens=1).usage.prompt


def judge(counts: list[tuple[str, Any, int | None]]) -> Outcome:
    """Judge name, count before and count in the answer of each prompt."""
    for name, before, after in counts:
        if not isinstance(before, int) or isinstance(before, bool) or before < 1:
            return Fail(Reason(CountTokensReason.NO_NUMBER, prompt=name, before=before), "engine")
        if after is not None and before != after:
            return Fail(Reason(CountTokensReason.DIFFERS, prompt=name, before=before, after=after), "engine")
    if all(after is None for _, _, after in counts):
        return NotApplicable(Reason(CountTokensReason.NO_COUNT))
    reasons = tuple(
        Reason(CountTokensReason.COUNTED, prompt=name, tokens=before) for name, before, _ in counts
    )
    return Pass(Reason(CountTokensReason.SAME, counts=reasons), trials=len(counts))
