"""The cause of one probe's failure: the first broken stage of the exchange that was judged wrong.

Steps in order, each with the outcome of the one before. A failed exchange has the cause that log and
template show. A judged answer is traced: its stages show the cause, else its judge, by the proof. A setting
that alters the numbers of the model comes before the model.
"""

from __future__ import annotations

from dataclasses import replace

from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation import failures, proof_check, tokens
from importer.validation.context import Context, Judgement
from importer.validation.diagnosis import STREAMED
from importer.validation.errors import ExchangeError, RunOver
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.mutations import BY_PARSERS
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    Stage,
    Tried,
    asks_for,
    broken_in_answer,
    by_stage,
    counts_as_passed,
    failing,
    note,
)
from importer.validation.probe import Probe
from importer.validation.remedy import END_TOKEN, PARSER_OF, Remedy, end_at
from importer.validation.tokens import OWN
from importer.validation.tool_markup import control_token
from importer.validation.trace import Trace, trace

REPEATS = 4  # of a request, until servers behind one address are taken for alike
END_WITHIN = 256  # tokens in which the end of a short answer shows
# Changes that the reading of a text without the server has shown already.
READ = (Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE, Remedy.LEAVE_OUT_PARSER)


def of(one: Probe, ctx: Context) -> Outcome:
    """Run a probe and return its outcome with the cause that its exchanges show."""
    try:
        outcome: Outcome = one.run(ctx)
    except RunOver as error:
        return error.outcome()
    except ExchangeError as error:
        outcome = failures.failed(error, ctx)
    if ctx.client.over is not None:
        return outcome
    placed = altered(traced(outcome, ctx), ctx.promise)
    if placed.attribution != "model" or outcome.attribution == "model" or one.of_model:
        return placed
    # One of the contract compares the server with itself; what no parser reads the model wrote all the same,
    # and what it writes in another form needs no other parser.
    broken = {fact.stage for fact in placed.facts if fact.state == "broken"}
    unread = Stage.PARSED in broken or (Stage.DRAWN in broken and asks_for(outcome, *PARSER_OF))
    return placed if unread else replace(outcome, facts=placed.facts)


def settled(outcome: Outcome, ctx: Context) -> Outcome:
    """Return the outcome; a limit of the engine that explains it is no failure.

    An engine's fault without a remedy is to be corrected in it, and a parser that reads the answer was tried.
    """
    limit = None if counts_as_passed(outcome) else limiting(outcome, ctx)
    if limit is not None:
        notes = (outcome.reason, *outcome.notes)
        return NotApplicable(
            limit, trials=outcome.trials, evidence=outcome.evidence, agreed=outcome.agreed, notes=notes
        )
    if isinstance(outcome, Fail) and outcome.attribution == "engine" and outcome.remedy is None:
        return replace(outcome, remedy=Reason(Remedy.ANSWERS_UNALTERED, change=outcome.reason))
    broken = broken_in_answer(outcome.facts)
    shown = broken is not None and broken.stage is Stage.PARSED and asks_for(outcome, *READ)
    return replace(outcome, tried=Tried(1, 1)) if shown and outcome.tried is None else outcome


def limiting(outcome: Outcome, ctx: Context) -> Reason | None:
    """Return the limit of the engine's parsers that explains a failure, as the proof has it."""
    if ctx.proof is None:
        return None
    asked = ctx.asked_last() if STREAMED in outcome.within else None
    if asked and asked.tools and proof_check.none_better("tool_parser", ctx, lambda one: bool(one.losses)):
        engine = f"{ctx.proof.engine} {ctx.proof.shown}"
        return note(f"no tool parser of {engine} that reads this model's calls reads all of them in pieces")
    return None


def traced(outcome: Outcome, ctx: Context) -> Outcome:
    """Return the outcome with the facts that it rests on, and the stage and the change that they show."""
    judged = (one for one in reversed(ctx.judged_wrong) if one.outcome.shows(outcome.seen))
    wrong = next(judged, None)
    found = None if wrong is None else trace(ctx, wrong)
    if wrong is None or found is None or not isinstance(outcome, Fail | Inconclusive):
        return by_proof(outcome, ctx)
    shown = replace(outcome, facts=found.facts)
    return _by_facts(shown, wrong, found, ctx) or by_proof(shown, ctx)


def _by_facts(outcome: Fail | Inconclusive, wrong: Judgement, found: Trace, ctx: Context) -> Outcome | None:
    """Return the outcome with the first broken stage between the prompt and the answer."""
    broken = broken_in_answer(found.facts)
    if broken is None:
        return failing(outcome, None) if _contradicted(outcome, found) else None
    if broken.stage is Stage.DRAWN:
        reading = isinstance(outcome, Fail) and (
            outcome.attribution == "engine" or asks_for(outcome, *PARSER_OF)
        )
        return of_the_model(outcome, ctx) if reading else None
    if broken.stage is Stage.PARSED and found.better is not None and ctx.proof is not None:
        key, parser = found.better.key, found.better.parser
        if key == "tool_parser" and proof_check.encodes_twice(ctx):
            return failing(outcome, Stage.DRAWN, Reason(Remedy.DECODE_ONCE_MORE))
        return failing(outcome, Stage.PARSED, proof_check.change(key, parser, ctx, ctx.proof))
    if broken.stage is Stage.WHOLE and not wrong.stream:
        renamed = wrong.reply is not None and wrong.reply.old_field is not None
        own = None if renamed else _reads(outcome, wrong, found, ctx)
        return failing(outcome, Stage.WHOLE, own or outcome.remedy)
    return None


