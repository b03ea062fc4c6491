"""The comparison of a proof with a served answer: a parser that reads the text of the model, and does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from importer import backends
from importer.document import document_keys
from importer.document.document import Document
from importer.engines.parsers import ParserQuestion
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import RENDERS_NONE, Proof
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.prompts import SUM, WEATHER, WEATHER_ANSWERED
from importer.validation.remedy import Remedy, end_at
from importer.validation.tool_markup import control_token, thinking_markup, untagged

THOUGHT_ENDS = re.compile(r"</\w*think\w*>|\[/THINK\]|<\|END_THINKING\|>", re.IGNORECASE)
ENCODED = re.compile(r"""\\["']location\\["']\s*:\s*\\["']Paris""")
CALL, LAST = "get_weather", "Paris"  # what a call of the weather in Paris begins with, and its argument
TAIL = 60  # characters that may follow a call's last argument: what closes it, and the end of the turn


def of_import(ctx: Context) -> bool:
    """Return whether the template beside the weights is the file of the import; ``True`` where unknown."""
    return ctx.proof is None or ctx.render is None or ctx.proof.template in ("", ctx.render.digest)


def same_template(ctx: Context, proof: Proof) -> bool:
    """Return whether the template beside the weights is the proved one, renders as it does, or is unknown."""
    render = ctx.render
    if render is None or not proof.template or render.digest in ("", proof.template):
        return True
    renders = bool(proof.renders) and render.analysis is not None and render.analysis.renders == proof.renders
    return renders and (not backends.of(proof.engine).infers or _infers_alike(ctx, proof))


def _infers_alike(ctx: Context, proof: Proof) -> bool:
    """Return whether an engine that goes by the template's text infers the parsers of the proof."""
    if ctx.offline is None:
        return False
    inferred = ctx.offline.in_use(ParserQuestion(proof.inferred.get("tool_parser")))
    return inferred.tool == (claimed("tool_parser", ctx) or proof.inferred.get("tool_parser"))


def claimed(key: str, ctx: Context) -> str | None:
    """Return the parser that the repository names, for engines that infer theirs."""
    return ctx.render.claimed if ctx.render is not None and key == "tool_parser" else None


def named(key: str, ctx: Context, proof: Proof) -> str | None:
    """Return the parser in use: of the document, or the one that an engine infers."""
    if backends.of(proof.engine).infers:
        return claimed(key, ctx) or proof.inferred.get(key)
    promised: str | None = getattr(ctx.promise, key)
    return promised


def wrong(key: str, ctx: Context, proof: Proof) -> bool:
    """Return whether the engine fails on text that its own parser is proved to read."""
    if ctx.render is None or not same_template(ctx, proof) or named(key, ctx, proof) not in proof.reads(key):
        return False
    runs = getattr(ctx.running(), key)
    if runs is not None and runs != named(key, ctx, proof):
        return False  # it was started with another one
    return calls_as_proved(ctx) if key == "tool_parser" else thinks_as_proved(ctx, proof)


def renders_none(key: str, proof: Proof) -> bool:
    """Return whether the template renders nothing that a parser of this kind reads."""
    return proof.unasked.get(key) == RENDERS_NONE[key]


def change(key: str, parser: str | None, ctx: Context, proof: Proof, why: object = None) -> Reason:
    """Return the change of a document, or of the model's files, to a parser; ``None`` is no parser at all.

    ``why``  what the one in use does not, where its verdict has no reason.
    """
    if parser is None:
        return Reason(Remedy.LEAVE_OUT_PARSER, key=key)
    used = named(key, ctx, proof)
    if backends.of(proof.engine).infers and key == "tool_parser":
        engine = {"engine": proof.engine, "version": proof.version}
        told = {"claimed": claimed(key, ctx), "named": used}
        return Reason(Remedy.SET_PARSER_TYPE, key=key, parser=parser, **told, **engine)
    why = why or next((v.reason for v in proof.verdicts.get(key, ()) if v.parser == used), None)
    return Reason(Remedy.SET_PARSER, key=key, parser=parser, named=used if why else None, why=why)


def better(key: str, ctx: Context, proof: Proof) -> Reason | None:
    """Return the parser to name, by the proof; or another change where the document names a right one."""
    if not same_template(ctx, proof):
        return Reason(Remedy.IMPORT_AGAIN)
    reads = proof.reads(key)
    if not proof.verdicts.get(key):
        return change(key, None, ctx, proof) if renders_none(key, proof) else None
    if not reads:
        return Reason(Remedy.NO_PARSER_READS, key=key, engine=proof.engine, version=proof.version)
    if (used := named(key, ctx, proof)) in reads:
        behind = runs_on(ctx) if key == "tool_parser" else None
        return end_at(behind) if behind is not None else Reason(Remedy.OWN_TEMPLATE, parser=used)
    promised = getattr(ctx.promise, key)
    return change(key, promised if promised in reads else reads[0], ctx, proof)


