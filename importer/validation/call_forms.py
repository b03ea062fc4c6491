"""The forms in which a live model writes its calls: parsers, templates and a required call, tried on it.

A proof is about the form of a template. A model may have another habit: its own drawn answers decide.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from importer.chat_template.conventions import AS_WRITTEN, offered
from importer.chat_template.learnt_format import learn_format
from importer.chat_template.markers import mirror
from importer.chat_template.override import Spelling, respelled
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.frontends import HF
from importer.engines.parsers import ParserQuestion
from importer.progress import Progress
from importer.reasons import Reason
from importer.signals.observed import GOOD, CallForm, proposed
from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.errors import attempt
from importer.validation.evidence_sources import Drawn, as_reply
from importer.validation.outcome import NotShown, Pass, ProbeRow, Tried
from importer.validation.probes.requests import judge_forced, needs_tool_choice
from importer.validation.probes.tools import tool_call
from importer.validation.prompts import ALARMS, TRIP, TWO_CITIES, WEATHER, Prompt
from importer.validation.remedy import Remedy
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply
from importer.validation.trace import without_end

ASKED = (WEATHER, TRIP, ALARMS, TWO_CITIES)
DRAWS = 3  # answers to each question
CALL = 160  # tokens of a call
MOST_SECONDS = 300.0  # of all forms together
ENOUGH = 0.8  # the share of right calls at which no further form is tried; a slow engine's is ``GOOD``
MARK = re.compile(r"[^\s\"'\\{}%]{1,24}")  # around a call; nothing that would be code in a template
ABILITY = "tools"  # of the rows that get the remedy


def observed(ctx: Context, rows: Sequence[ProbeRow], progress: Progress) -> tuple[CallForm, ...]:
    """Return the forms that were tried on a model that calls no tool by itself; the served one first.

    Nothing where it calls, or where something before its answer is at fault.
    """
    row = next((row for row in rows if row.probe == tool_call.name), None)
    if row is None or not isinstance(row.outcome, NotShown) or ctx.client.over is not None:
        return ()
    progress("trying other forms of calls on the model")
    forms = [*_drawn_forms(ctx)]
    if needs_tool_choice(ctx.promise) is None:
        forms.append(_required(ctx))
    return tuple(forms)


def with_remedy(rows: Sequence[ProbeRow], forms: Sequence[CallForm], named: str | None) -> list[ProbeRow]:
    """Return the rows; those of calls that the model does not make with the form in which it makes them.

    ``named``  the tool parser of the document.
    """
    if not forms:
        return list(rows)
    best = proposed(forms)
    remedy, tried = _remedy(best, named), Tried(best.right, best.asked) if best.asked else None
    once = {tool_call.name: tried}  # a report adds trials up
    return [
        replace(row, outcome=replace(row.outcome, remedy=remedy, tried=once.get(row.probe)))
        if row.ability == ABILITY and isinstance(row.outcome, NotShown)
        else row
        for row in rows
    ]


def _remedy(form: CallForm, named: str | None) -> Reason | None:
    """Return the change to a document, or to requests, by which the calls arrive in a form; ``None`` where it
    is served so.
    """
    if not form.right:
        return Reason(Remedy.OFFER_NO_TOOLS)
    if form.choice == "required":
        return Reason(Remedy.REQUIRE_CALLS)
    if form.template:
        return Reason(Remedy.SERVE_TEMPLATE, template=form.template)
    if form.parser == named:
        return None
    return Reason(Remedy.SET_PARSER, key="tool_parser", parser=form.parser, named=None)


def _drawn_forms(ctx: Context) -> Iterator[CallForm]:
    """Yield the best reading of each template, until one is good enough or the time is over."""
    render, offline = ctx.render, ctx.offline
    analysis = None if render is None else render.analysis
    if render is None or offline is None or analysis is None or ctx.promise.lacks("completions"):
        return
    begun, left = time.monotonic(), min(MOST_SECONDS, ctx.client.seconds_left / 2)
    ctx = replace(ctx, client=replace(ctx.client, deadline=begun + left))
    answers = _draw(ctx, render)
    of_data = ctx.promise.tool_parser == HF
    own = _best(ctx, render, analysis, answers, of_data)
    yield own
    lasted, enough = time.monotonic() - begun, GOOD if ctx.promise.slow else ENOUGH
    for name, text, spelling in _templates(render, analysis, answers, ctx.promise.engine):
        if own.share >= enough or ctx.client.seconds_left < lasted:
            return
        with render.under(text) as other:
            studied = other.analysis
            if studied is None or not studied.calls_rendered:
                continue
            found = _best(ctx, other, studied, _draw(ctx, other), name == AS_WRITTEN)
        if found.asked < own.asked:  # the time was over
            return
        own = max(own, found, key=lambda form: form.share)
        yield replace(found, template=name, spelling=spelling)


Answers = Sequence[tuple[Prompt, Reply]]


def _draw(ctx: Context, render: PromptRendering) -> Answers:
    """Return drawn answers behind the rendered prompts, all in one batch."""
    texts = [(prompt, text) for prompt in ASKED if (text := render(prompt)) is not None]

    def ask(one: tuple[Prompt, str]) -> Reply | None:
        return attempt(partial(ctx.behind, one[1], max_tokens=CALL, **ctx.promise.client_sampling))

    asked = [one for one in texts for _ in range(1 if ctx.promise.greedy else DRAWS)]
    with ThreadPoolExecutor(len(asked) or 1) as pool:
        replies = list(pool.map(ask, asked))
    return [(one[0], r) for one, r in zip(asked, replies, strict=True) if r is not None]


def _best(
    ctx: Context, render: PromptRendering, analysis: TemplateAnalysis, answers: Answers, as_written: bool
) -> CallForm:
    """Return the share of the parser that reads most of the answers; of the document's among equals."""
    offline = ctx.offline
    drawn = [
        Drawn(render(p) or "", without_end(reply.written or reply.content, render.stops), p)
        for p, reply in answers
    ]
    named = ParserQuestion(ctx.promise.tool_parser, ctx.promise.reasoning_parser)
    asks = [] if offline is None else offline.tool_parsers(named)
    readings = (
        {}
        if offline is None
        else offline.read_all(drawn, asks, render.text, analysis if as_written else None)
    )
    rights: Counter[ParserQuestion] = Counter()
    for ask, found in readings.items():
        read = zip(answers, found, strict=True)
        rights[ask] = sum(
            one.error is None and isinstance(judge_call(as_reply(one, reply), p), Pass)
            for (p, reply), one in read
        )
    ask, right = max(rights.items(), key=lambda one: one[1], default=(ParserQuestion(), 0))
    return CallForm(ask.tool if right else None, right, len(answers), digest=analysis.digest)


