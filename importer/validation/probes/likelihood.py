"""The probe of likelihood: what the model answered once has the same probability now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import VERBATIM, Context
from importer.validation.errors import ReplyError, RequestRefused
from importer.validation.expectations import Expectations, no_chat
from importer.validation.likelihood import ScoredText, per_token
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import COUNT, GREETING, SUM
from importer.validation.remedy import Remedy


class LikelihoodReason(ReasonKind):
    """The reasons of ``likelihood``."""

    NO_TEXT = "no-text", "there is no rendered prompt, or no answer to it"
    NOT_OFFERED = "not-offered", "the engine returns no probabilities of a prompt's tokens"
    MEASURED = (
        "measured",
        "{nats} nats for each of {tokens} tokens of its own answers; nothing to compare with yet",
    )
    AS_BEFORE = "as-before", "{nats} nats for each of {tokens} tokens; {before} in the first validated run"
    WORSE = (
        "worse",
        (
            "{nats} nats for each of {tokens} tokens; {before} in the first validated run, and {margin} more "
            "at most"
        ),
    )


NAME = "likelihood"
LESSON = "Weights at three bits or with other positions still spoke fluently: nobody measured the loss."
PATH = "/v1/completions"
PROMPTS = (GREETING, SUM, COUNT)
ANSWER = 24  # tokens of an answer
GREEDY = {"temperature": 0.0, **VERBATIM}
MARGIN = 0.2  # nats for each token; docs/validation.md has the figures behind it


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: it reads rendered turns through plain completions."""
    return no_chat(promise) or promise.lacks("completions")


def run(ctx: Context) -> Outcome:
    """Measure the reference's texts, else the model's own greedy answers."""
    known = ctx.likelihood.reference
    texts = ((text.prompt, text.answer) for text in known) if known else _answers(ctx)
    scored: list[ScoredText] = []
    for prompt, answer in texts:
        text = _score(ctx, prompt, answer)
        if text is None:
            return NotApplicable(Reason(LikelihoodReason.NOT_OFFERED))
        scored.append(text)
    if not scored:
        return NotApplicable(Reason(LikelihoodReason.NO_TEXT))
    ctx.likelihood.measured[:] = scored
    return judge(scored, known)


def judge(scored: Sequence[ScoredText], known: Sequence[ScoredText]) -> Outcome:
    """Judge the nats of the same texts beside those of the first validated run."""
    tokens = sum(text.tokens for text in known or scored)
    now = per_token(scored, known or scored)
    if not known:
        return Pass(Reason(LikelihoodReason.MEASURED, nats=now, tokens=tokens))
    before = per_token(known, known)
    fields = {"nats": now, "before": before, "tokens": tokens}
    if now > before + MARGIN:
        worse = Reason(LikelihoodReason.WORSE, margin=MARGIN, **fields)
        return Fail(worse, "model", Reason(Remedy.WHOLE_WEIGHTS))
    return Pass(Reason(LikelihoodReason.AS_BEFORE, **fields))


def _answers(ctx: Context) -> Iterator[tuple[str, str]]:
    """Yield the rendered prompts with the model's own answers, cut after ``ANSWER`` tokens."""
    for prompt in PROMPTS:
        rendered = ctx.rendered(prompt)
        if rendered and (answer := _text(_complete(ctx, rendered, ANSWER))):
            yield rendered, answer


def _score(ctx: Context, prompt: str, answer: str) -> ScoredText | None:
    """Return the text with its nats; ``None`` where the engine returns no probabilities of a prompt.

    The prompt goes first and alone: mlx-lm ends over a prompt that is a whole entry of its cache, as one with
    its own answer is.
    """
    begun = _read(ctx, prompt)
    if begun is None:
        return None
    whole = _read(ctx, prompt + answer) or ()
    entries = whole[len(begun) :]
    if not entries:
        raise ReplyError(Reason(LikelihoodReason.NO_TEXT))
    return ScoredText(prompt, answer, len(entries), round(-sum(map(_logprob, entries)), 4))


def _read(ctx: Context, text: str) -> Sequence[object] | None:
    """Return the entry of each token of a prompt; ``None`` where the engine shows none."""
    try:
        answer = _complete(ctx, text, 1, prompt_logprobs=0)
    except RequestRefused as refused:
        if refused.broke:
            raise
        return None
    listed = _choice(answer).get("prompt_logprobs")
    return listed if isinstance(listed, list) else None


def _complete(ctx: Context, prompt: str, most: int, **more: Any) -> Mapping[str, Any]:
    body = {"model": ctx.model, "prompt": prompt, "max_tokens": most, **GREEDY, **more}
    answer = ctx.client.post(PATH, body, ctx.log)
    return answer if isinstance(answer, Mapping) else {}


def _choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _text(answer: Mapping[str, Any]) -> str:
    text = _choice(answer).get("text")
    return text if isinstance(text, str) else ""


def _logprob(entry: object) -> float:
    """Return the logarithm of one token of the prompt: the only one in its entry."""
    values = list(entry.values()) if isinstance(entry, Mapping) else []
    first = values[0].get("logprob") if values and isinstance(values[0], Mapping) else None
    if not isinstance(first, int | float):
        raise ReplyError(Reason(LikelihoodReason.NOT_OFFERED))
    return float(first)
