"""The attribution of failures: the part at fault where the served answer differs from the text of the model.

Four sources: the text of the model (``Reply.written``, ``Context.raw``), the answer of the engine, the
parsers that read the template in the proof, and the log of the engine.

Faults of streams: what is changed in them, and at which length they are broken off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from importer import backends
from importer.proof.result import Proof
from importer.reasons import Reason, ReasonKind
from importer.validation import mutations, proof_check, tokens, tool_markup
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, ReplyError, ServerUnreachable, StreamCut
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Stage,
    asks_for,
    failing,
    named,
)
from importer.validation.prompts import (
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_ANSWERED_LONGER,
    WEATHER_TWO_TOOLS,
    Prompt,
)
from importer.validation.remedy import (
    END_TOKEN,
    NO_REASONING_PARSER,
    OTHER_REASONING_PARSER,
    OTHER_TOOL_PARSER,
    PARSER_OF,
    WHOLE_ANSWERS,
    Need,
    Remedy,
    end_at,
    template,
)
from importer.validation.reply import Reply
from importer.validation.tokens import OWN
from importer.validation.tool_markup import (
    control_token,
    drafted,
    looks_like_call,
    next_turn,
    outside,
    thinks,
)


class BlameReason(ReasonKind):
    """What shows the part at fault."""

    ANOTHER_READ = "another-read", "the template would render it, and the engine reads another one"
    LEFT_OUT = "left-out", "the model's template renders it, and the engine leaves it out"
    OTHER_NUMBERS = "other-numbers", "{key} {value} has the model reckon with other numbers than its own"
    THOUGHT_UNENDED = "thought-unended", "here the model itself does not end its thought"
    NO_WHOLE_CALL = "no-whole-call", "in its template's own format the model writes no whole call"
    RETOLD = "retold", "the model writes {own!r}, and its template tells that as {told!r} later"


# The case of the proof that a parser fails, though it reads all others.
MISSED = {Remedy.CHOOSE_FOR_CUT_THOUGHT: "thinking-cut"}
LONGER = 20  # characters by which the longer of two compared conversations is longer at least
END_WITHIN = 256  # tokens in which the end of a short answer shows


def swallowed(reply: Reply) -> bool:
    """Return whether the engine counts more tokens than an empty answer's end and shows none of them."""
    empty = not (reply.content.strip() or reply.reasoning.strip() or reply.tool_calls)
    return empty and (reply.usage.completion or 0) > 4


