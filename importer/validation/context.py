"""What a probe has in its hands: the promise, the engine's API, and answers that probes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal

from importer.validation.client import Client, Exchange
from importer.validation.errors import ExchangeError
from importer.validation.outcome import Fail, Inconclusive, Outcome
from importer.validation.promise import Promise
from importer.validation.prompts import Prompt
from importer.validation.reply import Reply

Render = Callable[[Prompt], str | None]  # a prompt as the model's own template writes it
Way = Literal["whole", "streamed", "with-tokens"]
EXTRA: Mapping[Way, Mapping[str, Any]] = {
    "whole": {},
    "streamed": {"stream": True, "stream_options": {"include_usage": True}},
    "with-tokens": {"logprobs": True, "top_logprobs": 1},
}
TRIALS = 3  # a model may decline once; three times says more


@dataclass(slots=True)
class _Answer:
    """A first answer, or why there was none, and the exchange it came by."""

    lock: Lock = field(default_factory=Lock)
    result: Reply | ExchangeError | None = None
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(slots=True)
class Shared:
    """The first answer to each prompt: asked once, read by every probe that wants it."""

    answers: dict[tuple[str, Way], _Answer] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def answer(self, name: str, way: Way) -> _Answer:
        """The place for the answer to the prompt of that name."""
        with self.lock:
            return self.answers.setdefault((name, way), _Answer())


@dataclass(frozen=True, slots=True)
class Context:
    """For one probe. ``log`` collects the exchanges that become its evidence."""

    promise: Promise
    model: str
    client: Client
    shared: Shared = field(default_factory=Shared)
    log: list[Exchange] = field(default_factory=list)
    render: Render | None = None

    def ask(self, prompt: Prompt, *, stream: bool = False, **extra: Any) -> Reply:
        """Ask now. No sampling value is sent but those that the engine could not be started with.

        ``extra`` are further fields of the request.
        """
        asked = replace(prompt, extra={**prompt.extra, **extra}) if extra else prompt
        return self._ask(asked, "streamed" if stream else "whole", self.log)

    def raw(self, prompt: Prompt, **extra: Any) -> str | None:
        """What the model writes after the rendered prompt, no parser between; ``None`` where nobody can tell.

        Markers stay in the text where the engine leaves them there.
        """
        if self.render is None or self.promise.lacks("completions"):
            return None
        text = self.render(prompt)
        if text is None:
            return None
        body = {"model": self.model, "prompt": text, "max_tokens": self.promise.max_tokens}
        body |= {"skip_special_tokens": False, "add_special_tokens": False, **self.promise.client_sampling}
        try:
            return self.client.complete({**body, **extra}, self.log)
        except ExchangeError:
            return None

    def first(self, prompt: Prompt, *, stream: bool = False) -> Reply:
        """The first answer to this prompt, whichever probe asked for it; raises what asking raised."""
        return self._first(prompt, "streamed" if stream else "whole")

    def look(self, prompt: Prompt) -> Reply | None:
        """A whole answer beside what the model wrote (``Reply.written``), where the engine shows it."""
        try:
            reply = self._first(prompt, "with-tokens")
        except ExchangeError:
            return None
        return reply if reply.written else None

    def judged(self, prompt: Prompt, judge: Callable[[Reply], Outcome], *, stream: bool = False) -> Outcome:
        """The first conclusive judgement in ``TRIALS`` answers.

        Where there is none, one more answer is judged beside what the model wrote, to tell a model that does
        not from a parser that does not see it.
        """
        for trial in range(1, TRIALS + 1):
            outcome = judge(
                self.first(prompt, stream=stream) if trial == 1 else self.ask(prompt, stream=stream)
            )
            if not isinstance(outcome, Inconclusive):
                return replace(outcome, trials=trial)
        seen = self.look(prompt)
        closer = outcome if seen is None else judge(seen)
        return replace(closer if isinstance(closer, Fail) else outcome, trials=TRIALS)

    def _first(self, prompt: Prompt, way: Way) -> Reply:
        answer = self.shared.answer(prompt.name, way)
        with answer.lock:
            if answer.result is None:
                try:
                    answer.result = self._ask(prompt, way, answer.exchanges)
                except ExchangeError as error:
                    answer.result = error
        self.log.extend(answer.exchanges)
        if isinstance(answer.result, ExchangeError):
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
        return self.client.chat(body, log)
