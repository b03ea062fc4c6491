"""The probe of sampling: the values of the document rule answers to requests without values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from importer.engines.logs import mentions
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, together
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass, failing
from importer.validation.prompts import AGAIN, NUMBER, Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class SamplingArrivesReason(ReasonKind):
    """The reasons of ``sampling-arrives``."""

    NOTHING_AT_START = "nothing-at-start", "the document sets no value at the start that shows"
    NOTHING_SHOWS = "nothing-shows", "the document sets no value that would show"
    TOO_COLD = "too-cold", "the temperature is too low to show"
    NO_SEED = "no-seed", "the engine takes no seed: {error}"
    ALIKE = "alike", "{count} answers alike"
    NEVER_ALIKE = "never-alike", "the engine never repeats itself, whatever is sent"
    DIFFER = "differ", "{different} answers of {asked} differ; with the document's values sent they are one"
    SEED_IGNORED = "seed-ignored", "a seed does not decide what the model writes"
    SEEDS_DIFFER = (
        "seeds-differ",
        "for {differ} of {steady} seeds the answer is another once the document's values are sent",
    )
    SEEDS_ALIKE = "seeds-alike", "{alike} of {steady} seeds give the answer that the document's values give"
    VARIED = "varied", "{different} answers of {asked} differ"
    ONE_ANSWER = "one-answer", "the model gives one answer, whether the temperature is sent or not"
    NOT_VARIED = "not-varied", "{asked} answers are one; with the document's values sent {different} differ"
    NO_EFFECT = "no-effect", "{name} changes nothing in what the model writes"
    HEARD = "heard", "{name} is heard without being sent"
    UNHEARD = "unheard", "{name} is not heard unless it is sent"
    NOT_TOLD = "not-told", "it was started without {names:and}"
    NAME_NEVER_ALIKE = "name-never-alike", "{name}: the engine never repeats itself"


NAME = "sampling-arrives"
LESSON = "An engine took its sampling values at the start, dropped some of them, and said nothing."
FEATURE, CONCERNS = "top-k", ("top_k",)
NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
SHOWN = {"temperature", "top_k", *NEUTRAL}
GREEDY = 4  # answers that must be one
DRAWN = 8  # answers that should not all be one
SEEDS = (1, 2, 3)
WARM = 0.3  # below this temperature, one answer over and over is no wonder
Forms = Sequence[tuple[str, str]]


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or no value at the start of the engine."""
    set_at_start = promise.sampling.keys() - promise.client_sampling.keys()
    return no_chat(promise) or (
        None if SHOWN & set_at_start else Reason(SamplingArrivesReason.NOTHING_AT_START)
    )


def run(ctx: Context) -> Outcome:
    """Draw many answers at once; write one word over and over."""
    at_start = {k: v for k, v in ctx.promise.sampling.items() if k not in ctx.promise.client_sampling}
    outcomes: dict[str, Outcome] = {}
    if {"temperature", "top_k"} & at_start.keys():
        outcomes["draw"] = _draw(ctx, ctx.promise.sampling)
        if not _greedy(ctx.promise.sampling):
            outcomes["by seed"] = _seeded(ctx, _sent(ctx.promise.sampling))
    for name, neutral in NEUTRAL.items():
        if at_start.get(name, neutral) != neutral:
            outcomes[name] = _penalty(ctx, name, at_start[name])
    if not outcomes:
        return NotApplicable(Reason(SamplingArrivesReason.NOTHING_SHOWS))
    return missing_values(together(outcomes), at_start, ctx.argv)


def missing_values(outcome: Outcome, at_start: Mapping[str, Any], argv: Sequence[str]) -> Outcome:
    """Return a fault of the configuration where the command line lacks the value; ``argv`` is that of the
    engine.
    """
    missing = [name for name in at_start if name in SHOWN and not mentions(argv, name)]
    if not argv or not missing or not isinstance(outcome, Fail):
        return outcome
    remedy = Reason(Remedy.START_WITH_VALUES, names=tuple(missing))
    return failing(
        outcome, "configuration", remedy, Reason(SamplingArrivesReason.NOT_TOLD, names=tuple(missing))
    )


def _draw(ctx: Context, sampling: Mapping[str, Any]) -> Outcome:
    greedy = _greedy(sampling)
    times = GREEDY if greedy else DRAWN
    unsent = _many(ctx, NUMBER, times)
    if greedy:
        if len(set(unsent)) == 1:
            return judge_greedy([unsent])
        sent = [answer for _ in range(2) for answer in _many(ctx, NUMBER, times, **_sent(sampling))]
        return judge_greedy([unsent, _many(ctx, NUMBER, times)], sent)
    if (sampling.get("temperature") or 0) < WARM:
        return NotApplicable(Reason(SamplingArrivesReason.TOO_COLD))
    varied = len(set(unsent)) > 1
    return judge_warm(unsent, () if varied else _many(ctx, NUMBER, times, **_sent(sampling)))


def _greedy(sampling: Mapping[str, Any]) -> bool:
    return sampling.get("temperature") == 0 or sampling.get("top_k") == 1


