"""One exchange traced through the stages, from its messages to the answer that came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from importer import backends
from importer.engines.parsers import ParserQuestion, Reading, Replay
from importer.frozen import frozen
from importer.proof.result import Proof
from importer.proof.verdicts import canonical_arguments
from importer.reasons import Reason
from importer.validation import mutations, proof_check
from importer.validation.context import Context, Judgement
from importer.validation.errors import AnswerFailure, TemplateRefusedError, attempt
from importer.validation.evidence_sources import Drawn, as_reply
from importer.validation.outcome import Fact, Facts, Inconclusive, Pass, Stage, State, by_stage, note
from importer.validation.prompts import Prompt
from importer.validation.reply import Reply, holds_object
from importer.validation.tool_markup import call_markup, thinking_markup

OTHERS = 6  # other parsers that are tried on one text
QUOTED = 200  # characters of the model's text in a fact


@frozen
class Better:
    """A parser that reads what the one in use does not; ``parser`` is ``None`` for no parser at all."""

    key: str
    parser: str | None


@frozen
class Trace:
    """The facts of one exchange.

    ``better``  the parser that would have read the model's text right, where the one in use did not.
    ``change``  what the server makes of the reading of its own parsers.
    ``parser``  the one in use: of calls, or of thoughts where no calls are read.
    """

    facts: Facts
    better: Better | None = None
    change: Reason | None = None
    parser: str | None = None


def trace(ctx: Context, wrong: Judgement) -> Trace | None:
    """Return the stages of a prompt whose answer was judged wrong; ``None`` where its text is not known."""
    if ctx.offline is None or wrong.prompt.extra:
        return None
    prompt, seen = wrong.prompt, _drawn(ctx, wrong)
    if seen is None:
        return None
    reply, drawn = seen
    pair = ctx.offline.in_use(_named(ctx))
    reading = ctx.offline.read(drawn, pair)
    if reading is None or (reading.error is not None and pair == ParserQuestion(None, None)):
        return None  # nothing reads: what the model writes is the answer
    right = _right(wrong, reading, reply)
    change = _changed(reading, reply, right=right)
    declined = isinstance(wrong.outcome, Inconclusive)  # a wrong answer may be read right
    right = right or ((declined or change is not None) and _sound(reading, drawn))
    better = None if right else _better(ctx, wrong, drawn, reply, pair)
    facts = [_template(ctx, prompt), _tokens(ctx, prompt)]
    change = change or (_unread(ctx, wrong, drawn, pair) if right else None)
    facts += [_parsed(prompt, right=right, better=better), _whole(prompt, reading, reply, change)]
    if wrong.stream and right:
        facts.append(_stream(ctx.offline.replay(drawn, pair), prompt))
    facts.append(_written(ctx, drawn, facts, better))
    return Trace(tuple(by_stage(facts).values()), better, change, pair.tool or pair.reasoning)


def _template(ctx: Context, prompt: Prompt) -> Fact:
    try:
        text = ctx.render(prompt) if ctx.render is not None else None
    except TemplateRefusedError as refused:
        told = AnswerFailure.TEMPLATE_REFUSES
        return Fact(Stage.TEMPLATE, "broken", prompt.name, Reason(told, says=refused.reason))
    if text is None:
        return _fact(Stage.TEMPLATE, "unseen", prompt, "no template is at hand")
    return _fact(Stage.TEMPLATE, "holds", prompt, "the template renders it")


def _tokens(ctx: Context, prompt: Prompt) -> Fact:
    """Compare the engine's count with that of the tokenizer beside the weights; a beginning may be added."""
    text = ctx.rendered(prompt)
    known = ctx.tokens((text,)) if ctx.tokens is not None and text is not None else None
    reply = attempt(partial(ctx.first, prompt))
    engine = None if reply is None else reply.usage.prompt
    if known is None or engine is None or not known.ids:
        return _fact(Stage.TOKENS, "unseen", prompt, "the tokens of the prompt are not known")
    counted = len(known.ids[0])
    if engine in (counted, counted + 1 if ctx.render is not None and ctx.render.bos else counted):
        alike = f"the engine counts {engine} tokens, as the tokenizer does in the template's text"
        return _fact(Stage.TOKENS, "holds", prompt, alike)
    apart = f"the engine counts {engine} tokens, and the template's text has {counted}"
    return _fact(Stage.TOKENS, "broken", prompt, apart)


