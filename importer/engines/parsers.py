"""An engine's parsers, run without weights by a worker in the engine's environment.

``ParserWorker`` starts ``parser_worker`` with that environment's Python, keeps it warm and restarts it when
a parser kills or hangs it: the parser at fault gets an error as its reading, the others run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, TypeVar

from importer import backends
from importer.chat_template.samples import Sample, Tool
from importer.decisions.decision import RUST, Frontend
from importer.engines.deaths import Accident, ParserFailure
from importer.engines.install import sources_of
from importer.engines.registries import EngineParser, Registry, load
from importer.engines.tokens import Tokens
from importer.engines.worker_process import Budget, JsonLinesWorker, RefusedError, SpentError, WorkerLostError
from importer.errors import EngineError
from importer.frozen import frozen
from importer.launcher import Purpose, isolated
from importer.reasons import Reason, ReasonKind
from importer.sandbox.task import Closing

SCRIPT = Path(__file__).with_name("parser_worker") / "__main__.py"
START_COST = 5.0  # seconds of processors that a further start of a lost worker takes
OF_ENGINE = ("hello", "list")  # questions without a text; the first list imports all parsers
START_SECONDS = 180.0  # importing vLLM takes 5 s from a warm disk, 15 s from a cold one
GRACE_SECONDS = 10.0  # beyond the limits that the worker keeps itself
MAX_STARTS = 6  # within one question
MANY = 8  # parsers; one error of so many is that of the way in which they are asked
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CONFIGURE_LOGGING": "0",
    "DO_NOT_TRACK": "1",
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # it would build an extension for PyTorch
    "MALLOC_ARENA_MAX": "2",  # or each thread reserves 64 MiB of the address space, that the worker bounds
}


@frozen
class ParserQuestion:
    """The parsers to read with; ``None`` is none of that kind, for MLX's reasoning the inferred one."""

    tool: str | None = None
    reasoning: str | None = None


@frozen
class ReadCall:
    """A call as the engine would return it; ``arguments`` is JSON text."""

    name: str
    arguments: str


class WorkerReason(ReasonKind):
    """Why a worker has no answer."""

    LOST_AGAIN = "it was lost {times} times in one question"
    SPENT = "this text took its parsers more than {seconds:g} s of processor time"
    NOT_STARTED = "{python} could not be started ({problem})"
    UNFIT = "its parsers are asked in another way than importer knows: each of them ends with {problem}"


@frozen
class Reading:
    """The parts of one sample, or ``error``: the exception of the server, or an ``Accident``.

    ``forbidden`` is the place where the grammar of the engine forbids the text.
    """

    calls: tuple[ReadCall, ...] = ()
    reasoning: str | None = None
    content: str | None = None
    error: Reason | None = None
    forbidden: str | None = None

    @property
    def accident(self) -> Reason | None:
        """Return the error, where this machine caused it: then the reading says nothing of the parser."""
        return self.error if self.error is not None and isinstance(self.error.kind, Accident) else None


Readings = TypeVar("Readings", bound=Sequence[Reading])


@frozen
class Difference:
    """A stream with another reading: ``split`` tokens in the first of two deltas, 0 for token by token."""

    split: int
    reading: Reading


@frozen
class Replay:
    """A sample read whole and in ``count`` splits; ``different`` of them differ, ``examples`` has a few."""

    whole: Reading
    count: int = 0
    different: int = 0
    examples: tuple[Difference, ...] = ()


FORMATS = ("auto", "string", "openai")  # vLLM's --chat-template-content-format; other servers have one


@frozen
class Conversation:
    """One request: messages and tools in OpenAI's form, and variables of the template."""

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[Tool] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@frozen
class EnginePrompt:
    """The text that the engine would tokenise; ``format`` is the form of contents that it applied."""

    text: str
    format: str | None = None


Answer = EnginePrompt | Reason  # a request without a prompt: the engine answers with an error
Item = Mapping[str, Any]  # of a worker's answer


