"""Whose fault it is when what was served differs from what the model wrote, and what would mend it.

Four sources: what the model wrote (``Reply.written``, ``Context.raw``), what the engine made of it, which
parsers the proof found to read the template, and the engine's log.
"""

from __future__ import annotations

import re
from dataclasses import replace

from importer.engines import surroundings
from importer.messages import render
from importer.proof.result import NO_CALLS, NO_THINKING, Proof
from importer.validation import proved, thoughts
from importer.validation.context import Context
from importer.validation.errors import (
    ExchangeError,
    Refused,
    ReplyError,
    TemplateRefusedError,
    TimedOut,
    Unreachable,
)
from importer.validation.outcome import Attribution, Fail, Inconclusive, Outcome
from importer.validation.promise import REQUEST_NAMES, Promise
from importer.validation.prompts import (
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_ANSWERED_LONGER,
    WEATHER_TWO_TOOLS,
    Prompt,
)
from importer.validation.reply import Reply
from importer.validation.signs import (
    control_token,
    drafted,
    looks_like_call,
    next_turn,
    outside,
    thinks,
)
from importer.validation.tokenised import OWN, changed_prompt

# Changes in general words, for judges, which see a reply only; ``mended`` makes them the one that helps here.
OTHER_TOOL_PARSER = "Choose the tool parser that reads what the model writes."
OTHER_REASONING_PARSER = "Choose the reasoning parser that reads this model's markers."
END_TOKEN = "Make the token that ends a turn an end-of-sequence token in generation_config.json."  # noqa: S105
CUT_THOUGHT = "Choose a reasoning parser that reads a thought that is cut."
ENCODES_TWICE = (
    "Let the client decode arguments once more, or use weights that write them as the template does."
)
OTHERWISE = "writes otherwise: use its own template."
WHOLE_WEIGHTS = "Use weights that are whole, and not rounded as far."
NOT_PROVED = "the template beside the weights is not the one that was proved"
IMPORT_AGAIN = "Fetch the model's own chat template, or import the model again."
TEMPLATE_BREAKS = "Use a chat template that takes this conversation."
NO_REASONING_PARSER = "Leave the reasoning parser out, or choose the one that reads this model."
PARSER_MENDS = {
    OTHER_TOOL_PARSER: "tool_parser",
    OTHER_REASONING_PARSER: "reasoning_parser",
    NO_REASONING_PARSER: "reasoning_parser",
    CUT_THOUGHT: "reasoning_parser",
}
MISSED = {CUT_THOUGHT: "thinking-cut"}  # the case of the proof that a parser fails which otherwise reads
NOTICED = 0.5  # seconds until an engine that broke the connection is seen to be gone
DEATH_MENDS: dict[Attribution, str] = {
    "configuration": "Change the document or the model's files; the log has more.",
    "model": "Use other weights; the log has more.",
    "engine": "Read its log to the end.",
    "environment": "See what else needs memory on this machine; the system's own log may tell who ended it.",
}
OURS = {theirs: ours for ours, theirs in REQUEST_NAMES.items()}
ONE_TEMPLATE = "Make the chat template in {0} the same as the model's, or name it in the document."
NO_TEMPLATE = "there is no chat template beside the weights"
FETCH_TEMPLATE = "Fetch the model's own chat template."
WHOLE_ANSWERS = "Use whole answers until the engine is mended."
WITHHELD = "Use another version of the engine: it does not give the template all that a request holds."
LONGER = 20  # characters by which the longer of two compared conversations is longer at least
END_WITHIN = 256  # tokens in which the end of a short answer shows


def swallowed(reply: Reply) -> bool:
    """Whether the engine counts more tokens than an empty answer's end and shows none of them."""
    empty = not (reply.content.strip() or reply.reasoning.strip() or reply.tool_calls)
    return empty and (reply.usage.completion or 0) > 4


