"""What a probe has in its hands: the promise, the engine's API, and answers that probes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal, Protocol

from importer.engines import reported
from importer.engines.reported import EffectiveSettings
from importer.engines.tokenizer import Ask
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation.client import Client, Exchange
from importer.validation.errors import ExchangeError, RequestRefused, TemplateRefusedError
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.journal import Journal
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, named
from importer.validation.prompts import GREETING, Prompt
from importer.validation.reply import Reply

Way = Literal["whole", "streamed", "with-tokens", "raw"]
TOKENS = {"logprobs": True, "top_logprobs": 1}
EXTRA: Mapping[Way, Mapping[str, Any]] = {
    "whole": {},
    "streamed": {"stream": True, "stream_options": {"include_usage": True}},
    "with-tokens": TOKENS,
}
# Markers stay in the text, and nothing is put in front of what the template wrote. mlx-lm reads neither.
VERBATIM = {"skip_special_tokens": False, "add_special_tokens": False}
LIMITS = ("max_tokens", "stop")  # fields of a prompt's request that mean the same without a chat
TRIALS = 3  # a model may decline once; three times says more


class Render(Protocol):
    """Writes prompts as the served model's own template does."""

    @property
    def bos(self) -> str:
        """Return the token that begins a text and that an engine may put there by itself; may be empty."""

    @property
    def stops(self) -> tuple[str, ...]:
        """Return tokens at which an answer ends, as the repository names them."""

    @property
    def digest(self) -> str:
        """Of the template, as a proof names it."""

    @property
    def claimed(self) -> str | None:
        """Return the tool parser that the repository names for engines that infer theirs."""

    @property
    def files(self) -> Mapping[str, str]:
        """Return hashes of the files that the engine reads beside the weights, by name."""

    @property
    def others(self) -> tuple[str, ...]:
        """Return files that hold another template than the one that is rendered."""

    def knows(self, variable: str, /) -> bool:
        """Return whether the template speaks of a variable at all."""

    def at(self, prompt: Prompt, later: float, /) -> str | None:
        """As when called, so many seconds later in the day."""

    def __call__(self, prompt: Prompt, /) -> str | None:
        """Return the prompt's text, ``None`` where nobody can tell; raises TemplateRefusedError."""


@dataclass(slots=True)
class _Answer:
    """A first answer, or why there was none, and the exchange it came by."""

    lock: Lock = field(default_factory=Lock)
    result: Reply | ExchangeError | TemplateRefusedError | None = None
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(slots=True)
class Shared:
    """The first answer to each prompt: asked once, read by every probe that wants it."""

    answers: dict[tuple[str, Way], _Answer] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def answer(self, name: str, way: Way) -> _Answer:
        """Return the place for the answer to the prompt of that name."""
        with self.lock:
            return self.answers.setdefault((name, way), _Answer())