def _contradicted(outcome: Fail | Inconclusive, found: Trace) -> bool:
    """Return whether a parser is blamed, and an answer was read and served right when looked at."""
    known = by_stage(found.facts)
    right = all(known[stage].state == "holds" for stage in (Stage.PARSED, Stage.WHOLE))
    return right and Stage.STREAM not in known and asks_for(outcome, *PARSER_OF)


def _reads(outcome: Fail | Inconclusive, wrong: Judgement, found: Trace, ctx: Context) -> Reason | None:
    """Return the remedy for an engine whose answer is not what its own parsers read."""
    if _by_turns(outcome, wrong, ctx):
        return Reason(Remedy.SERVERS_ALIKE)
    if found.parser is not None and (found.change is None or found.change.kind in BY_PARSERS):
        return Reason(Remedy.OTHER_VERSION_READS, parser=found.parser, change=found.change)
    return None if found.change is None else Reason(Remedy.ANSWERS_UNALTERED, change=found.change)


def _by_turns(outcome: Fail | Inconclusive, wrong: Judgement, ctx: Context) -> bool:
    """Return whether the same request is answered right at times, and as wrong as before at others."""
    try:
        seen = [wrong.judge(ctx.ask(wrong.prompt)) for _ in range(REPEATS)]
    except ExchangeError:
        return False
    as_before = (one for one in seen if one.shows(outcome.seen) or one.attribution == "configuration")
    return any(isinstance(one, Pass) for one in seen) and any(as_before)


def by_proof(outcome: Outcome, ctx: Context) -> Outcome:
    """Return the outcome with the remedy for this document, in place of the general one of a judge."""
    if isinstance(outcome, Fail | Inconclusive) and outcome.attribution == "model":
        return _of_prompt(outcome, ctx)
    if not isinstance(outcome, Fail) or outcome.remedy is None:
        return outcome
    key = PARSER_OF.get(Remedy(outcome.remedy.kind))
    if key is not None and ctx.proof is not None:
        return _of_parser(outcome, key, ctx, ctx.proof)
    return replace(outcome, remedy=_end_remedy(ctx)) if outcome.remedy == END_TOKEN else outcome


def _of_parser(outcome: Fail, key: str, ctx: Context, proof: Proof) -> Outcome:
    """Return the failure of a parser with the one to name, or another cause where a right one is named."""
    if outcome.attribution == "configuration" and proof_check.wrong(key, ctx, proof):
        reads = Reason(Remedy.OTHER_VERSION_READS, parser=proof_check.named(key, ctx, proof))
        return replace(outcome, stage=Stage.WHOLE, remedy=reads)
    of_calls = key == "tool_parser" and proof_check.same_template(ctx, proof)
    if of_calls and proof_check.encodes_twice(ctx):
        return replace(outcome, stage=Stage.DRAWN, remedy=Reason(Remedy.DECODE_ONCE_MORE))
    better = proof_check.better(key, ctx, proof)
    if better is not None and better.kind is Remedy.OWN_TEMPLATE:  # that is the one in use
        return of_the_model(outcome, ctx)
    return replace(outcome, remedy=better or outcome.remedy)


def _end_remedy(ctx: Context) -> Reason:
    """Return the token that ends a turn, where a completion of the last prompt shows it."""
    prompt = ctx.asked_last()
    written = ctx.raw(prompt, max_tokens=END_WITHIN) if prompt is not None else None
    return end_at(control_token(written or "", ctx.promise.markers))


def of_the_model(outcome: Fail | Inconclusive, ctx: Context) -> Outcome:
    """Return a fault of the model; of the document where its prompt is changed."""
    return _of_prompt(failing(outcome, Stage.DRAWN), ctx)


def _of_prompt(outcome: Fail | Inconclusive, ctx: Context) -> Outcome:
    """Return a fault of the model; one of template or tokenizer where these change its prompt."""
    prompt = ctx.asked_last()
    calls = prompt is not None and any(message.get("tool_calls") for message in prompt.messages)
    of_tools = prompt is not None and (bool(prompt.tools) or calls)
    if ctx.proof is not None and not proof_check.same_template(ctx, ctx.proof):
        why, stage, remedy = Reason(CommonReason.NOT_PROVED), Stage.TEMPLATE, Reason(Remedy.IMPORT_AGAIN)
    elif (seen := tokens.altered(ctx)) is not None:
        why, stage, remedy = seen, Stage.TOKENS, OWN
    elif of_tools and proof_check.encodes_twice(ctx):
        return replace(outcome, remedy=Reason(Remedy.DECODE_ONCE_MORE))
    else:
        return outcome
    return replace(outcome, notes=(*outcome.notes, why), stage=stage, remedy=remedy)


def altered(outcome: Outcome, promise: Expectations) -> Outcome:
    """Return a fault of the document where a setting alters the numbers of the model at fault."""
    if not isinstance(outcome, Fail) or not promise.altering:
        return outcome
    if outcome.attribution != "model" and not asks_for(outcome, Remedy.OTHER_VERSION_READS):
        return outcome
    key, value = next(iter(promise.altering.items()))
    numbers = note(f"{key} {value} has the model reckon with other numbers than its own")
    return failing(outcome, Stage.START, Reason(Remedy.TAKE_OUT_SETTING, key=key), numbers)