def endless(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | Inconclusive:
    """Why an answer went on to the limit: an end that the engine does not know, or a long-winded model."""
    text = reply.reasoning + reply.content + reply.written
    token = control_token(text, markers)
    if token is not None:
        return Fail(
            f"the answer does not end: the model writes {token} and the engine goes on",
            "configuration",
            ends_with(token),
        )
    if next_turn(text):
        return Fail("the answer does not end: it goes on into another turn", "configuration", END_TOKEN)
    where = "writing" if reply.content.strip() else "thinking"
    return Inconclusive(f"the model was still {where} at the limit of tokens", "model", "Allow more tokens.")


def unread(reply: Reply, prompt: Prompt) -> str | None:
    """What the model wrote that no parser took; ``None`` where nothing was, or its tokens are not shown."""
    behind = outside(reply.written, reply.reasoning if drafted(reply.reasoning, reply.content) else "")
    if looks_like_call(behind, prompt.tools) and not reply.tool_calls:
        return "the model wrote a call that no parser took"
    if thinks(reply.written) and not reply.reasoning.strip():
        return "the model thinks and no parser takes the thoughts"
    return None


def tools_unseen(ctx: Context) -> Fail | None:
    """The fault where a prompt is no longer with two tools than with one; ``None`` if nothing is counted."""
    reason = "the tools do not reach the prompt: a second one makes it no longer"
    return unseen(ctx, (WEATHER, WEATHER_TWO_TOOLS), reason, "Use a chat template that renders tools.")


def results_unseen(ctx: Context) -> Fail | None:
    """The fault where a longer result makes the prompt no longer; ``None`` if nothing is counted."""
    reason = "the tool's result does not reach the prompt: a longer one makes it no longer"
    mend = "Use a chat template that renders the role 'tool'."
    return unseen(ctx, (WEATHER_ANSWERED, WEATHER_ANSWERED_LONGER), reason, mend)


def unseen(ctx: Context, prompts: tuple[Prompt, Prompt], reason: str, mend: str) -> Fail | None:
    """The fault where a longer conversation is no longer a prompt; ``None`` if nothing is counted."""
    counted = (ctx.first(prompt) for prompt in prompts)
    return left_out(ctx, prompts, reason, mend) if same_length(*counted) else None


def left_out(ctx: Context, prompts: tuple[Prompt, Prompt], reason: str, mend: str) -> Fail:
    """The template's fault, unless that is seen to render what makes the two prompts differ.

    Then it is the engine's, or there is another template that the engine may read in its stead.
    """
    one, other = (ctx.rendered(prompt) for prompt in prompts)
    if one is None or other is None or len(other) < len(one) + LONGER or ctx.render is None:
        return Fail(reason, "configuration", mend, trials=2)
    if ctx.render.others:
        where = " and ".join(ctx.render.others)
        return Fail(
            f"{reason}; the template would render it, and the engine reads another one",
            "configuration",
            ONE_TEMPLATE.format(where),
            trials=2,
        )
    return Fail(
        f"{reason}; the model's template renders it, and the engine leaves it out",
        "engine",
        WITHHELD,
        trials=2,
    )


def same_length(one: Reply, other: Reply) -> bool:
    """Whether the engine counts as many prompt tokens for both."""
    return one.usage.prompt is not None and one.usage.prompt == other.usage.prompt


def streaming_fault(ctx: Context, prompt: Prompt, reason: str, trials: int) -> Fail:
    """Only streaming went wrong: the engine's fault, unless its parsers were never the right ones."""
    seen = ctx.look(prompt)
    wrong = unread(seen, prompt) if seen is not None else None
    if seen is not None and wrong is not None:
        mend = OTHER_REASONING_PARSER if thinks(seen.written) else OTHER_TOOL_PARSER
        if looks_like_call(seen.written, prompt.tools) and not seen.tool_calls:
            mend = OTHER_TOOL_PARSER
        return Fail(f"{reason}; {wrong}", "configuration", mend, trials)
    if proved.thinks_never(ctx):
        return Fail(reason, "configuration", NO_REASONING_PARSER, trials)
    better = proved.whole_in_pieces(ctx) if prompt.tools else None
    if better is not None:
        return Fail(reason, "configuration", better, trials)
    return Fail(reason, "engine", WHOLE_ANSWERS, trials)


def failed(error: ExchangeError, ctx: Context) -> Outcome:
    """What a failed exchange means, with what the log and the template say about it."""
    outcome = error.outcome()
    journal = ctx.journal
    if isinstance(error, Unreachable | TimedOut | ReplyError) and journal is not None:
        death = journal.death(0 if isinstance(error, TimedOut) else NOTICED)
        if death is not None:
            return Fail(f"the engine died: {death.says}", death.part, DEATH_MENDS[death.part])
    if isinstance(error, Refused):
        words = refusal(ctx)
        if words is not None:
            told = f"{error}; the chat template refuses it: {words}"
            return Fail(told, "configuration", TEMPLATE_BREAKS)
    if isinstance(error, Refused | ReplyError) and without_template(ctx) and asked_last(ctx) is not None:
        return Fail(f"{error}; {NO_TEMPLATE}", "configuration", FETCH_TEMPLATE)
    broke = isinstance(error, ReplyError) or (isinstance(error, Refused) and error.broke)
    said = surroundings.lacking(f"{error}") if broke else None
    lacking = None if said is None else render(said)
    if lacking is None and journal is not None and (broke or isinstance(error, Unreachable)):
        lacking = journal.surroundings()
    if lacking is not None:
        return Fail(f"{error}; its log: {lacking}", "environment", f"{lacking[0].upper()}{lacking[1:]}.")
    if isinstance(error, Refused) and (named := named_setting(f"{error}", ctx)) is not None:
        return Fail(f"{error}", "configuration", named)
    if isinstance(error, ReplyError) and isinstance(outcome, Fail) and streamed_last(ctx):
        outcome = replace(outcome, mend=WHOLE_ANSWERS)
    raised = journal.raised() if journal is not None and (broke or isinstance(error, TimedOut)) else None
    return outcome if raised is None else _raised(error, outcome, raised)


def _raised(error: ExchangeError, outcome: Fail | Inconclusive, raised: str) -> Outcome:
    """The outcome beside the log's last exception; an engine that hangs behind one is no slow machine."""
    if isinstance(error, TimedOut):
        outcome = Fail(str(error), "engine", DEATH_MENDS["engine"])
    return replace(outcome, reason=f"{outcome.reason}; its log: {raised}")


def streamed_last(ctx: Context) -> bool:
    """Whether the last answer came in pieces, and all that came whole could be read."""
    asked = [e for e in ctx.log if e.request is not None]
    wholes = [e for e in asked if not (e.request or {}).get("stream")]
    return bool(asked and (asked[-1].request or {}).get("stream")) and all(e.error is None for e in wholes)


def named_setting(says: str, ctx: Context) -> str | None:
    """The change to a setting of the document's that a refusal names."""
    promise = ctx.promise
    variable = next((v for v in promise.variables if re.search(rf"""['"`]{re.escape(v)}['"`]""", says)), None)
    if variable is not None:
        return f"Take {variable} out of chat_template_kwargs."
    for name in {**promise.sampling, **promise.client_sampling}:
        if re.search(
            rf"\b{re.escape(name)}\b\W+(?:\w+\W+){{0,3}}(?:must|should|cannot|can't|expected)\b", says
        ):
            return f"Correct {OURS.get(name, name)} in the document."
    return None


def without_template(ctx: Context) -> bool:
    """Whether the model's files are at hand, and no chat template is among them."""
    return ctx.render is not None and not ctx.render.digest


def refusal(ctx: Context) -> str | None:
    """The chat template's own words, where it refuses what was asked last."""
    asked = asked_last(ctx)
    if asked is None or ctx.render is None:
        return None
    try:
        ctx.render(asked)
    except TemplateRefusedError as refused:
        return str(refused)
    return None


def asked_last(ctx: Context) -> Prompt | None:
    """The last chat that this probe sent, as a prompt."""
    requests = [e.request for e in ctx.log if e.request is not None and "messages" in e.request]
    if not requests:
        return None
    request = requests[-1]
    messages, tools = tuple(request["messages"]), tuple(request.get("tools") or ())
    return Prompt("asked last", messages, tools, switches=request.get("chat_template_kwargs") or {})


def mended(outcome: Outcome, ctx: Context) -> Outcome:
    """The outcome with the change that would mend it in this document, where judges know it in general."""
    return altered(_mended(outcome, ctx), ctx.promise)


def altered(outcome: Outcome, promise: Promise) -> Outcome:
    """The document's fault where it has the model reckon otherwise, and what was written is at fault."""
    if not isinstance(outcome, Fail) or not promise.altering:
        return outcome
    if outcome.attribution != "model" and not outcome.mend.startswith(proved.OTHER_VERSION):
        return outcome
    key, value = next(iter(promise.altering.items()))
    reason = f"{outcome.reason}, and {key} {value} has the model reckon with other numbers than its own"
    return replace(
        outcome, reason=reason, attribution="configuration", mend=f"Take {key} out of the document."
    )


def _mended(outcome: Outcome, ctx: Context) -> Outcome:
    if isinstance(outcome, Fail | Inconclusive) and outcome.attribution == "model":
        return _asked_otherwise(outcome, ctx)
    if not isinstance(outcome, Fail):
        return outcome
    key = PARSER_MENDS.get(outcome.mend)
    if key is not None and ctx.proof is not None:
        case = MISSED.get(outcome.mend)
        if case is None and outcome.attribution == "configuration" and proved.wrong(key, ctx, ctx.proof):
            if key == "reasoning_parser" and (asked := asked_last(ctx)) and thoughts.endless(ctx, asked):
                return _its_own(outcome, "here the model itself does not end its thought", ctx)
            return replace(outcome, attribution="engine", mend=proved.mend(key, ctx, ctx.proof))
        if key == "tool_parser" and proved.same_template(ctx, ctx.proof):
            if proved.encodes_twice(ctx):
                return replace(outcome, attribution="model", mend=ENCODES_TWICE)
            if (asked := asked_last(ctx)) and proved.misspells(ctx, asked):
                return _its_own(outcome, "in its template's own format the model writes no whole call", ctx)
        return replace(outcome, mend=parser_mend(key, ctx, ctx.proof, case) or outcome.mend)
    return replace(outcome, mend=_end_mend(ctx)) if outcome.mend == END_TOKEN else outcome


def _its_own(outcome: Fail, seen: str, ctx: Context) -> Outcome:
    """The model's fault, as ``seen`` in what it writes by itself."""
    reason = f"{outcome.reason}; {seen}"
    return _asked_otherwise(replace(outcome, reason=reason, attribution="model", mend=WHOLE_WEIGHTS), ctx)


def _asked_otherwise(outcome: Fail | Inconclusive, ctx: Context) -> Outcome:
    """A model is not to blame where it is asked by another template than its own, or in another spelling."""
    if ctx.proof is not None and not proved.same_template(ctx, ctx.proof):
        reason, mend = f"{outcome.reason}; {NOT_PROVED}", IMPORT_AGAIN
    elif (changed := changed_prompt(ctx)) is not None:
        reason, mend = f"{outcome.reason}; the tokenizer makes {changed[:80]!r} of a prompt", OWN
    else:
        return outcome
    return replace(outcome, reason=reason, attribution="configuration", mend=mend)


def _end_mend(ctx: Context) -> str:
    """Which token the model ends its turn with, where a completion of what was asked last shows it."""
    asked = asked_last(ctx)
    written = ctx.raw(asked, max_tokens=END_WITHIN) if asked is not None else None
    token = control_token(written or "", ctx.promise.markers)
    return ends_with(token)


def ends_with(token: str | None) -> str:
    """The change that makes an engine stop at a token, where it is known."""
    return END_TOKEN if token is None else END_TOKEN.replace("the token that ends a turn", token)


def parser_mend(key: str, ctx: Context, proof: Proof, case: str | None = None) -> str | None:
    """Which parser to name, by the proof; or what else is wrong where the document names a right one.

    ``case`` is what went wrong, where the proof has such a case.
    """
    if not proved.same_template(ctx, proof):
        return "The template beside the weights is not the one that was proved: import the model again."
    reads, kind = proof.reads(key), key.replace("_", " ")
    engine = f"{proof.engine} {proof.version}"
    if not proof.verdicts.get(key):
        reason = proof.unasked.get(key)
        if reason is None or reason not in (NO_CALLS, NO_THINKING):
            return None
        return f"Leave {key} out of options: {render(reason)}."
    if not reads:
        return f"No {kind} of {engine} reads what the template writes: use another template, or no {kind}."
    inferring, wanted = proof.engine in proved.INFERRING, getattr(ctx.promise, key)
    claimed, named = proved.claimed(key, ctx), proved.named(key, ctx, proof)
    best = wanted if wanted in reads else reads[0]
    if named in reads:
        by_name = {v.parser: v for v in proof.verdicts[key]}
        other = next((name for name in reads if case not in by_name[name].failed), None)
        if case in by_name[named].failed and other is not None and not inferring:
            return f"Set {key}:{other} in options: it reads {case}, which {named} does not."
        behind = proved.runs_on(ctx) if key == "tool_parser" else None
        if behind is not None:
            return ends_with(behind)
        return f"{named} reads what the template writes, and the model {OTHERWISE}"
    if inferring and key == "tool_parser":
        why = f"it names {claimed}" if claimed else f"{engine} infers {named or 'none'}"
        return f'Set "tool_parser_type": "{best}" in tokenizer_config.json; {why}.'
    wrong = next((v.reason for v in proof.verdicts[key] if v.parser == named), None)
    why = f"; {named} does not ({render(wrong)})" if named and wrong else ""
    return f"Set {key}:{best} in options: it reads what the template writes{why}."
