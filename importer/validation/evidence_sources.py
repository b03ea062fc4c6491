"""What is known of a served model beside its API: the server's make, its log, its parsers."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from importer import backends
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.frontends import HF
from importer.engines import logs
from importer.engines.deaths import Attribution, Death
from importer.engines.lacking import Lacking, in_text
from importer.engines.parsers import ParserQuestion, ParserWorker, Reading, Replay
from importer.engines.token_merges import MergedWords
from importer.engines.tokenizer import Ask, TokenTable
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.frozen import frozen
from importer.proof.response_template import derive, with_template
from importer.proof.result import Proof
from importer.reasons import Reason, ReasonKind
from importer.sandbox.task import Closing
from importer.validation.client import Client, Exchange
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason
from importer.validation.prompts import GREETING, Prompt, call_id
from importer.validation.reply import Reply, ToolCall
from importer.validation.served_engine import Controls

if TYPE_CHECKING:
    from importer.validation.rendering import PromptRendering


class JournalReason(ReasonKind):
    """Why a log has no answer."""

    LOG_GONE = "its log is gone"


EXCERPT = 4000  # characters of an excerpt
LOOK = 0.05  # seconds between two checks of an engine that may have ended
READ = 256 * 1024  # bytes from the end of a log that are read
HEAD = 1024 * 1024  # bytes from a log's beginning: it has the engine's settings
# The end of a traceback of Python, behind any prefix of a logger: ``ValueError: words``, ``a.b.KeyError``.
_RAISED = re.compile(
    r"^(?:.*[\s)\]])?(?<!raise )((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$"
)
_LEVEL = re.compile(r"\b(?:WARNING|ERROR|CRITICAL|FATAL)\b|\b(?:Error|Warning):")
_SECRET = re.compile(r"\b(?:hf_|sk-)[A-Za-z0-9_-]{8,}|(?<=Bearer )\S+|(?<=://)[^\s/@]+@")


@frozen
class Ended:
    """The cause of an engine's end, and the part at fault."""

    cause: Reason
    part: Attribution