def endless(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | Inconclusive:
    """Return why an answer went on to the limit: an end token unknown to the engine, or a model that writes
    on.
    """
    text = reply.reasoning + reply.content + reply.written
    token = control_token(text, markers)
    if token is not None:
        return Fail(Reason(CommonReason.GOES_ON, token=token), Stage.TOKENS, end_at(token))
    if next_turn(text):
        return Fail(Reason(CommonReason.NEXT_TURN), Stage.TOKENS, END_TOKEN)
    still = CommonReason.STILL_WRITING if reply.content.strip() else CommonReason.STILL_THINKING
    return Inconclusive(Reason(still), Stage.DRAWN)


def unread(reply: Reply, prompt: Prompt) -> Reason | None:
    """Return the markup of the model that no parser read; ``None`` where there is none, or its tokens are
    hidden.
    """
    behind = outside(reply.written, reply.reasoning if drafted(reply.reasoning, reply.content) else "")
    if looks_like_call(behind, prompt.tools) and not reply.tool_calls:
        return Reason(CommonReason.CALL_UNREAD)
    if thinks(reply.written) and not reply.reasoning.strip():
        return Reason(CommonReason.THOUGHT_UNREAD)
    return None


def tools_unseen(ctx: Context) -> Fail | NotApplicable | None:
    """Return the fault where two tools make a prompt no longer than one; ``None`` if nothing is counted."""
    reason = Reason(CommonReason.TOOLS_UNSEEN)
    return unseen(ctx, (WEATHER, WEATHER_TWO_TOOLS), reason, template(Need.RENDER_TOOLS))


def results_unseen(ctx: Context) -> Fail | NotApplicable | None:
    """Return the fault where a longer result makes the prompt no longer; ``None`` if nothing is counted."""
    reason = Reason(CommonReason.RESULT_UNSEEN)
    remedy = template(Need.RENDER_TOOL_ROLE)
    return unseen(ctx, (WEATHER_ANSWERED, WEATHER_ANSWERED_LONGER), reason, remedy, needed=False)


def unseen(
    ctx: Context, prompts: tuple[Prompt, Prompt], reason: Reason, remedy: Reason, *, needed: bool = True
) -> Fail | NotApplicable | None:
    """Return the fault where a longer conversation is no longer a prompt; ``None`` if nothing is counted."""
    counted = (ctx.first(prompt) for prompt in prompts)
    return left_out(ctx, prompts, reason, remedy, needed=needed) if same_length(*counted) else None


def left_out(
    ctx: Context, prompts: tuple[Prompt, Prompt], reason: Reason, remedy: Reason, *, needed: bool = True
) -> Fail | NotApplicable:
    """Return a fault of the template, unless it renders the difference between the two prompts.

    Then the engine is at fault, or it reads another template of the repository. What is not ``needed``, a
    vendor's own template may have no place for.
    """
    one, other = (ctx.rendered(prompt) for prompt in prompts)
    if one is None or other is None or len(other) < len(one) + LONGER or ctx.render is None:
        if one is not None and other is not None and not needed and proof_check.of_import(ctx):
            return NotApplicable(reason)
        return Fail(reason, Stage.START, remedy, trials=2)
    if ctx.render.others:
        same = Reason(Remedy.ONE_TEMPLATE, files=ctx.render.others)
        return Fail(reason, Stage.TEMPLATE, same, trials=2, notes=(Reason(BlameReason.ANOTHER_READ),))
    withheld = Reason(Remedy.OTHER_VERSION_TEMPLATE)
    return Fail(reason, Stage.PROMPT, withheld, trials=2, notes=(Reason(BlameReason.LEFT_OUT),))


def same_length(one: Reply, other: Reply) -> bool:
    """Return whether the engine counts the same number of prompt tokens for both."""
    return one.usage.prompt is not None and one.usage.prompt == other.usage.prompt


def with_remedy(outcome: Outcome, ctx: Context) -> Outcome:
    """Return the outcome with the remedy for this document, in place of the general one of a judge."""
    return altered(_with_remedy(outcome, ctx), ctx.promise)


def altered(outcome: Outcome, promise: Expectations) -> Outcome:
    """Return a fault of the document where a setting alters the numbers of the model at fault."""
    if not isinstance(outcome, Fail) or not promise.altering:
        return outcome
    if outcome.attribution != "model" and not asks_for(outcome, Remedy.OTHER_VERSION_READS):
        return outcome
    key, value = next(iter(promise.altering.items()))
    note = Reason(BlameReason.OTHER_NUMBERS, key=key, value=value)
    return failing(outcome, Stage.START, Reason(Remedy.TAKE_OUT_SETTING, key=key), note)


def _with_remedy(outcome: Outcome, ctx: Context) -> Outcome:
    if isinstance(outcome, Fail | Inconclusive) and outcome.attribution == "model":
        return _attribute_prompt(outcome, ctx)
    if not isinstance(outcome, Fail) or outcome.remedy is None:
        return outcome
    remedy = Remedy(outcome.remedy.kind)
    key = PARSER_OF.get(remedy)
    if key is not None and ctx.proof is not None:
        case = MISSED.get(remedy)
        if case is None and outcome.attribution == "configuration" and proof_check.wrong(key, ctx, ctx.proof):
            if (
                key == "reasoning_parser"
                and (prompt := ctx.asked_last())
                and tool_markup.endless(ctx, prompt)
            ):
                return of_the_model(outcome, ctx, Reason(BlameReason.THOUGHT_UNENDED))
            return replace(outcome, stage=Stage.WHOLE, remedy=proof_check.remedy(key, ctx, ctx.proof))
        if key == "tool_parser" and proof_check.same_template(ctx, ctx.proof):
            if proof_check.encodes_twice(ctx):
                return replace(outcome, stage=Stage.DRAWN, remedy=Reason(Remedy.DECODE_ONCE_MORE))
            if (prompt := ctx.asked_last()) and proof_check.misspells(ctx, prompt):
                return of_the_model(outcome, ctx, Reason(BlameReason.NO_WHOLE_CALL))
        better = parser_remedy(key, ctx, ctx.proof, case)
        if better is not None and better.kind is Remedy.OWN_TEMPLATE:  # that is the one in use
            return of_the_model(outcome, ctx)
        return replace(outcome, remedy=better or outcome.remedy)
    return replace(outcome, remedy=_end_remedy(ctx)) if outcome.remedy == END_TOKEN else outcome


def of_the_model(outcome: Fail | Inconclusive, ctx: Context, *seen: Reason) -> Outcome:
    """Return a fault of the model, as ``seen`` in its text; of the document where its prompt is changed."""
    return _attribute_prompt(failing(outcome, Stage.DRAWN, None, *seen), ctx)


def _attribute_prompt(outcome: Fail | Inconclusive, ctx: Context) -> Outcome:
    """Attribute a fault of the model to the document where template or tokenizer change its prompt."""
    if ctx.proof is not None and not proof_check.same_template(ctx, ctx.proof):
        note, stage, remedy = Reason(CommonReason.NOT_PROVED), Stage.TEMPLATE, Reason(Remedy.IMPORT_AGAIN)
    elif (seen := tokens.altered(ctx)) is not None:
        note, stage, remedy = seen, Stage.TOKENS, OWN
    elif _of_tools(ctx) and proof_check.encodes_twice(ctx):
        return replace(outcome, remedy=Reason(Remedy.DECODE_ONCE_MORE))
    elif _of_tools(ctx) and (told := proof_check.retold(ctx)) is not None:
        note = Reason(BlameReason.RETOLD, own=told[0], told=told[1])
        stage, remedy = Stage.TEMPLATE, Reason(Remedy.TELL_AS_WRITTEN, own=told[0])
    else:
        return outcome
    return replace(outcome, notes=(*outcome.notes, note), stage=stage, remedy=remedy)


def _of_tools(ctx: Context) -> bool:
    """Return whether the last prompt offers tools, or has calls in its history."""
    prompt = ctx.asked_last()
    return prompt is not None and (
        bool(prompt.tools) or any(message.get("tool_calls") for message in prompt.messages)
    )


def _end_remedy(ctx: Context) -> Reason:
    """Return the token that ends a turn, where a completion of the last prompt shows it."""
    prompt = ctx.asked_last()
    written = ctx.raw(prompt, max_tokens=END_WITHIN) if prompt is not None else None
    return end_at(control_token(written or "", ctx.promise.markers))


def parser_remedy(key: str, ctx: Context, proof: Proof, case: str | None = None) -> Reason | None:
    """Return the parser to name, by the proof; or another fault where the document names a right one.

    ``case`` is the failed case, where the proof has it.
    """
    if not proof_check.same_template(ctx, proof):
        return Reason(Remedy.IMPORT_AGAIN)
    reads = proof.reads(key)
    if not proof.verdicts.get(key):
        return Reason(Remedy.LEAVE_OUT_PARSER, key=key) if proof_check.renders_none(key, proof) else None
    if not reads:
        return Reason(Remedy.NO_PARSER_READS, key=key, engine=proof.engine, version=proof.version)
    inferring, promised = backends.of(proof.engine).infers, getattr(ctx.promise, key)
    claimed, named = proof_check.claimed(key, ctx), proof_check.named(key, ctx, proof)
    best = promised if promised in reads else reads[0]
    if named in reads:
        by_name = {v.parser: v for v in proof.verdicts[key]}
        other = next((name for name in reads if case not in by_name[name].failed), None)
        if case in by_name[named].failed and other is not None and not inferring:
            why = by_name[named].failed[case] if case is not None else None
            return Reason(Remedy.SET_PARSER, key=key, parser=other, named=named, why=why)
        behind = proof_check.runs_on(ctx) if key == "tool_parser" else None
        return end_at(behind) if behind is not None else Reason(Remedy.OWN_TEMPLATE, parser=named)
    if inferring and key == "tool_parser":
        engine = {"engine": proof.engine, "version": proof.version}
        return Reason(Remedy.SET_PARSER_TYPE, parser=best, claimed=claimed, named=named, **engine)
    wrong = next((v.reason for v in proof.verdicts[key] if v.parser == named), None)
    refuted = named if wrong else None
    return Reason(Remedy.SET_PARSER, key=key, parser=best, named=refuted, why=wrong)


AGAIN = 2  # further streams that are broken off, until a limit is named


def only_streamed(outcome: Outcome) -> Outcome:
    """Return the outcome of a streamed answer, with the note that the whole one is right."""
    note = Reason(CommonReason.WHOLE_IS_RIGHT)
    return named(replace(outcome, notes=(*outcome.notes, note)), "streamed")


def streaming_fault(ctx: Context, prompt: Prompt, outcome: Outcome) -> Fail:
    """Return the fault of streaming: the engine, unless the document names the wrong parser."""
    seen = ctx.look(prompt)
    missed = unread(seen, prompt) if seen is not None else None
    if seen is not None and missed is not None:
        remedy = OTHER_REASONING_PARSER if thinks(seen.written) else OTHER_TOOL_PARSER
        if looks_like_call(seen.written, prompt.tools) and not seen.tool_calls:
            remedy = OTHER_TOOL_PARSER
        return failing(outcome, Stage.PARSED, remedy, missed)
    if proof_check.thinks_never(ctx):
        return failing(outcome, Stage.PARSED, NO_REASONING_PARSER)
    better = proof_check.whole_in_pieces(ctx) if prompt.tools else None
    if better is not None:
        return failing(outcome, Stage.PARSED, better)
    return failing(outcome, Stage.WHOLE, _whole_until(ctx, prompt))


def _whole_until(ctx: Context, prompt: Prompt) -> Reason:
    """Return the remedy for broken streams, with what is changed in them where that is seen."""
    try:
        change = mutations.told(ctx.first(prompt), ctx.first(prompt, stream=True))
    except ExchangeError:
        return WHOLE_ANSWERS
    return WHOLE_ANSWERS if change is None else Reason(Remedy.WHOLE_ANSWERS, change=change)


def broken(error: ExchangeError, ctx: Context) -> Reason | None:
    """Return the remedy for a stream that cannot be read, where all whole answers can."""
    if not isinstance(error, ReplyError | ServerUnreachable) or not _streamed_last(ctx):
        return None
    if isinstance(error, StreamCut) and _is_whole(bytes(ctx.log[-1].received)):
        return Reason(Remedy.HEED_OPTIONS, option="stream")
    longer = _longer(ctx) if isinstance(error, ServerUnreachable | StreamCut) else None
    if longer is None and isinstance(error, ReplyError):
        return Reason(Remedy.WHOLE_ANSWERS, change=error.reason)
    return longer


def _is_whole(body: bytes) -> bool:
    """Return whether a whole answer came in place of a stream."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and "choices" in answer


def _longer(ctx: Context) -> Reason | None:
    """Return the remedy for a limit of streams: one is broken off each time, and a short one never."""
    cut, request = ctx.log[-1], ctx.log[-1].request or {}
    if not cut.received or any(_ends(request, ctx) for _ in range(AGAIN)):
        return None
    if not _ends({**request, "max_tokens": 1}, ctx):
        return None
    size = max(len(one.received) for one in (cut, *ctx.log[-AGAIN - 1 : -1]))
    return Reason(Remedy.LONGER_STREAMS, seconds=cut.seconds, size=size)


def _ends(request: Mapping[str, object], ctx: Context) -> bool:
    try:
        ctx.client.chat(request, ctx.log)
    except ExchangeError:
        return False
    return True


def _streamed_last(ctx: Context) -> bool:
    """Return whether the last answer was streamed, and all whole ones were readable."""
    requests = [e for e in ctx.log if e.request is not None]
    wholes = [e for e in requests if not (e.request or {}).get("stream")]
    return bool(requests and (requests[-1].request or {}).get("stream")) and all(
        e.error is None for e in wholes
    )