@dataclass(frozen=True, slots=True)
class Context:
    """For one probe.

    ``log``      collects the exchanges that become its evidence.
    ``proof``    which parsers read the model's template, where that was asked.
    ``journal``  what the engine says in its log meanwhile, where it can be read.
    ``memory``   gives the bytes that its processes hold, where it runs on this machine.
    ``told``     the words that it was started with, where it was started here.
    ``tokens``   asks the tokenizer beside the weights, where it lies on this machine.
    ``fit``      gives what was predicted of its memory beside what it reports, as ``fit.compare`` does.
    ``files``    the hashes of ``render.files`` at the import; empty where nobody wrote them down.
    """

    promise: Expectations
    model: str
    client: Client
    shared: Shared = field(default_factory=Shared)
    log: list[Exchange] = field(default_factory=list)
    render: Render | None = None
    proof: Proof | None = None
    journal: Journal | None = None
    memory: Callable[[], int | None] | None = None
    fit: Callable[[], Mapping[str, Any]] | None = None
    told: tuple[str, ...] = ()
    tokens: Ask | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def apart(self) -> Context:
        """Return the same for another probe: exchanges and the journal begin here."""
        return replace(self, log=[], journal=self.journal.from_here() if self.journal else None)

    def ask(self, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
        """Ask now. No sampling value is sent but those that the engine could not be started with.

        ``extra`` are further fields of the request; ``None`` leaves out one that is sent otherwise.
        """
        asked = replace(prompt, extra={**prompt.extra, **extra}) if extra else prompt
        return self._ask(asked, "streamed" if stream else "whole", self.log)

    def raw(self, prompt: Prompt, **extra: Any) -> str | None:
        """Return what the model writes after the rendered prompt, no parser between; ``None`` where nobody
        can tell.

        Asked once for each prompt, unless ``extra`` fields of the request are given. Markers stay in the text
        where the engine shows them.
        """
        if self.render is None or self.promise.lacks("completions"):
            return None
        try:
            reply = self._complete(prompt, extra, self.log) if extra else self._first(prompt, "raw")
        except (ExchangeError, TemplateRefusedError):
            return None
        # mlx-lm cuts thoughts and calls out of a completion, too; its tokens still show them.
        return reply.written if holds(reply.written, reply.content) else reply.content

    def first(self, prompt: Prompt, *, stream: bool = False) -> Reply:
        """Return the first answer to this prompt, whichever probe asked for it; raises what asking raised."""
        return self._first(prompt, "streamed" if stream else "whole")

    def breaks(self, prompt: Prompt) -> Reason | None:
        """Return what the template raises over the prompt where it does not mean to refuse it."""
        try:
            if self.render is not None:
                self.render(prompt)
        except TemplateRefusedError as error:
            return error.reason if error.broke else None
        return None

    def refused(self, refused: RequestRefused, prompt: Prompt) -> Outcome:
        """Return a clean refusal is of this request alone: below 500, while an ordinary chat is answered.

        It is the template's in so many words: one that breaks refuses nothing.
        """
        if self.breaks(prompt) is not None:
            raise refused
        self.first(GREETING)
        return (
            refused.outcome()
            if refused.broke
            else Pass(Reason(CommonReason.REFUSED_CLEANLY, error=refused.reason))
        )

    def look(self, prompt: Prompt) -> Reply | None:
        """Return a whole answer beside what the model wrote (``Reply.written``); ``None`` where nobody can
        tell.

        That is what its log-probabilities show; where an engine has none, or shows other tokens than those
        it drew, it is what the model writes after the rendered prompt, if the answer is a part of that.
        """
        try:
            reply = self._first(prompt, "whole" if self.promise.lacks("logprobs") else "with-tokens")
        except ExchangeError:
            return None
        if holds(reply.written, reply.content):
            return reply
        behind = self.raw(prompt) or ""
        return replace(reply, logprobs=(), behind=behind) if holds(behind, reply.content) else None

    def shown(self, prompt: Prompt) -> str:
        """Return the tokens of an answer as its log-probabilities name them, which need not be those it
        drew.
        """
        try:
            return "" if self.promise.lacks("logprobs") else self._first(prompt, "with-tokens").written
        except ExchangeError:
            return ""

    def counted(self, prompt: Prompt) -> tuple[int, int] | None:
        """Prompt tokens as the engine counts them: of the chat, and of the text that the template renders.

        ``None`` where either is not told.
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
        """Return the prompt as the template writes it; ``None`` where nobody can tell, or the template
        refuses.
        """
        try:
            return self.render(prompt) if self.render is not None else None
        except TemplateRefusedError:
            return None

    def judged(self, prompt: Prompt, judge: Callable[[Reply], Outcome], *, stream: bool = False) -> Outcome:
        """Return the first conclusive judgement in ``TRIALS`` answers.

        Where there is none, one more answer is judged beside what the model wrote, to tell a model that does
        not from a parser that does not see it.
        """
        for trial in range(1, TRIALS + 1):
            outcome = judge(
                self.first(prompt, stream=stream) if trial == 1 else self.ask(prompt, stream=stream)
            )
            if not isinstance(outcome, Inconclusive):
                return replace(outcome, trials=trial, agreed=1)
        seen = self.look(prompt)
        closer = outcome if seen is None else judge(seen)
        if seen is not None and seen.tool_calls and not isinstance(closer, Fail):
            closer = judge(replace(seen, logprobs=(), behind=self._alone(prompt, seen)))
        return replace(closer if isinstance(closer, Fail) else outcome, trials=TRIALS, agreed=TRIALS)

    def running(self) -> EffectiveSettings:
        """Return what the engine says of its own settings."""
        try:
            health = self.client.get("/health", self.log)
        except ExchangeError:
            health = b""
        return reported.read_settings(self.journal.opening() if self.journal else "", health)

    def _alone(self, prompt: Prompt, seen: Reply) -> str:
        """Return what the model writes where nothing holds it to a parser's format, if it calls the same
        tools.
        """
        text = self.raw(prompt) or ""
        return text if all(call.name in text for call in seen.tool_calls) else seen.written

    def _first(self, prompt: Prompt, way: Way) -> Reply:
        answer = self.shared.answer(prompt.name, way)
        with answer.lock:
            if answer.result is None:
                try:
                    if way == "raw":
                        answer.result = self._complete(prompt, {}, answer.exchanges)
                    else:
                        answer.result = self._ask(prompt, way, answer.exchanges)
                except (ExchangeError, TemplateRefusedError) as error:
                    answer.result = error
        self.log.extend(answer.exchanges)
        if isinstance(answer.result, Exception):
            raise answer.result
        return answer.result

    def _ask(self, prompt: Prompt, way: Way, log: list[Exchange]) -> Reply:
        body: dict[str, Any] = {"model": self.model, "messages": list(prompt.messages)}
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        if prompt.switches:
            body["chat_template_kwargs"] = dict(prompt.switches)
        body |= {"max_tokens": self.promise.max_tokens, **EXTRA[way], **self.promise.client_sampling}
        body |= prompt.extra
        return self.client.chat({k: v for k, v in body.items() if v is not None}, log)

    def _complete(self, prompt: Prompt, extra: Mapping[str, Any], log: list[Exchange]) -> Reply:
        """Go on from the rendered prompt; a beginning that the engine adds by itself is not sent twice."""
        text = self.render(prompt) if self.render else None
        if text is None:
            raise TemplateRefusedError
        body: dict[str, Any] = {"model": self.model, "max_tokens": self.promise.max_tokens, **VERBATIM}
        if not self.promise.lacks("logprobs"):
            body |= TOKENS
        body |= {**self.promise.client_sampling, **{k: v for k, v in prompt.extra.items() if k in LIMITS}}
        bos = self.render.bos if self.render else ""
        reply = self.client.completion({**body, **extra, "prompt": text}, log)
        if bos and text.startswith(bos) and self._counts_one_more(reply, prompt):
            reply = self.client.completion({**body, **extra, "prompt": text.removeprefix(bos)}, log)
        return reply

    def _counts_one_more(self, reply: Reply, prompt: Prompt) -> bool:
        """Return whether the engine saw one token more than in the chat of the same prompt."""
        chat = self._first(prompt, "whole").usage.prompt
        return chat is not None and reply.usage.prompt == chat + 1


def holds(written: str, shown: str) -> bool:
    """Return whether ``shown`` can be what is left of ``written``: its words occur there in the same
    order.
    """
    if not written.strip():
        return False
    at = 0
    for word in shown.split():
        at = written.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


WAYS = {"whole": False, "streamed": True}


def asked(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome], **extra: Any) -> Outcome:
    """Ask once whole and once streamed, with ``extra`` fields; both answers are judged."""
    return together({way: judge(ctx.ask(prompt, stream=s, **extra)) for way, s in WAYS.items()})


def together(found: Mapping[str, Outcome]) -> Outcome:
    """Return the worst of what was found, under its name; what passes everywhere is told once."""
    trials = sum(outcome.trials for outcome in found.values())
    for kind in (Fail, Inconclusive):
        for name, outcome in found.items():
            if isinstance(outcome, kind):
                return named(outcome, name)
    passed = [outcome for outcome in found.values() if isinstance(outcome, Pass)]
    told = [reason for outcome in passed or found.values() for reason in (outcome.reason, *outcome.notes)]
    first, *notes = dict.fromkeys(told)
    return Pass(first, trials, notes=tuple(notes)) if passed else NotApplicable(first, notes=tuple(notes))