def _drawn(ctx: Context, wrong: Judgement) -> tuple[Reply, Drawn] | None:
    """Return an answer that is as wrong as the judged one, with the text of its own tokens.

    An answer drawn anew may be right. Then the judged one is traced, where all of it is text: nothing was
    read out of it.
    """
    prompt, came = wrong.prompt, wrong.reply
    reply, text = ctx.look(prompt), ctx.rendered(prompt)
    alone = came is not None and came.content.strip() and not (came.reasoning.strip() or came.tool_calls)
    if came is not None and alone and (reply is None or isinstance(wrong.judge(reply), Pass)):
        reply = replace(came, behind=came.content)
    if reply is None or text is None:
        return None
    written = without_end(reply.written, ctx.render.stops if ctx.render else ())
    return reply, Drawn(text, before_stop(written, ctx.promise.stopwords), prompt)


def before_stop(text: str, words: Iterable[str]) -> str:
    """Return the text before the first stop word, as a server gives it out; the tokens have the word."""
    return text[: min((place for word in words if word and (place := text.find(word)) >= 0), default=None)]


def without_end(text: str, stops: tuple[str, ...]) -> str:
    """Return the text without the tokens that end an answer."""
    while (end := next((stop for stop in stops if stop and text.endswith(stop)), None)) is not None:
        text = text.removesuffix(end)
    return text


def _named(ctx: Context) -> ParserQuestion:
    """Return the parsers that the engine reports; those of the document where it reports none."""
    runs = ctx.running()
    return ParserQuestion(
        runs.tool_parser or ctx.promise.tool_parser, runs.reasoning_parser or ctx.promise.reasoning_parser
    )


def _right(wrong: Judgement, reading: Reading, like: Reply) -> bool:
    return reading.error is None and isinstance(wrong.judge(as_reply(reading, like)), Pass)


def _sound(reading: Reading, drawn: Drawn) -> bool:
    """Return whether a reading leaves no markup and loses no call; a judge may compare answers alone."""
    shown = reading.content or ""
    if reading.error is not None or call_markup(shown) or thinking_markup(shown):
        return False
    if call_markup(drawn.text) and not reading.calls:
        return False
    return all(holds_object(call.arguments) for call in reading.calls)


def _better(
    ctx: Context, wrong: Judgement, drawn: Drawn, reply: Reply, pair: ParserQuestion
) -> Better | None:
    """Return the first proved parser by which the same text is read right."""
    if ctx.offline is None or ctx.proof is None or not proof_check.same_template(ctx, ctx.proof):
        return None
    for better, other in _others(ctx, wrong.prompt, pair):
        reading = ctx.offline.read(drawn, other)
        if reading is not None and _right(wrong, reading, reply):
            return better
    return None


def _others(ctx: Context, prompt: Prompt, pair: ParserQuestion) -> Iterator[tuple[Better, ParserQuestion]]:
    proof = ctx.proof
    if proof is None:
        return
    for name in proof.reads("tool_parser")[:OTHERS] if prompt.tools else ():
        if name != pair.tool:
            yield Better("tool_parser", name), ParserQuestion(name, pair.reasoning)
    if backends.of(proof.engine).infers:
        return
    nothing = (None,) if pair.reasoning is not None else ()
    for parser in (*proof.reads("reasoning_parser")[:OTHERS], *nothing):
        if parser != pair.reasoning:
            yield Better("reasoning_parser", parser), ParserQuestion(pair.tool, parser)


ALONE = "(tested without the server)"


def _parsed(prompt: Prompt, *, right: bool, better: Better | None) -> Fact:
    if right:
        return _fact(Stage.PARSED, "holds", prompt, f"the configured parsers read this text right {ALONE}")
    own = "the configured parsers misread this text"
    other = "" if better is None else f", and {better.parser or 'none at all'} reads it right"
    return _fact(Stage.PARSED, "broken", prompt, f"{own}{other} {ALONE}")