class ParserWorker(Closing):
    """A warm worker; a context manager. It starts with the first question.

    ``engine`` is ``vllm``, ``mlx`` or ``mlx-vlm``, and ``python`` that of its environment.
    ``frontend`` is vLLM's: ``rust`` runs the released binary of that environment.
    ``seconds`` bounds one parser's work on one sample. ``accidents`` counts the answers that this machine
    spoilt, and ``unloaded`` is why the repository's tokenizer is not used. Every method raises
    EngineError("worker-failed").
    """

    def __init__(
        self, engine: str, python: Path, *, seconds: float = 5.0, frontend: Frontend | None = None
    ) -> None:
        self.engine = engine
        self.frontend = frontend
        self.name = f"{engine}-{RUST}" if frontend == RUST else engine  # of its script, and in results
        self.python = python
        self._registry: Registry | None = None
        self._seconds = seconds
        self._conversation: JsonLinesWorker | None = None
        self.accidents = 0  # answers that this machine spoilt
        self.unloaded: str | None = None
        self.budget = Budget(math.inf, math.inf)
        self._spent = 0.0  # by the present worker, as it was last measured

    def close(self) -> None:
        """End the worker; the next question starts another."""
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            conversation.close()

    def version(self) -> str:
        """Return the version that the engine reports."""
        return str(self._plain("hello")[0]["version"])

    def list(self) -> tuple[EngineParser, ...]:
        """Return every parser that the engine has registered."""
        items = [self._classed(item) for item in self._plain("list")]
        names: dict[tuple[str, str, str], tuple[str, ...]] = {}
        for item in items:
            names[_identity(item)] = (*names.get(_identity(item), ()), item["name"])
        return tuple(
            EngineParser(
                kind=item["kind"],
                name=item["name"],
                class_name=item["class"],
                module=item["module"],
                aliases=tuple(name for name in names[_identity(item)] if name != item["name"]),
            )
            for item in items
        )

    def infer(self, tokens: Tokens) -> ParserQuestion:
        """Return the parsers that mlx-lm or mlx-vlm infers; vLLM infers none."""
        item = self._plain("infer", tokenizer=_tokenizer(tokens))[0]
        return ParserQuestion(item["tool"], item["reasoning"])

    def read(
        self, tokens: Tokens, samples: Sequence[Sample], asks: Iterable[ParserQuestion]
    ) -> dict[ParserQuestion, tuple[Reading, ...]]:
        """Return for each pair of parsers its readings of the samples, in whole answers."""
        answers = self._judged("read", tokens, samples, asks)
        found = {ask: self._counted(tuple(map(_reading, items))) for ask, items in answers.items()}
        errors = {reading.error for readings in found.values() for reading in readings}
        if len(found) >= MANY and len(errors) == 1 and (error := errors.pop()) is not None:
            raise self._failed(Reason(WorkerReason.UNFIT, problem=error))
        return found

    def stream(
        self,
        tokens: Tokens,
        samples: Sequence[Sample],
        asks: Iterable[ParserQuestion],
        *,
        stepwise: bool = False,
    ) -> dict[ParserQuestion, tuple[Replay, ...]]:
        """Return for each pair of parsers its readings, whole and streamed: cut in two at every token,
        and token by token; with ``stepwise`` token by token alone.
        """
        answers = self._judged("stream", tokens, samples, asks, **({"stepwise": True} if stepwise else {}))
        replays = {ask: tuple(map(_replay, items)) for ask, items in answers.items()}
        for each in replays.values():
            self._counted([r.whole for r in each] + [e.reading for r in each for e in r.examples])
        return replays

    def _counted(self, readings: Readings) -> Readings:
        """Return the readings, those counted that an accident spoilt; what sources lack is none."""
        kinds = [reading.accident.kind for reading in readings if reading.accident is not None]
        lasting = () if sources_of(self.python) is None else (Accident.MODULE, Accident.ABSENT)
        self.accidents += sum(kind not in lasting for kind in kinds)
        return readings

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return for each form of contents the prompt of each conversation, or the reason of a refusal."""
        formats = FORMATS if self.engine == backends.VLLM.name else FORMATS[:1]
        sent = [asdict(one) for one in conversations]
        fields = {"conversations": sent, "formats": [*formats], "limit": self._seconds}
        items = self._plain("render", count=len(sent), tokenizer=_tokenizer(tokens), **fields)
        return {form: [*map(_prompt, answers)] for form, answers in zip(formats, items, strict=True)}

    def _judged(
        self,
        operation: str,
        tokens: Tokens,
        samples: Sequence[Sample],
        asks: Iterable[ParserQuestion],
        **more: object,
    ) -> dict[ParserQuestion, Sequence[Item | Reason]]:
        """Return the items of each pair; a pair whose worker was lost gets the reason.

        Items come in the order of ``asks``, so a lost worker was busy with the first pair without one.
        """
        pending = [*dict.fromkeys(asks)]
        answers: dict[ParserQuestion, Sequence[Item | Reason]] = {}
        fields = {
            "tokenizer": _tokenizer(tokens),
            "samples": [_sample(sample) | more for sample in samples],
            "limit": self._seconds,
        }
        patience = self._seconds * (len(samples) + 1) + GRACE_SECONDS
        for _ in range(MAX_STARTS):
            if not pending:
                break
            pairs = [self._pair(ask) for ask in pending]
            try:
                for item in self._ask(operation, patience, asks=pairs, **fields):
                    answers[pending.pop(0)] = item
            except WorkerLostError as loss:
                self._lose()
                if pending:
                    answers[pending.pop(0)] = [loss.reason] * len(samples)
        if pending:
            raise self._failed(Reason(WorkerReason.LOST_AGAIN, times=MAX_STARTS))
        return answers

    def _rust(self) -> Registry | None:
        """Return the registry of the Rust frontend, whose binary has names alone; raises EngineError."""
        if self.frontend == RUST and self._registry is None:
            self._registry = load(self.engine, self.version(), RUST)
        return self._registry

    def _classed(self, item: Item) -> Item:
        registry = self._rust()
        entry = None if registry is None else registry.entries[item["kind"]].get(item["name"])
        return item if entry is None else {**item, "class": entry.class_name, "module": entry.module}

    def _pair(self, ask: ParserQuestion) -> dict[str, str | None]:
        """Return the parsers of the server: one that reads both kinds is rejected for one kind alone."""
        registry = self._rust()
        one = ask.tool or ask.reasoning
        if registry is not None and one in registry.joint and None in (ask.tool, ask.reasoning):
            return {"tool": one, "reasoning": one}
        return {"tool": ask.tool, "reasoning": ask.reasoning}

    def _plain(self, operation: str, *, count: int = 1, **fields: Any) -> Sequence[Any]:
        """Return the items of an answer, each made of ``count`` pieces of work."""
        warm = self._conversation is not None
        try:
            return [*self._ask(operation, GRACE_SECONDS + self._seconds * count, **fields)]
        except WorkerLostError as loss:
            self._lose()
            if warm:  # it may have died since the last question
                return self._plain(operation, count=count, **fields)
            raise self._failed(loss.reason) from None

    def _ask(self, operation: str, patience: float, **fields: Any) -> Iterator[Any]:
        if self.budget.left <= 0:
            raise self._failed(Reason(WorkerReason.SPENT, seconds=self.budget.seconds))
        if self._conversation is None:
            self._start()
            self._spent = 0.0 if self._conversation is None else self._conversation.spent
        if (conversation := self._conversation) is not None:
            free = operation in OF_ENGINE
            most = math.inf if free else self._spent + self.budget.left
            try:
                yield from conversation.ask(operation, patience, most, **fields)
                self.unloaded = conversation.unloaded or self.unloaded
            except RefusedError as refusal:
                raise self._failed(str(refusal)) from None
            except SpentError:
                raise self._failed(Reason(WorkerReason.SPENT, seconds=self.budget.seconds)) from None
            finally:
                before, self._spent = self._spent, conversation.spent
                self.budget.left -= 0.0 if free else self._spent - before

    def _lose(self) -> None:
        """End a lost worker; its next start counts."""
        self.close()
        self.budget.left -= START_COST

    def _start(self) -> None:
        command = isolated(str(SCRIPT), self.name, python=self.python)
        try:
            self._conversation = JsonLinesWorker(command, Purpose.PARSERS, SETTINGS)
            for _ in self._conversation.ask("hello", START_SECONDS):
                pass
        except OSError as error:
            raise self._failed(
                Reason(WorkerReason.NOT_STARTED, python=self.python, problem=error.strerror)
            ) from None
        except WorkerLostError as loss:
            raise self._failed(loss.reason) from None
        except RefusedError as refusal:
            raise self._failed(str(refusal)) from None

    def _failed(self, problem: Reason | str) -> EngineError:
        self.close()
        return EngineError("worker-failed", name=self.engine, problem=problem)


def _identity(item: Item) -> tuple[str, str, str]:
    return item["kind"], item["module"], item["class"]


def _tokenizer(tokens: Tokens) -> dict[str, object]:
    return asdict(tokens) | {
        "directory": None if tokens.directory is None else str(tokens.directory),
        "tokens": [{"content": content, "special": special} for content, special in tokens.tokens],
    }


def _sample(sample: Sample) -> dict[str, object]:
    return {
        "prompt": sample.prompt,
        "completion": sample.completion,
        "tools": [*sample.tools],
        "kwargs": dict(sample.kwargs),
    }


def _reading(item: Item | Reason) -> Reading:
    if isinstance(item, Reason):
        return Reading(error=item)
    if "error" in item:
        return Reading(error=_failure(item["error"]))
    calls = tuple(ReadCall(call["name"], call["arguments"]) for call in item["calls"])
    return Reading(calls, item["reasoning"], item["content"], forbidden=item.get("forbidden"))


def _failure(failure: Item) -> Reason:
    """Return the reason in the form of ``parser_worker.wire``: an exception, or an accident with its
    fields.
    """
    fields = {name: value for name, value in failure.items() if name != "kind"}
    kind = str(failure["kind"])
    return Reason(ParserFailure(kind) if kind in {*ParserFailure} else Accident(kind), **fields)


def _prompt(item: Item) -> Answer:
    return _failure(item["error"]) if "error" in item else EnginePrompt(item["text"], item["format"])


def _replay(item: Item | Reason) -> Replay:
    if isinstance(item, Reason) or "error" in item:
        return Replay(_reading(item))
    examples = tuple(Difference(d["split"], _reading(d["reading"])) for d in item["differs"])
    return Replay(_reading(item["whole"]), item["count"], item["different"], examples)