def _templates(
    render: PromptRendering, analysis: TemplateAnalysis, answers: Answers, engine: str
) -> Iterator[tuple[str, str, Spelling]]:
    """Yield templates to try by their names: the model's own in its own spelling, then those of ours."""
    learnt = learn_format(analysis.samples)
    marks = () if learnt is None else learnt.markers
    seen = written(answers, render.stops)
    if seen is not None and len(marks) == 2 and mirror(marks[0]) == marks[1]:
        spelling = tuple(zip(marks, seen, strict=True))
        yield AS_WRITTEN, respelled(render.text, spelling), spelling
    for name in offered(engine.partition(" ")[0]):
        text = render.dressed(name)
        if text is not None:
            yield name, text, ()


def written(answers: Answers, stops: tuple[str, ...] = ()) -> tuple[str, str] | None:
    """Return the marks that the model writes around most of its calls; ``None`` where it writes none."""
    texts = ((without_end(reply.written or reply.content, stops), prompt) for prompt, reply in answers)
    seen = Counter(filter(None, (_marks(text, prompt) for text, prompt in texts)))
    return seen.most_common(1)[0][0] if seen else None


def _marks(text: str, prompt: Prompt) -> tuple[str, str] | None:
    """Return the marks around the first JSON object that names an offered tool."""
    names = {str(tool["function"]["name"]) for tool in prompt.tools}
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, Mapping) and value.get("name") in names:
            before, behind = text[:at].split(), text[end:].split()
            marks = (before[-1], behind[0]) if before and behind else ("", "")
            return marks if all(map(MARK.fullmatch, marks)) else None
        at = text.find("{", end)
    return None


def _required(ctx: Context) -> CallForm:
    """Return how many required calls arrive right at the served model."""
    replies = [(prompt, attempt(partial(ctx.ask, prompt, tool_choice="required"))) for prompt in ASKED]
    known = [(prompt, reply) for prompt, reply in replies if reply is not None]
    right = sum(isinstance(judge_forced(reply, prompt, None), Pass) for prompt, reply in known)
    return CallForm(ctx.promise.tool_parser, right, len(known), choice="required")