def _whole(prompt: Prompt, reading: Reading, reply: Reply, change: Reason | None) -> Fact:
    """Compare the answer with the reading of its own tokens; ``change`` is what is seen to differ."""
    if change is None and not reply.logprobs:
        return _fact(Stage.WHOLE, "unseen", prompt, "the tokens of this answer are not shown")
    if change is not None or reading.error is not None:
        apart = change or note("the answer is not what the parsers read of its tokens")
        return Fact(Stage.WHOLE, "broken", prompt.name, apart)
    return _fact(Stage.WHOLE, "holds", prompt, "the answer is what the parsers read of its tokens")


def _changed(reading: Reading, reply: Reply, *, right: bool) -> Reason | None:
    """Return what the server makes of the reading of an answer's own tokens.

    How it ends counts where the reading is judged right, for engines end a forced call with either word.
    """
    own = as_reply(reading, reply)
    if not reply.logprobs or reading.error is not None or (not right and parts(own) == parts(reply)):
        return None
    return mutations.told(own, reply)


def _unread(ctx: Context, wrong: Judgement, drawn: Drawn, pair: ParserQuestion) -> Reason | None:
    """Return what differs where the judged answer shows a text that its own parsers read right."""
    came = wrong.reply
    if came is None or wrong.stream or ctx.offline is None or not came.content.strip():
        return None
    reading = ctx.offline.read(replace(drawn, text=came.content), pair)
    if reading is None or not (reading.calls or reading.reasoning) or not _right(wrong, reading, came):
        return None
    own = as_reply(reading, came)
    return mutations.told(replace(own, reasoning=own.reasoning or came.reasoning), came)


def _stream(replay: Replay | None, prompt: Prompt) -> Fact:
    """Compare the same text in pieces with the whole reading, by the parsers in use."""
    if replay is None or replay.whole.error is not None:
        return _fact(Stage.STREAM, "unseen", prompt, "the parsers could not be tested without the server")
    different = f"in pieces, its parsers read {replay.different} of {replay.count} streams otherwise"
    return _fact(Stage.STREAM, "broken" if replay.different else "holds", prompt, different)


def _written(ctx: Context, drawn: Drawn, facts: Sequence[Fact], better: Better | None) -> Fact:
    """Compare the model's text with the form of its template, by parsers that are proved to read that form.

    What none of them reads, whole or in pieces, is another form.
    """
    known, prompt = by_stage(facts), drawn.of
    proof = ctx.proof
    if proof is None or not proof_check.same_template(ctx, proof):
        return _fact(Stage.DRAWN, "unseen", prompt, "the form of the template is not proved")
    called = call_markup(drawn.text) is not None  # where no tool is offered, no parser is to read it
    key = "tool_parser" if prompt.tools or called else "reasoning_parser"
    read = known[Stage.PARSED].state == "holds"
    apart = Stage.STREAM in known and known[Stage.STREAM].state == "broken" and _streams(key, ctx, proof)
    text = drawn.text[:QUOTED]
    if (not read and better is None and proof.reads(key)) or apart:
        none = f"no parser that reads the template's form reads what the model writes: {text}"
        return _fact(Stage.DRAWN, "broken", prompt, none)
    return _fact(Stage.DRAWN, "holds" if read else "unseen", prompt, f"the model writes: {text}")


def _streams(key: str, ctx: Context, proof: Proof) -> bool:
    """Return whether the parser in use reads the template's own form in pieces as it does whole."""
    named = proof_check.named(key, ctx, proof)
    return any(v.parser == named and v.reads and v.streaming is None for v in proof.verdicts.get(key, ()))


def parts(reply: Reply) -> tuple[object, ...]:
    """Return what a reading and an answer have in common: all but ids, ends, and white space at the edges."""
    calls = tuple((call.name, canonical_arguments(call.arguments)) for call in reply.tool_calls)
    return reply.content.strip(), reply.reasoning.strip(), calls


def _fact(stage: Stage, state: State, prompt: Prompt, what: str) -> Fact:
    return Fact(stage, state, prompt.name, note(what))