def _seeded(ctx: Context, values: Mapping[str, Any]) -> Outcome:
    """Compare draws with the same seeds, with the values of the document in the request and without."""
    requests: list[dict[str, Any]] = [{"seed": seed, **sent} for seed in SEEDS for sent in ({}, values)]
    try:
        first, again = (_all(ctx, requests) for _ in range(2))
    except RequestRefused as refused:
        return NotApplicable(Reason(SamplingArrivesReason.NO_SEED, error=refused.reason))
    return judge_seeded(list(zip(first[::2], again[::2], first[1::2], again[1::2], strict=True)))


def _all(ctx: Context, requests: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [_form(ctx.ask(NUMBER, **fields)) for fields in requests]


def _sent(sampling: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in sampling.items() if k in ("temperature", "top_k", "top_p", "min_p")}


def _many(ctx: Context, prompt: Prompt, times: int, **sent: Any) -> list[tuple[str, str]]:
    """Return answers to parallel requests."""
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: _form(ctx.ask(prompt, **sent)), range(times)))


def _form(reply: Reply) -> tuple[str, str]:
    return reply.reasoning.strip(), reply.content.strip()


def send(name: str) -> Reason:
    """Return the remedy for an engine that ignores a value at its start."""
    return Reason(Remedy.SEND_VALUE, name=name)


def judge_greedy(unsent: Sequence[Forms], sent: Forms = ()) -> Outcome:
    """Judge rounds of answers that must all be one; ``sent`` are answers to requests with greedy values.

    In a batch an engine may draw the other of two tokens with nearly the same probability: one difference is
    chance.
    """
    count = sum(map(len, unsent))
    if any(len(set(answers)) == 1 for answers in unsent):
        return Pass(Reason(SamplingArrivesReason.ALIKE, count=len(unsent[-1])), trials=count)
    if len(set(sent)) > 1:
        return NotApplicable(Reason(SamplingArrivesReason.NEVER_ALIKE))
    different = len({answer for answers in unsent for answer in answers})
    return Fail(
        Reason(SamplingArrivesReason.DIFFER, different=different, asked=count),
        "engine", send("temperature"), trials=count,
    )  # fmt: skip


def judge_seeded(thrown: Sequence[Forms]) -> Outcome:
    """Judge, for each seed, two answers to requests without values, and two with those of the document."""
    steady = [(unsent, sent) for unsent, again, sent, once in thrown if unsent == again and sent == once]
    if len({sent for _, sent in steady}) < 2:
        return NotApplicable(Reason(SamplingArrivesReason.SEED_IGNORED))
    differ = sum(unsent != sent for unsent, sent in steady)
    if 2 * differ > len(steady):
        return Fail(
            Reason(SamplingArrivesReason.SEEDS_DIFFER, differ=differ, steady=len(steady)),
            "engine", Reason(Remedy.SEND_SAMPLING),
            trials=len(steady), agreed=differ,
        )  # fmt: skip
    reason = Reason(SamplingArrivesReason.SEEDS_ALIKE, alike=len(steady) - differ, steady=len(steady))
    return Pass(reason, trials=len(steady), agreed=len(steady) - differ)


def judge_warm(unsent: Forms, sent: Forms) -> Outcome:
    """Judge answers that should vary; ``sent`` are those to requests with the values of the document."""
    if len(set(unsent)) > 1:
        return Pass(
            Reason(SamplingArrivesReason.VARIED, different=len(set(unsent)), asked=len(unsent)),
            trials=len(unsent),
        )
    if len(set(sent)) < len(sent) / 2:  # a model that is sure of its answer has no verdict
        return NotApplicable(Reason(SamplingArrivesReason.ONE_ANSWER))
    return Fail(
        Reason(SamplingArrivesReason.NOT_VARIED, asked=len(unsent), different=len(set(sent))),
        "engine", send("temperature"), trials=len(unsent),
    )  # fmt: skip


def _penalty(ctx: Context, name: str, value: float) -> Outcome:
    """Judge greedy answers without the penalty in the request, with that of the document, with none."""
    ways: tuple[dict[str, Any], ...] = ({}, {name: value}, {name: NEUTRAL[name]})
    unsent, sent, none = (_form(ctx.ask(AGAIN, temperature=0, **extra)) for extra in ways)
    return judge_penalty(unsent, sent, none, name)


def judge_penalty(
    unsent: tuple[str, str], sent: tuple[str, str], none: tuple[str, str], name: str
) -> Outcome:
    """Judge three answers: the first must equal the second where the second differs from the third."""
    if sent == none:
        return NotApplicable(Reason(SamplingArrivesReason.NO_EFFECT, name=name))
    if unsent == sent:
        return Pass(Reason(SamplingArrivesReason.HEARD, name=name), trials=3)
    if unsent == none:
        return Fail(Reason(SamplingArrivesReason.UNHEARD, name=name), "engine", send(name), trials=3)
    return NotApplicable(Reason(SamplingArrivesReason.NAME_NEVER_ALIKE, name=name))