def whole_in_pieces(ctx: Context) -> Reason | None:
    """Return the change to a parser that reads streamed calls as whole ones, where the one in use does not:
    by itself, or beside the tool parser.
    """
    proof, key = ctx.proof, "tool_parser"
    if proof is None or backends.of(proof.engine).infers or not same_template(ctx, proof):
        return None
    tool, reasoning = named(key, ctx, proof) or "", named("reasoning_parser", ctx, proof) or ""
    if (why := proof.pairs.get(reasoning, {}).get(tool)) is not None:
        others = (name for name in proof.reads("reasoning_parser") if tool not in proof.pairs.get(name, {}))
        if (partner := next(others, None)) is not None:
            return change("reasoning_parser", partner, ctx, proof, why)
    verdicts = {v.parser: v for v in proof.verdicts.get(key, ())}
    used = verdicts.get(tool)
    other = next((name for name, v in verdicts.items() if v.reads and v.streaming is None), None)
    if used is None or other is None or (used.reads and used.streaming is None):
        return None
    return change(key, other, ctx, proof, used.streaming)


def none_better(key: str, ctx: Context, fails: Callable[[ParserVerdict], bool]) -> bool:
    """Return whether the parser in use reads the served template and ``fails``, as do all that read it."""
    proof = ctx.proof
    if proof is None or not same_template(ctx, proof):
        return False
    reading = [verdict for verdict in proof.verdicts.get(key, ()) if verdict.reads]
    return named(key, ctx, proof) in {v.parser for v in reading} and all(map(fails, reading))


def instead(document: Document, proof: Proof) -> Reason | None:
    """Return the change to a document with a parser that does not read the template, where another does."""
    changes = (rather(key, document_keys.parser(document, key), proof) for key in proof.verdicts)
    return next((change for change in changes if change is not None), None)


def rather(key: str, named: str | None, proof: Proof) -> Reason | None:
    """Return the change of one parser, where the named one does not read the template and another does."""
    reads = proof.reads(key)
    if named is None or not reads or named in reads:
        return None
    return Reason(Remedy.SET_PARSER, key=key, parser=reads[0], named=named)


def thinks_never(ctx: Context) -> bool:
    """Return whether the document names a reasoning parser, and the template has no reasoning."""
    if ctx.proof is None or ctx.promise.reasoning_parser is None or not same_template(ctx, ctx.proof):
        return False
    return renders_none("reasoning_parser", ctx.proof)


def calls_as_proved(ctx: Context) -> bool:
    """Return whether the model writes a call, and nothing after it, in the form of its template.

    Where an answer shows other text than the model wrote, the completion of the rendered prompt decides.
    """
    seen, rendered = ctx.look(WEATHER), ctx.rendered(WEATHER_ANSWERED)
    if rendered is None or (seen is not None and seen.finish_reason == "length"):
        return False
    return as_rendered(seen.written if seen is not None else ctx.raw(WEATHER) or "", rendered)


def as_rendered(written: str, rendered: str) -> bool:
    """Return whether one call of the weather in Paris stands in ``written`` and ``rendered`` alike."""
    thoughts = [match.end() for match in THOUGHT_ENDS.finditer(written)]
    text = _compact(written[thoughts[-1] :] if thoughts else written)
    calls = [(max(0, start - 2), min(len(text), end + 2)) for start, end in islice(_calls(text, 2), 2)]
    if len(calls) != 1:
        return False
    (start, end), *_ = calls
    return text[start:end] in _compact(rendered) and len(text) - end <= TAIL


def _calls(text: str, around: int = 0) -> Iterator[tuple[int, int]]:
    """Yield start and end of each call; ``around`` characters behind it belong to it."""
    start = text.find(CALL)
    while start >= 0 and (end := text.find(LAST, start + len(CALL))) >= 0:
        yield start, end + len(LAST)
        start = text.find(CALL, end + len(LAST) + around)


def runs_on(ctx: Context) -> str | None:
    """Return the token behind a call that ends an answer, where the model writes words behind it."""
    seen = ctx.look(WEATHER)
    written = (seen.written if seen is not None else "") or ctx.raw(WEATHER) or ctx.shown(WEATHER)
    tail = next((written[end:] for _, end in _calls(written)), "")
    token = control_token(tail)
    return token if token is not None and re.search(r"\w", untagged(tail.partition(token)[2])) else None


def encodes_twice(ctx: Context) -> bool:
    """Return whether the model writes arguments as JSON in a text, and its template does not."""
    seen, rendered = ctx.look(WEATHER), ctx.rendered(WEATHER_ANSWERED)
    if seen is None or rendered is None:
        return False
    return ENCODED.search(seen.written) is not None and ENCODED.search(rendered) is None


def thinks_as_proved(ctx: Context, proof: Proof) -> bool:
    """Return whether the model thinks between the markers of its template, and then comes to an end."""
    seen = ctx.look(SUM)
    if seen is None or seen.finish_reason == "length":
        return False
    answer = seen.written.strip()
    marker, stray = thinking_markup(answer), control_token(answer)
    ended = stray is None or answer.endswith(stray) or marker == stray
    return marker is not None and ended and any(marker in rendered for rendered in proof.written.values())


def _compact(text: str) -> str:
    return "".join(text.split())
