"""Probes of the server: it answers, lists its model, serves the document's settings, and stands load."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from importer.hub.snapshot import TEMPLATES
from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation import proof_check
from importer.validation.calls import judge_call
from importer.validation.client import Exchange
from importer.validation.context import Context, together
from importer.validation.diagnosis import unread
from importer.validation.errors import (
    ExchangeError,
    Overloaded,
    RequestRefused,
    ServerUnreachable,
    TimedOut,
    attempt,
)
from importer.validation.expectations import Expectations, always, no_chat
from importer.validation.failures import failed
from importer.validation.outcome import Fail, Outcome, Pass, Stage, differs, holding, needless
from importer.validation.probe import Rests, probe
from importer.validation.prompts import AGAIN, COUNT, GREETING, NAME_RECALL, ONE_TOKEN, SUM, WEATHER, Prompt
from importer.validation.remedy import OTHER_TOOL_PARSER, Remedy, noun
from importer.validation.reply import Reply


@probe(
    "health",
    "Engines die during start-up for reasons that look like something else; ask before probing further.",
    needs=always,
    tasks=evidence.TASKS,
    rests_on=Rests.NOTHING,
)
def health(ctx: Context) -> Outcome:
    """GET /health; of an unknown server the list of models is as good."""
    try:
        ctx.client.get("/health", ctx.log)
    except RequestRefused:
        if not ctx.promise.remote:
            raise
        ctx.client.get("/v1/models", ctx.log)
        return holding("/v1/models answers")
    return holding("/health answers")


class FirstAnswerReason(ReasonKind):
    """The reasons of ``first-answer``."""

    MEASURED = "{rate:.1f} tokens/s"


QUESTIONS = (SUM, COUNT, NAME_RECALL, AGAIN)
ELSEWHERE = "the answer is judged by other probes"
WITHIN = 45.0  # seconds until a greeting's answer begins
SLOW = 20.0  # tokens in a second; a faster engine answers and reads all as it is
PLAIN_SECONDS = 5.0  # of an answer without tools, alone
FEWEST = 48  # tokens of an answer without tools, on any engine
PROMPT_SECONDS = 5.0  # until a long prompt is read
SHORTEST = 192  # tokens of a long prompt, on any engine


@probe(
    "first-answer",
    "An engine answered /health and nothing else, or a token a second: no verdict came within ten minutes.",
    needs=no_chat,
)
def first_answer(ctx: Context) -> Outcome:
    """Greet and measure, streamed; whole where no stream begins.

    Raises TimedOut and Overloaded, and the failure of a server that answers no other chat either.
    """
    hasty = replace(ctx, client=replace(ctx.client, begins_within=WITHIN))
    try:
        reply = hasty.first(GREETING, stream=True)
    except TimedOut:
        hasty.first(GREETING)
        return needless(ELSEWHERE)
    except Overloaded:
        raise
    except ExchangeError as error:
        if isinstance(error, RequestRefused | ServerUnreachable) and not any(
            attempt(partial(hasty.first, p)) for p in QUESTIONS
        ):
            raise
        return needless(ELSEWHERE)
    return judge_first_answer(ctx.log[-1], reply.usage.prompt)


def judge_first_answer(exchange: Exchange, prompt: int | None = None) -> Pass:
    """Return how fast a streamed answer to ``prompt`` tokens came: a slow engine gets shorter ones."""
    if not exchange.tokens or not exchange.seconds:
        return holding(f"answered after {exchange.seconds:.2f} s")
    rate = exchange.tokens / exchange.seconds
    reads = prompt / exchange.first if prompt and exchange.first else None
    return Pass(Reason(FirstAnswerReason.MEASURED, rate=rate, reads=reads))


SHORT, LONG = "a", "a b c d e f g h i j k l m n o p"  # texts of very different numbers of tokens


def counted(ctx: Context) -> bool | None:
    """Return whether the server's counts of prompts tell long from short: those of chats, or of plain texts.

    A template may leave out what is longer, and no server counts a text by its template. ``None`` where it
    does not count at all.
    """
    try:
        brief = (replace(one, name=f"{one.name}-counted", extra=ONE_TOKEN) for one in (GREETING, COUNT))
        short, longer = (ctx.first(prompt).usage for prompt in brief)
        if short.prompt is None:
            return False if short.uncounted else None
        if short.prompt != longer.prompt or ctx.promise.lacks("completions"):
            return True
        plain = (ctx.behind(text, max_tokens=1).usage.prompt for text in (SHORT, LONG))
        return len({*plain}) > 1
    except ExchangeError:
        return None


def paced(promise: Expectations, outcome: Outcome) -> Expectations:
    """Return the expectations, with shorter answers and prompts where the first answer was slow.

    ``rate`` has the tokens in a second of the answer, ``reads`` those of the prompt.
    """
    fields = outcome.reason.fields if outcome.gives(FirstAnswerReason.MEASURED) else {}
    rate, reads = fields.get("rate"), fields.get("reads")
    if not isinstance(rate, float) or rate >= SLOW:
        return replace(promise, plain=None, prompt=None)
    prompt = max(SHORTEST, round(PROMPT_SECONDS * reads)) if isinstance(reads, float) else None
    return replace(promise, plain=max(FEWEST, round(PLAIN_SECONDS * rate)), prompt=prompt)


@probe(
    "model-listed",
    "A wrong served name is a 404 for every client; a context of ten million tokens failed, or was cut down.",
    needs=always,
    tasks=evidence.TASKS,
    rests_on=Rests.NOTHING,
)
def model_listed(ctx: Context) -> Outcome:
    """GET /v1/models; compare the names, and the context where the engine tells it."""
    try:
        entries = json.loads(ctx.client.get("/v1/models", ctx.log))["data"]
        served = {entry["id"]: entry.get("max_model_len") for entry in entries}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return differs("/v1/models", "another answer", "a list of models")
    if ctx.model not in served:
        listed = tuple(map(str, [*served][:20]))
        remedy = Reason(Remedy.ASK_BY_NAME, listed=listed) if served else None
        return differs("the models listed", ", ".join(listed) or None, ctx.model, Stage.START, remedy)
    outcomes: dict[str, Outcome] = {"name": holding(f"{ctx.model} is listed")}
    if ctx.promise.context is not None:
        outcomes["context"] = judge_context_length(served[ctx.model], ctx.promise.context)
    return together(outcomes)


def judge_context_length(served: object, promised: int | None) -> Outcome:
    """Judge the context that the engine reports, in tokens, beside that of the document."""
    if not isinstance(served, int) or isinstance(served, bool):
        return needless("the engine does not tell its context")
    if served != promised:
        remedy = Reason(Remedy.SET_CONTEXT, served=served, promised=promised)
        return differs("the context that is served", served, promised, Stage.START, remedy)
    return holding(f"{served:,} tokens")


KEYS = ("tool_parser", "reasoning_parser")
# Defaults of vLLM without values in the model's files or at the start.
DEFAULTS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0}  # fmt: skip


@probe(
    "settings-read-back",
    "A parser that could not be loaded was printed and forgotten; sampling was another than the document's.",
    needs=no_chat,
    observes=Stage.PARSED,
    rests_on=Rests.REQUESTS,
)
def settings_read_back(ctx: Context) -> Outcome:
    """Compare log and /health with the document: parsers and sampling."""
    outcomes = _settings(ctx)
    return together(outcomes) if outcomes else needless("the engine says nothing of its settings")


def _settings(ctx: Context) -> dict[str, Outcome]:
    """Return the outcomes of settings by name; an engine that reports no parser is judged by a call."""
    effective, promise = ctx.running(), ctx.promise
    reads = promise.tool_parser is not None and _reads(ctx)
    outcomes: dict[str, Outcome] = {
        key: judge_parser(key, parser, getattr(promise, key), infers=effective.infers, reads=reads)
        for key in KEYS
        if (parser := getattr(effective, key)) is not None
    }
    if effective.sampling is not None:
        outcomes["sampling"] = judge_sampling(effective.sampling, at_start(promise))
    for key in KEYS:
        if not isinstance(outcomes.get(key), Fail) and (refuted := _refuted(ctx, key)) is not None:
            outcomes[key] = refuted
    if "tool_parser" not in outcomes and promise.tool_parser is not None:
        outcomes["tool_parser"] = shown(ctx, promise.tool_parser, reads=reads)
    return outcomes


def _refuted(ctx: Context, key: str) -> Fail | None:
    """Return the fault of a parser that does not read the template, even where the engine infers another."""
    if ctx.proof is None or not proof_check.same_template(ctx, ctx.proof):
        return None
    named = getattr(ctx.promise, key)
    remedy = proof_check.rather(key, named, ctx.proof)
    if remedy is None:
        return None
    return differs(
        f"the {noun(key)} of the document", named, "one that the proof accepts", Stage.START, remedy
    )


def _reads(ctx: Context) -> bool:
    """Return whether a call was parsed; a refusal is left to another probe."""
    reply = attempt(partial(ctx.first, WEATHER))
    return reply is not None and read_right(reply)


def read_right(reply: Reply) -> bool:
    """Return whether there is a call without a fault of its parser."""
    judged = judge_call(reply, WEATHER)
    return bool(reply.tool_calls) and judged.attribution != "configuration"


def at_start(promise: Expectations) -> dict[str, object]:
    """Return the sampling values of the document that the client need not send."""
    return {k: v for k, v in promise.sampling.items() if k not in promise.client_sampling}


def shown(ctx: Context, promised: str, *, reads: bool) -> Outcome:
    """Judge a parser that the engine does not report by an answer with a call."""
    if reads:
        return holding(f"it does not tell its parsers; it reads the model's calls as {promised} does")
    seen = ctx.look(WEATHER)
    if seen is not None and seen.old_field is not None:
        return judge_call(seen, WEATHER)
    if seen is None or (unread(seen, WEATHER) is None and not seen.tool_calls) or read_right(seen):
        return needless("the engine does not tell its parsers")
    what = "the tool parser in use, by a call of the model"
    unread_call = differs(what, "one that does not read it", promised, Stage.PARSED, OTHER_TOOL_PARSER)
    return ctx.noted(WEATHER, partial(judge_call, prompt=WEATHER), unread_call)


def judge_parser(key: str, reported: str, promised: str | None, *, infers: bool, reads: bool) -> Outcome:
    """Judge the parser that the engine reports, beside that of the document.

    ``infers``  the engine has inferred it.
    ``reads``   it has read a call of the model.
    """
    if reported == (promised or "") or (infers and (promised is None or reads)):
        return holding(f"{noun(key)} {reported or 'none'}")
    remedy = OTHER_TOOL_PARSER if infers else Reason(Remedy.START_WITH, names=(noun(key),))
    return differs(f"the {noun(key)} in use", reported or None, promised or "none", Stage.START, remedy)


def judge_sampling(reported: Mapping[str, float], promised: Mapping[str, object]) -> Outcome:
    """Judge the default values that the engine reports, beside those of the document."""
    expected = {k: v for k, v in promised.items() if k in DEFAULTS and isinstance(v, int | float)}
    for key, value in expected.items():
        runs = reported.get(key, DEFAULTS[key])
        if abs(_one(key, runs) - _one(key, value)) > 1e-6:
            remedy = Reason(Remedy.START_WITH, names=(key,))
            return differs(f"the engine's {key}", runs, value, Stage.START, remedy)
    if not expected:
        return needless("the document sets no sampling value at the start")
    return holding(", ".join(f"{key} {value:g}" for key, value in expected.items()))


def _one(key: str, value: float) -> float:
    """Return the value; ``top_k`` has both -1 and 0 for none."""
    return max(value, 0) if key == "top_k" else value


WEIGHTS = ".safetensors"


@probe(
    "files-as-imported",
    "Other weights, a config.json or a tokenizer were put in place later; the review spoke of another model.",
    needs=always,
    tasks=evidence.TASKS,
    observes=Stage.FILES,
    rests_on=Rests.NOTHING,
)
def files_as_imported(ctx: Context) -> Outcome:
    """Compare hashes of the receipt with those of the served files; no request is sent."""
    if ctx.broken:
        # What a copy or a download left of them, for an import reads them all.
        remedy = Reason(Remedy.PUT_BACK, files=ctx.broken)
        return differs(" and ".join(ctx.broken), "cut or harmed", "JSON", Stage.FILES, remedy)
    if ctx.render is None or not ctx.files:
        return needless("nobody wrote down what the files were")
    served = {**ctx.render.files, **ctx.served}
    proof = ctx.proof if ctx.render.digest else None  # a template that is gone is no other way to write it
    if proof is not None and proof_check.same_template(ctx, proof):
        served = {name: now for name, now in served.items() if name not in TEMPLATES}
        served |= {name: was for name, was in ctx.files.items() if name in TEMPLATES}
    return judge_files_as_imported(ctx.files, served)


def judge_files_as_imported(imported: Mapping[str, str], served: Mapping[str, str]) -> Outcome:
    """Judge hashes by file.

    What lies on the machine is not what was imported and reviewed: the environment is at fault, whatever the
    file.
    """
    known = comparable(imported, served)
    changed = altered(imported, served)
    unrecorded = () if any(name.endswith(WEIGHTS) for name in imported) else (WEIGHTS,)  # none could be read
    changed += [name for name in served if name not in imported and not name.endswith(unrecorded)]
    if not changed:
        return holding(f"{len(known)} files are as they were")
    remedy = Reason(Remedy.PUT_BACK, files=tuple(changed))
    return differs(", ".join(changed), "changed", "as imported", Stage.FILES, remedy)


def altered(imported: Mapping[str, str], served: Mapping[str, str]) -> list[str]:
    """Return the names of imported files that are gone, or have another hash."""
    return [name for name in comparable(imported, served) if served.get(name) != imported[name]]


def comparable(imported: Mapping[str, str], served: Mapping[str, str]) -> list[str]:
    """Return the names of files whose hashes are of one kind: two of unlike length are not compared."""
    return [name for name, was in imported.items() if len(served.get(name, was)) == len(was)]


AT_ONCE = 16
FEWER = 8  # of a slow engine
LEAVING = 2  # clients that hang up in the middle
LETTERS = 3  # of a token at least: what a short answer surely holds
BRIEF = 16  # tokens of the answers that are timed
APART = 0.02  # seconds between two requests: the load is for the engine, not for its queue of connections


@probe(
    "concurrency",
    "Entries of another batch's shape crashed every later request, answers went to the wrong client, and who "
    "had left kept a slot.",
    needs=no_chat,
    alone=True,  # it is a load
)
def concurrency(ctx: Context) -> Outcome:
    """Leave streams, then send the questions that the model answers right by itself, many times at once."""
    long = {
        "model": ctx.model,
        "messages": list(COUNT.messages),
        "max_tokens": ctx.promise.limit(COUNT.tokens),
    }
    for _ in range(LEAVING):
        ctx.client.leave(long, ctx.log)
    count = FEWER if ctx.promise.slow else AT_ONCE
    sent = {"max_tokens": 2 * BRIEF} if ctx.promise.slow else {}
    seen = LETTERS * 2 * BRIEF if ctx.promise.slow else None
    known = [p for p in QUESTIONS if p.answered_by(ctx.first(p).content[:seen])] or [SUM]
    prompts = [known[i % len(known)] for i in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda i: _ask(ctx, prompts[i], APART * i, **sent), range(count)))
    outcome = judge_concurrency(prompts, answers, lambda: _ask(ctx, known[0], **sent))
    broken = next((answer for answer in answers if isinstance(answer, ExchangeError)), None)
    failure = failed(broken, ctx) if broken is not None else None
    late = failure is not None and (
        ctx.promise.slow or isinstance(failure, Fail)
    )  # no fault of a slow engine
    return failure if failure is not None and late and failure.attribution == "environment" else outcome


def _ask(ctx: Context, prompt: Prompt, later: float = 0.0, **sent: Any) -> Reply | ExchangeError:
    """Return one answer after ``later`` seconds; a broken connection is retried once, as clients do."""
    time.sleep(later)
    for last in (False, True):
        try:
            return ctx.ask(prompt, **sent)
        except ExchangeError as error:
            failed = error
            if last or not isinstance(error, ServerUnreachable):
                break
    return failed


def judge_concurrency(
    prompts: Sequence[Prompt],
    answers: Sequence[Reply | ExchangeError],
    again: Callable[[], Reply | ExchangeError],
) -> Outcome:
    """Judge answers to parallel questions; ``again`` repeats the first one by itself."""
    for answer in answers:
        if isinstance(answer, ExchangeError):
            return differs(f"one of {len(answers)} answers", answer.reason, "an answer", trials=len(answers))
    for prompt, answer in zip(prompts, answers, strict=True):
        other = next((p for p in prompts if p.name != prompt.name and right(answer, p)), None)
        # The beginning of one answer may hold the word of another: who counts comes past four.
        whole = isinstance(answer, Reply) and answer.finish_reason != "length"
        if whole and not right(answer, prompt) and other is not None:
            what = f"the answer to {prompt.name!r}"
            return differs(what, f"that to {other.name!r}", "its own", Stage.GATEWAY, trials=len(answers))
    last = again()
    if isinstance(last, ExchangeError):
        return differs(f"one more after {len(answers)} answers", last.reason, "an answer")
    good = sum(right(answer, prompt) for prompt, answer in zip(prompts, answers, strict=True))
    return holding(f"{good} of {len(answers)} answered as each alone", len(answers), good)


def right(reply: Reply | ExchangeError, prompt: Prompt) -> bool:
    """Return whether an answer holds an expected word."""
    return isinstance(reply, Reply) and prompt.answered_by(reply.content)
