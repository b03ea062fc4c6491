"""The engine's own parsers on a text that its model has written, without the engine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.parsers import HF
from importer.engines.parsers import ParserQuestion, ParserWorker, Reading, Replay, Tokens
from importer.errors import EngineError
from importer.frozen import frozen
from importer.proof.template_proof import parser_as_data, with_template
from importer.sandbox.task import Closing
from importer.validation.prompts import Prompt, call_id
from importer.validation.reply import Reply, ToolCall


@frozen
class Drawn:
    """A text of the model with what stood before it.

    ``prompt``  the rendered prompt. ``text`` without the tokens that end a turn.
    """

    prompt: str
    text: str
    of: Prompt

    @property
    def sample(self) -> Sample:
        """Return it in the form of the parsers' worker."""
        return Sample(self.of.name, self.prompt, self.text, tools=self.of.tools, kwargs=self.of.switches)


class OfflineParsers(Closing):
    """The parsers of an engine's environment; each text is read once by each pair. Safe for threads.

    ``deadline``  of the run, on the clock of ``time.monotonic``: no reading begins after it.
    """

    deadline = math.inf

    def __init__(self, worker: ParserWorker, tokens: Tokens, *, infers: bool) -> None:
        """``infers``: the server takes no names, and finds its parsers in the model's files."""
        self._worker, self._tokens, self._infers = worker, tokens, infers
        self._lock = Lock()
        self._inferred: ParserQuestion | None = None
        self._readings: dict[tuple[str, str, ParserQuestion], Reading] = {}

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def in_use(self, named: ParserQuestion) -> ParserQuestion:
        """Return the parsers that the server runs: those that are named, or that it infers."""
        if not self._infers:
            return named
        with self._lock:
            if self._inferred is None:
                try:
                    self._inferred = self._worker.infer(self._tokens)
                except EngineError:
                    return named
            return self._inferred

    def read(self, drawn: Drawn, pair: ParserQuestion) -> Reading | None:
        """Return the reading of a whole answer; ``None`` where the worker has failed."""
        key = (drawn.prompt, drawn.text, pair)
        with self._lock:
            if key not in self._readings and time.monotonic() >= self.deadline:
                return None
            if key not in self._readings:
                try:
                    self._readings[key] = self._worker.read(self._tokens, [drawn.sample], [pair])[pair][0]
                except EngineError:
                    return None
            return self._readings[key]

    def tool_parsers(self, named: ParserQuestion) -> list[ParserQuestion]:
        """Return every tool parser of the engine, ``named`` first; none where the worker has failed."""
        try:
            names = [p.name for p in self._worker.list() if p.kind == "tool"]
        except EngineError:
            return []
        both = {HF: HF if named.reasoning else None}  # stands for both kinds, or for neither
        others = (ParserQuestion(name, both.get(name, named.reasoning)) for name in names)
        return [*dict.fromkeys((named, *others))]

    def read_all(
        self, drawn: Sequence[Drawn], pairs: Sequence[ParserQuestion], analysis: TemplateAnalysis, text: str
    ) -> dict[ParserQuestion, tuple[Reading, ...]]:
        """Return the readings of answers to another template of this text; none where the worker has failed.

        The parser ``hf`` reads by what is derived from ``analysis``.
        """
        samples = [one.sample for one in drawn]
        tokens = with_template(replace(self._tokens, chat_template=text), None)
        others, derived = [p for p in pairs if p.tool != HF], [p for p in pairs if p.tool == HF]
        with self._lock:
            try:
                found = self._worker.read(tokens, samples, others)
                parsers = self._worker.list() if derived else ()
                data = parser_as_data(analysis, tokens, parsers, self._worker)
                if data is not None:
                    found |= self._worker.read(with_template(tokens, data.template), samples, derived)
            except EngineError:
                return {}
        return found

    def replay(self, drawn: Drawn, pair: ParserQuestion) -> Replay | None:
        """Return the readings of the answer in pieces; ``None`` where the worker has failed."""
        with self._lock:
            if time.monotonic() >= self.deadline:
                return None
            try:
                return self._worker.stream(self._tokens, [drawn.sample], [pair])[pair][0]
            except EngineError:
                return None


def as_reply(reading: Reading, like: Reply) -> Reply:
    """Return a reading as the answer of a faultless server: it ends as ``like`` does, calls aside."""
    calls = tuple(ToolCall(n, call_id(n), call.name, call.arguments) for n, call in enumerate(reading.calls))
    ends = "tool_calls" if calls else "stop"
    return replace(
        like,
        content=reading.content or "",
        reasoning=reading.reasoning or "",
        tool_calls=calls,
        finish_reason="length" if like.finish_reason == "length" else ends,
    )
