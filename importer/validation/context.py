"""The context of a probe: expectations, the API of the engine, and answers that probes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import Any, Literal

from importer.engines import log_figures
from importer.engines.log_figures import EffectiveSettings
from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason
from importer.validation.client import Client, Exchange
from importer.validation.errors import (
    AnswerFailure,
    ExchangeError,
    ReplyError,
    RequestRefused,
    TemplateRefusedError,
    attempt,
)
from importer.validation.evidence_sources import Background
from importer.validation.expectations import Expectations
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    Tried,
    holding,
    named,
)
from importer.validation.prompts import GREETING, Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply

Way = Literal["whole", "streamed", "with-tokens", "raw"]
TOKENS = {"logprobs": True, "top_logprobs": 1}
EXTRA: Mapping[Way, Mapping[str, object]] = {
    "whole": {},
    "streamed": {"stream": True, "stream_options": {"include_usage": True}},
    "with-tokens": TOKENS,
}
# Markers stay in the text, and nothing is put in front of what the template wrote. mlx-lm reads neither.
VERBATIM = {"skip_special_tokens": False, "add_special_tokens": False}
LIMITS = ("max_tokens", "stop")  # fields of a prompt's request that mean the same without a chat
TRIALS = 3  # a model may decline once by chance
STEADY: Mapping[str, Any] = {"temperature": 0}  # answers without chance
SIDE_BY_SIDE = 8  # probes at a time; engines batch, and probes of time, load or memory run alone
WAYS = {"whole": False, "streamed": True}


@dataclass(slots=True)
class _Answer:
    """A first answer to a prompt or its failure, with its exchanges."""

    prompt: Prompt
    lock: Lock = field(default_factory=Lock)
    result: Reply | ExchangeError | TemplateRefusedError | None = None
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(slots=True)
class Shared:
    """The first answer to each prompt: requested once, read by every probe that needs it.

    ``written``   what the weights write greedily behind a text, up to a number of tokens.
    ``unhelped``  what was seen to fail with these answers, too.
    ``leaking``   prompts of the run with markup in an answer.
    """

    answers: dict[tuple[str, Way], _Answer] = field(default_factory=dict)
    written: dict[tuple[str, int], str] = field(default_factory=dict)
    unhelped: list[tuple[StrEnum, object]] = field(default_factory=list)
    leaking: dict[str, Prompt] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def answer(self, prompt: Prompt, way: Way) -> _Answer:
        """Return the slot for the answer to the prompt of that name."""
        with self.lock:
            return self.answers.setdefault((prompt.name, way), _Answer(prompt))

    def ended(self) -> list[tuple[Prompt, Reply]]:
        """Return the answers to chats that came to an end of their own."""
        with self.lock:
            known = [(key[1], one.prompt, one.result) for key, one in self.answers.items()]
        return [
            (p, r)
            for way, p, r in known
            if way in WAYS and isinstance(r, Reply) and r.finish_reason != "length"
        ]


@frozen
class Judgement:
    """A judge's verdict on the answers to a prompt; the judge may be asked again about other readings.

    ``reply``  the answer that was judged, where it was one.
    """

    prompt: Prompt
    judge: Callable[[Reply], Outcome]
    stream: bool
    outcome: Outcome
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class Context(Background):
    """The context of one probe: what is known beside the API, the API, and what was asked.

    ``log``           the exchanges that become its evidence.
    ``judged_wrong``  the verdicts of this probe that are no pass.
    ``journal``       the engine's log from the start of the probe on.
    ``thorough``      whether abilities are asked until their intervals are narrow.
    """

    promise: Expectations
    model: str
    client: Client
    shared: Shared = field(default_factory=Shared)
    log: list[Exchange] = field(default_factory=list)
    judged_wrong: list[Judgement] = field(default_factory=list)
    thorough: bool = False

    @classmethod
    def of(
        cls, promise: Expectations, model: str, client: Client, known: Background, *, thorough: bool = False
    ) -> Context:
        """Return the context of a run, with all that is known beside the API until the run is over."""
        beside = {each.name: getattr(known, each.name) for each in fields(known)}
        if known.offline is not None:
            known.offline.deadline = client.deadline
        if (ask := known.tokens) is not None:
            beside["tokens"] = lambda texts, drawn=(): ask(texts, drawn) if client.over is None else None
        return cls(promise, model, client, thorough=thorough, **beside)

    def apart(self) -> Context:
        """Return a copy for another probe, with an empty log and the journal from its present end."""
        journal = self.journal.from_here() if self.journal else None
        return replace(self, log=[], judged_wrong=[], journal=journal)

    def ask(self, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
        """Send a prompt and return the reply, with only those sampling values that the engine cannot be
        started with.

        ``extra`` are further fields of the request; ``None`` leaves out a field.
        """
        changed = replace(prompt, extra={**prompt.extra, **extra}) if extra else prompt
        return self._seen(self._ask(changed, "streamed" if stream else "whole", self.log))

    def raw(self, prompt: Prompt, **extra: Any) -> str | None:
        """Return the text that the model writes after the rendered prompt, without a parser; ``None`` where
        it is unknown.

        Requested once for each prompt, unless there are ``extra`` fields of the request. Markers stay in the
        text where the engine shows them.
        """
        if self.render is None or self.promise.lacks("completions"):
            return None
        try:
            reply = self._complete(prompt, extra, self.log) if extra else self._first(prompt, "raw")
        except (ExchangeError, TemplateRefusedError):
            return None
        # mlx-lm cuts thoughts and calls out of a completion, too; its tokens still show them.
        return reply.written if holds(reply.written, reply.content) else reply.content

    def behind(self, text: str, log: list[Exchange] | None = None, /, **sent: Any) -> Reply:
        """Return what the weights write behind a text, with its tokens where the engine shows them; raises
        ExchangeError.
        """
        tokens = {} if self.promise.lacks("logprobs") else TOKENS
        body = {"model": self.model, "prompt": text, **VERBATIM, **tokens, **sent}
        return self.client.completion(body, self.log if log is None else log)

    def first(self, prompt: Prompt, *, stream: bool = False) -> Reply:
        """Return the first answer to this prompt, shared by all probes; raises the failure of its request."""
        return self._first(prompt, "streamed" if stream else "whole")

    @property
    def without_template(self) -> bool:
        """Return whether the files of the model are at hand without a chat template."""
        return self.render is not None and not self.render.digest

    def asked_last(self) -> Prompt | None:
        """Return the last chat that this probe sent, as a prompt."""
        requests = [e.request for e in self.log if e.request is not None and "messages" in e.request]
        if not requests:
            return None
        request = requests[-1]
        messages, tools = tuple(listed(request["messages"])), tuple(listed(request.get("tools")))
        return Prompt("asked last", messages, tools, switches=mapping(request.get("chat_template_kwargs")))

    def breaks(self, prompt: Prompt) -> Reason | None:
        """Return the error of a template that breaks over the prompt without a deliberate refusal."""
        try:
            if self.render is not None:
                self.render(prompt)
        except TemplateRefusedError as error:
            return error.reason if error.broke else None
        return None

    def refused(self, refused: RequestRefused, prompt: Prompt) -> Outcome:
        """Return the outcome of a refusal: clean below status 500, while an ordinary chat is answered.

        Raises ``refused`` where the template breaks, requests are too many, or a gateway lost this one: that
        is no refusal of this request alone.
        """
        if refused.limited or refused.lost or self.breaks(prompt) is not None:
            raise refused
        self.first(GREETING)
        clean = replace(holding("refused cleanly"), notes=(refused.reason,))
        return refused.outcome() if refused.broke else clean

    def look(self, prompt: Prompt) -> Reply | None:
        """Return a whole answer with the text of the model (``Reply.written``); ``None`` where that is
        unknown.

        The text comes from the log-probabilities. Where an engine has none, or shows other tokens than it
        drew, it is the text after the rendered prompt, if the answer is a part of that.
        """
        way: Way = "whole" if self.promise.lacks("logprobs") else "with-tokens"
        reply = attempt(partial(self._first, prompt, way))
        if reply is None or holds(reply.written, reply.content):
            return reply
        behind = self.raw(prompt) or ""
        return replace(reply, logprobs=(), behind=behind) if holds(behind, reply.content) else None

    def shown(self, prompt: Prompt) -> str:
        """Return the tokens in the log-probabilities of an answer; the engine may have drawn others."""
        shows = self.promise.lacks("logprobs") is None
        reply = attempt(partial(self._first, prompt, "with-tokens")) if shows else None
        return "" if reply is None else reply.written

    def counted(self, prompt: Prompt) -> tuple[int, int] | None:
        """Return the engine's count of prompt tokens: of the chat, and of the text that the template
        renders.

        ``None`` where either is unknown.
        """
        if self.render is None or self.promise.lacks("completions"):
            return None
        try:
            rendered = self._complete(prompt, {"max_tokens": 1}, self.log).usage.prompt
            chat = self.first(prompt).usage.prompt
        except (ExchangeError, TemplateRefusedError):
            return None
        return None if chat is None or rendered is None else (chat, rendered)

    def rendered(self, prompt: Prompt) -> str | None:
        """Return the prompt as the template renders it; ``None`` where it is unknown, or the template
        refuses.
        """
        try:
            return self.render(prompt) if self.render is not None else None
        except TemplateRefusedError:
            return None

    def judged(self, prompt: Prompt, judge: Callable[[Reply], Outcome], *, stream: bool = False) -> Outcome:
        """Return the first conclusive judgement in ``TRIALS`` answers, or of one that chance has no part in.

        Where there is none, one more answer is judged beside the text of the model. That separates a model
        that does not call or think from a parser that does not read it.
        """
        trials = 1 if self.promise.greedy else TRIALS  # a repetition shows what chance has a part in
        for trial in range(1, trials + 1):
            reply = self.first(prompt, stream=stream) if trial == 1 else self.ask(prompt, stream=stream)
            outcome = judge(reply)
            if not isinstance(outcome, Inconclusive):
                conclusive = replace(outcome, trials=trial, agreed=1)
                return self.noted(prompt, judge, conclusive, stream=stream, reply=reply)
        seen = self.look(prompt)
        closer: Outcome = outcome if seen is None else judge(seen)
        if seen is not None and seen.tool_calls and not isinstance(closer, Fail):
            closer = judge(replace(seen, logprobs=(), behind=self._alone(prompt, seen)))
        verdict = replace(closer if isinstance(closer, Fail) else outcome, trials=trials, agreed=trials)
        return self.noted(prompt, judge, verdict, stream=stream)

    def noted(
        self,
        prompt: Prompt,
        judge: Callable[[Reply], Outcome],
        outcome: Outcome,
        *,
        stream: bool = False,
        reply: Reply | None = None,
    ) -> Outcome:
        """Return the verdict; one that is no pass is kept with its judge, for the stages of the exchange."""
        if isinstance(outcome, Fail | Inconclusive):
            self.judged_wrong.append(Judgement(prompt, judge, stream, outcome, reply))
        return outcome

    def running(self) -> EffectiveSettings:
        """Return the settings that the engine reports in its log and at ``/health``."""
        health = attempt(partial(self.client.get, "/health", self.log)) or b""
        return log_figures.read_settings(self.journal.opening() if self.journal else "", health)

    def _alone(self, prompt: Prompt, seen: Reply) -> str:
        """Return the text of the model without the grammar of a parser, if it calls the same tools."""
        text = self.raw(prompt) or ""
        return text if all(call.name in text for call in seen.tool_calls) else seen.written

    def _first(self, prompt: Prompt, way: Way) -> Reply:
        answer = self.shared.answer(prompt, way)
        with answer.lock:
            if answer.result is None:
                try:
                    if way == "raw":
                        answer.result = self._complete(prompt, {}, answer.exchanges)
                    else:
                        answer.result = self._ask(prompt, way, answer.exchanges)
                except ExchangeError as error:
                    answer.result = error.bare()
                except TemplateRefusedError as error:
                    answer.result = error
        self.log.extend(answer.exchanges)
        if isinstance(answer.result, Exception):
            raise answer.result
        return answer.result if way == "raw" else self._seen(answer.result)

    def _seen(self, reply: Reply) -> Reply:
        """Return the answer; without a count of its prompt where equal counts say nothing."""
        if self.promise.counted is not False:
            return reply
        return replace(reply, usage=replace(reply.usage, prompt=None))

    def _ask(self, prompt: Prompt, way: Way, log: list[Exchange]) -> Reply:
        body: dict[str, object] = {"model": self.model, "messages": list(prompt.messages)}
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        if prompt.switches:
            body["chat_template_kwargs"] = dict(prompt.switches)
        body |= {
            "max_tokens": self.promise.limit(prompt.tokens, tools=bool(prompt.tools)),
            **EXTRA[way],
            **self.promise.client_sampling,
        }
        body |= prompt.extra
        reply = self.client.chat({k: v for k, v in body.items() if v is not None}, log)
        if self.promise.counted and reply.nothing and not body.get("stream"):
            raise ReplyError(Reason(AnswerFailure.NOTHING))
        return reply

    def _complete(self, prompt: Prompt, extra: Mapping[str, object], log: list[Exchange]) -> Reply:
        """Complete the rendered prompt; a beginning that the engine adds by itself is not sent twice."""
        text = self.render(prompt) if self.render else None
        if text is None:
            raise TemplateRefusedError
        most = self.promise.limit(prompt.tokens, tools=bool(prompt.tools))
        sent = {**self.promise.client_sampling, **{k: v for k, v in prompt.extra.items() if k in LIMITS}}
        sent = {"max_tokens": most, **sent, **extra}
        bos = self.render.bos if self.render else ""
        reply = self.behind(text, log, **sent)
        if bos and text.startswith(bos) and self._counts_one_more(reply, prompt):
            reply = self.behind(text.removeprefix(bos), log, **sent)
        return reply

    def _counts_one_more(self, reply: Reply, prompt: Prompt) -> bool:
        """Return whether the engine counts one token more than in the chat of the same prompt."""
        chat = self._first(prompt, "whole").usage.prompt
        return chat is not None and reply.usage.prompt == chat + 1


def holds(written: str, shown: str) -> bool:
    """Return whether ``shown`` can be a part of ``written``: its words occur there in the same order."""
    if not written.strip():
        return False
    position = 0
    for word in shown.split():
        position = written.find(word, position) + len(word)
        if position < len(word):
            return False
    return True


def ask_both_ways(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome], **extra: Any) -> Outcome:
    """Judge one whole and one streamed answer to a request with ``extra`` fields.

    Where the stream alone is wrong, whole answers are what helps.
    """
    whole, streamed = (judge(ctx.ask(prompt, stream=stream, **extra)) for stream in WAYS.values())
    if isinstance(streamed, Fail) and isinstance(whole, Pass) and streamed.attribution == "engine":
        helps = Reason(Remedy.WHOLE_ANSWERS, change=streamed.reason)
        streamed = replace(streamed, remedy=helps, tried=Tried(1, 1))
    return together(dict(zip(WAYS, (whole, streamed), strict=True)))


def together(parts: Mapping[str, Outcome | None]) -> Outcome:
    """Return the worst of the outcomes, under its name; equal reasons of passes appear once.

    ``None`` is a comparison without a fault.
    """
    outcomes = {name: outcome for name, outcome in parts.items() if outcome is not None}
    if len(outcomes) < len(parts):
        alike = tuple(name for name in parts if name not in outcomes)
        outcomes["others"] = holding(f"{', '.join(alike)}: as it should be", len(alike))
    trials = sum(outcome.trials for outcome in outcomes.values())
    for kind in (Fail, Inconclusive):
        for name, outcome in outcomes.items():
            if isinstance(outcome, kind):
                return named(outcome, name)
    passed = [outcome for outcome in outcomes.values() if isinstance(outcome, Pass)]
    reasons = [
        reason for outcome in passed or outcomes.values() for reason in (outcome.reason, *outcome.notes)
    ]
    first, *notes = dict.fromkeys(reasons)
    return (
        Pass(first, trials=trials, notes=tuple(notes)) if passed else NotApplicable(first, notes=tuple(notes))
    )


def in_turn(parts: Mapping[str, Callable[[], Outcome]]) -> Outcome:
    """Return the outcomes of parts together; none is asked behind the first failure.

    A part in which the model wrote nothing to compare leaves the verdict to the others.
    """
    outcomes: dict[str, Outcome] = {}
    for name, part in parts.items():
        outcomes[name] = part()
        if isinstance(outcomes[name], Fail):
            break
    return together(
        {k: o for k, o in outcomes.items() if o.attribution != "model" or isinstance(o, Fail)} or outcomes
    )


def tally(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Return the worst fault of several questions, else how often the model did what they ask.

    What it did not do while it did other things is a note: a figure of its ability.
    """
    model = (None, "model")
    faults = {k: o for k, o in outcomes.items() if isinstance(o, Fail) or o.attribution not in model}
    if faults:
        return together(faults)
    trials = sum(outcome.trials for outcome in outcomes.values())
    if not any(isinstance(outcome, Pass) for outcome in outcomes.values()):
        worst = together(outcomes)
        return replace(worst, trials=trials, agreed=None) if isinstance(worst, Inconclusive) else worst
    passed = together({k: o for k, o in outcomes.items() if isinstance(o, Pass)})
    missing = tuple(o.reason for o in outcomes.values() if isinstance(o, Inconclusive))
    did = sum(outcome.agreeing for outcome in outcomes.values() if isinstance(outcome, Pass))
    return replace(passed, trials=trials, agreed=did, notes=(*passed.notes, *missing))