@frozen
class Journal:
    """A log from ``start`` (bytes) on.

    ``alive``   whether the engine runs, ``code`` its exit status.
    ``deaths``  the known causes of its end. ``full``  whether its log may not grow.
    """

    path: Path
    alive: Callable[[], bool]
    deaths: Sequence[Death] = ()
    start: int = 0
    code: Callable[[], int | None] = lambda: None
    full: Callable[[], bool] = lambda: False

    @property
    def size(self) -> int:
        """Return the present size in bytes; 0 where the log is gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def from_here(self) -> Journal:
        """Return the same log from its present end on."""
        return replace(self, start=self.size) if self.path.exists() else self

    def opening(self) -> str:
        """Return the first ``HEAD`` bytes of the log."""
        try:
            with self.path.open("rb") as log:
                return log.read(HEAD).decode(errors="replace")
        except OSError:
            return ""

    def complaints(self) -> str:
        """Return tracebacks, errors and warnings since the start, without secrets; the latest of many."""
        text = hidden("\n".join(complaining(self._read())))
        return text if len(text) <= EXCERPT else "…" + text[-EXCERPT:]

    def raised(self) -> str | None:
        """Return the last exception since the start, in one line."""
        errors = [m.group(1) for line in self._read() if (m := _RAISED.match(line))]
        return hidden(errors[-1].strip())[:300] if errors else None

    def lacking(self) -> Reason | None:
        """Return the missing part of the environment in the log since the start, or ``None``."""
        if self.full():
            return Reason(Lacking.BIG_FILES)
        found = in_text("\n".join(complaining(self._read())))
        return None if found is None else unsecret(found)

    def death(self, wait: float = 0.0) -> Ended | None:
        """Return why the engine ended; ``None`` if it still runs after ``wait`` seconds."""
        deadline = time.monotonic() + wait
        while self.alive():
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK)
        try:
            code = self.code()
            cause = logs.explain(self.path, self.deaths, code, served=True)
            return Ended(unsecret(cause.reason), cause.attribution)
        except OSError:
            return Ended(Reason(JournalReason.LOG_GONE), "engine")

    def _read(self) -> list[str]:
        try:
            with self.path.open("rb") as log:
                log.seek(max(self.start, self.path.stat().st_size - READ))
                return log.read().decode(errors="replace").splitlines()
        except OSError:
            return []


def complaining(lines: Sequence[str]) -> list[str]:
    """Return the lines of warnings and errors, with whole tracebacks."""
    faults: list[str] = []
    inside = False
    for line in lines:
        starts = "Traceback (most recent call last)" in line
        ends = inside and _RAISED.match(line) is not None
        if starts or inside or _LEVEL.search(line):
            faults.append(line.rstrip()[:500])
        inside = (inside or starts) and not ends
    return faults


def hidden(text: str) -> str:
    """Return ``text`` without tokens and passwords."""
    return _SECRET.sub("…", text)


def unsecret(reason: Reason) -> Reason:
    """Return the reason with short fields, without tokens and passwords."""
    fields = {k: hidden(v)[:300] if isinstance(v, str) else v for k, v in reason.fields.items()}
    return Reason(reason.kind, **fields)


T = TypeVar("T")


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
        if self._inferred is None:
            self._inferred = self._asked(lambda: self._worker.infer(self._tokens))
        return self._inferred or named

    def read(self, drawn: Drawn, pair: ParserQuestion) -> Reading | None:
        """Return the reading of a whole answer; ``None`` where the worker has failed."""
        key, sample = (drawn.prompt, drawn.text, pair), [drawn.sample]
        if key not in self._readings:
            found = self._asked(lambda: self._worker.read(self._tokens, sample, [pair]))
            if found is None:
                return None
            self._readings[key] = found[pair][0]
        return self._readings[key]

    def tool_parsers(self, named: ParserQuestion) -> list[ParserQuestion]:
        """Return every tool parser of the engine, ``named`` first; none where the worker has failed."""
        listed = self._asked(self._worker.list)
        if listed is None:
            return []
        names = [p.name for p in listed if p.kind == "tool"]
        both = {HF: HF if named.reasoning else None}  # stands for both kinds, or for neither
        others = (ParserQuestion(name, both.get(name, named.reasoning)) for name in names)
        return [*dict.fromkeys((named, *others))]

    def read_all(
        self,
        drawn: Sequence[Drawn],
        pairs: Sequence[ParserQuestion],
        text: str,
        as_written: TemplateAnalysis | None = None,
    ) -> dict[ParserQuestion, tuple[Reading, ...]]:
        """Return the readings of answers to another template of this text; none where the worker has failed.

        The parser ``hf`` reads by what is derived from ``as_written``, and without it nothing.
        """
        samples = [one.sample for one in drawn]
        tokens = with_template(replace(self._tokens, chat_template=text), None)
        words = [content for content, _ in tokens.tokens]
        template = None if as_written is None else derive(as_written, words)
        others, by_data = [p for p in pairs if p.tool != HF], [p for p in pairs if p.tool == HF]
        asked = [(tokens, others)]
        if template is not None and by_data:
            asked.append((with_template(tokens, template), by_data))
        read = [self._asked(partial(self._worker.read, one, samples, some)) for one, some in asked]
        return {} if None in read else {k: v for found in read for k, v in (found or {}).items()}

    def replay(self, drawn: Drawn, pair: ParserQuestion) -> Replay | None:
        """Return the readings of the answer in pieces; ``None`` where the worker has failed."""
        found = self._asked(lambda: self._worker.stream(self._tokens, [drawn.sample], [pair]))
        return None if found is None else found[pair][0]

    def _asked(self, question: Callable[[], T]) -> T | None:
        """Return an answer of the worker; ``None`` where it has failed, or the run is over."""
        with self._lock:
            if time.monotonic() >= self.deadline:
                return None
            try:
                return question()
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


NO_TOKENIZER = Reason(CommonReason.NO_TOKENIZER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What is known of a served model beside its API; each part may be unknown.

    ``render``    renders a prompt with the template of the model.
    ``proof``     the parsers that read the model's template, where a proof was made.
    ``journal``   the log of the engine, where it is readable.
    ``argv``      the command line of the engine, where importer started it.
    ``tokens``    runs the tokenizer beside the weights, where they lie on this machine.
    ``no_tokenizer``  why there is none, where there is none.
    ``files``     the hashes of files and weights at the import; empty where the receipt has none.
    ``served``    the hashes of the weights that are served, and of large files beside them.
    ``broken``    files of JSON beside the weights that are none.
    ``table``     the rows of the embedding and the tokens beyond, where the weights lie on this machine.
    ``merges``    the words that the tokenizer's merges yield, where it lies on this machine.
    ``offline``   the engine's own parsers, run without it, where its environment is on this machine.
    ``controls``  starts of the engine without some settings, where importer started it.
    """

    render: PromptRendering | None = None
    proof: Proof | None = None
    journal: Journal | None = None
    argv: tuple[str, ...] = ()
    tokens: Ask | None = None
    no_tokenizer: Reason = NO_TOKENIZER
    files: Mapping[str, str] = field(default_factory=dict)
    served: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    table: TokenTable | None = None
    merges: MergedWords | None = None
    offline: OfflineParsers | None = None
    controls: Controls | None = None


HEADER = re.compile(r"mlx_vlm/(\S+)")  # of mlx-vlm, in the header Server
# Of mlx-lm, in system_fingerprint: its own version, that of mlx, the system.
FINGERPRINT = re.compile(r"(\d+\.\d+[^-]*)-\d+\.\d+[^-]*-(?:Linux|macOS|Darwin)\b")


@frozen
class Make:
    """An engine by its name in documents; ``version`` is ``None`` where the server does not show it."""

    engine: str
    version: str | None


def recognise(client: Client, model: str) -> Make | None:
    """Return the make of the server; ``None`` for one that shows none of the known ones."""
    log: list[Exchange] = []
    try:
        listed = json.loads(client.get("/v1/models", log))
    except (ExchangeError, ValueError, RecursionError):
        listed = None
    if (header := HEADER.fullmatch(log[-1].server or "")) is not None:
        return Make(backends.MLX_VLM.name, header[1])
    owners = {entry.get("owned_by") for entry in _entries(listed)}
    owning = (b.name for b in backends.BACKENDS.values() if b.by_flag and b.name in owners)
    if (engine := next(owning, None)) is not None:
        return Make(engine, version(client))
    greeting = {"model": model, "messages": list(GREETING.messages), "max_tokens": 1}
    try:
        answer = client.post("/v1/chat/completions", greeting, log)
    except ExchangeError:
        return None
    shown = FINGERPRINT.match(str(answer.get("system_fingerprint"))) if isinstance(answer, dict) else None
    return None if shown is None else Make(backends.MLX.name, shown[1])


def version(client: Client) -> str | None:
    """Return the version that vLLM reports; other engines have no such path."""
    try:
        answer = json.loads(client.get("/version", []))
    except (ExchangeError, ValueError, RecursionError):
        return None
    shown = answer.get("version") if isinstance(answer, dict) else None
    return shown[:80] if isinstance(shown, str) else None


def _entries(listed: Any) -> list[dict[str, object]]:
    entries = listed.get("data") if isinstance(listed, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
