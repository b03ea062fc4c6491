"""The parsers of vLLM's Rust frontend, run by the released binary itself over the tokens of a sample.

``vllm-rs frontend`` is what ``vllm serve`` starts with VLLM_USE_RUST_FRONTEND=1. It gets three listening
sockets from its parent: for clients, and for the engine's inputs and outputs. Here the parent plays the
engine as well (``scripted_core``): it answers each request with the given tokens, in the given pieces. So the
prompt is rendered, the output detokenised and parsed by the server's own code, without weights or a card.

The parsers are settings of the process, so each pair has a process of its own. They take 0.06 s to start.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from .grammar import compiler, forbidden
from .replay import in_two, replay
from .scripted_core import Frontend, FrontendError
from .serving import from_stream, from_whole
from .vocabulary import encode, forget, own, synthetic
from .wire import Operation, Overrun, attempt, failure

Pair = Mapping[str, "str | None"]
# The prompt is a text already: the template passes it on.
TEMPLATE = "{{ messages[0]['content'] }}"
END = "<|importer-end|>"  # where the repository names no end of a turn: the server drops the last token
NO_NAME = "importer-lists-the-parsers"
KINDS = {"tool": "--tool-call-parser", "reasoning": "--reasoning-parser"}
LISTED = re.compile(r"choose from: ([^)]*)\)")
LIST_SECONDS = 20.0
TOGETHER = 4  # requests at a time of one server
AHEAD = 4  # servers that start while another one answers
KEPT = 24  # servers that stay for the next question


def operations() -> Mapping[str, Operation]:
    """Return the operations of this worker."""
    compiler()  # its library takes seconds to load, a server only milliseconds
    atexit.register(Model.end_last)  # also where importer was killed: the worker sees the end of its requests
    return {
        "hello": hello,
        "list": list_parsers,
        "read": partial(judged, streamed=False),
        "stream": partial(judged, streamed=True),
    }


def hello(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield name and version of the engine; raises FileNotFoundError for a build without the binary."""
    binary()
    yield {"engine": "vllm", "version": importlib.metadata.version("vllm")}


def binary() -> str:
    """Return the path of the released binary; the package itself is not imported."""
    spec = importlib.util.find_spec("vllm")
    path = Path(spec.origin or "").parent / "vllm-rs" if spec is not None else Path("vllm-rs")
    if not path.is_file():
        raise FileNotFoundError(f"this build of vLLM has no Rust frontend: {path.name} is not in its package")
    return str(path)


def list_parsers(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield every registered parser: the binary lists them where it rejects a name. It has no classes."""
    for kind, flag in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [binary(), "render", folder, flag, NO_NAME]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIST_SECONDS, check=False)
        listed = LISTED.search(done.stdout + done.stderr)
        if listed is None:
            raise RuntimeError(f"vllm-rs lists no {kind} parsers: {(done.stdout + done.stderr)[-200:]}")
        for name in listed[1].split(", "):
            yield {"kind": kind, "name": name, "class": name, "module": "vllm-rs"}


def judged(request: Mapping[str, Any], streamed: bool) -> Iterator[Any]:
    """Yield one item per pair of parsers: its readings of the samples, whole or also streamed."""
    forget()
    samples, limit = request["samples"], request["limit"]
    model, asks = Model.of(request), request["asks"]
    with ThreadPoolExecutor(AHEAD) as starting, ThreadPoolExecutor(TOGETHER) as asking:
        for pair, started in zip(asks, starting.map(partial(model.server, limit), asks), strict=True):
            if isinstance(started, BaseException):
                yield [{"error": failure(started)}] * len(samples)
                continue
            judge = partial(_judge, started, model.tokenizer, asking, streamed)
            yield [attempt(limit * 4, partial(judge, sample)) for sample in samples]
            if len(asks) > KEPT:
                model.end(pair)


class Model:
    """The folder of a model, and its running servers, for the questions about one template.

    The servers of a few parsers stay: those that read the template are asked again, for their streams.
    """

    last: ClassVar[Model | None] = None

    def __init__(self, request: Mapping[str, Any]) -> None:
        """Write the folder for the tokenizer and the texts of the request."""
        self.description = request["tokenizer"]
        self.texts = _texts(request)
        self._folder = tempfile.TemporaryDirectory()
        self._servers: dict[tuple[str | None, str | None], Frontend] = {}
        self.tokenizer = written(request, Path(self._folder.name))

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Model:
        """Return the last model where its tokenizer serves these texts too, else a new one."""
        last = cls.last
        if last is None or last.description != request["tokenizer"] or not _texts(request) <= last.texts:
            if last is not None:
                last.close()
            cls.last = last = cls(request)
        return last

    @classmethod
    def end_last(cls) -> None:
        """End the servers of the last model and remove its folder."""
        if cls.last is not None:
            cls.last.close()
            cls.last = None

    def server(self, limit: float, pair: Pair) -> Frontend | BaseException:
        """Return the running server with the pair, or its error."""
        key = pair["tool"], pair["reasoning"]
        if key not in self._servers:
            try:
                self._servers[key] = Frontend(binary(), self._folder.name, *key, limit)
            except (FrontendError, OSError, Overrun) as error:
                return error
        return self._servers[key]

    def end(self, pair: Pair) -> None:
        """End the server with the pair."""
        self._servers.pop((pair["tool"], pair["reasoning"])).close()

    def close(self) -> None:
        """End the servers and remove the folder."""
        for server in self._servers.values():
            server.close()
        self._folder.cleanup()


def _texts(request: Mapping[str, Any]) -> set[str]:
    return {text for sample in request["samples"] for text in (sample["prompt"], sample["completion"])}


def written(request: Mapping[str, Any], folder: Path) -> Any:
    """Write the folder of a model for the server, and return its tokenizer.

    The tokenizer is the repository's where it is on this disk, else a synthetic one.
    """
    description = request["tokenizer"]
    tokenizer = None
    if description["directory"]:
        from transformers import AutoTokenizer

        tokenizer = own(
            description["directory"],
            lambda: AutoTokenizer.from_pretrained(description["directory"], trust_remote_code=False),
        )
    if tokenizer is None:
        tokenizer = synthetic(description, sorted(_texts(request)))
    if tokenizer.eos_token_id is None:
        tokenizer.add_special_tokens({"eos_token": END})
    tokenizer.chat_template = None
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = {**description["settings"], **json.loads(path.read_text(encoding="utf-8"))}
    settings.pop("chat_template", None)
    path.write_text(json.dumps(settings), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    config = {"model_type": description["model_type"] or "llama", "vocab_size": len(tokenizer)}
    config["eos_token_id"] = tokenizer.eos_token_id
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tokenizer


def _judge(
    frontend: Frontend, tokenizer: Any, asking: ThreadPoolExecutor, streamed: bool, sample: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the reading of one sample; in a stream also those of all its splits, several at a time."""
    ids = [*encode(tokenizer, sample["completion"]), tokenizer.eos_token_id]
    steps = list(range(1, len(ids)))

    def ask(cuts: Sequence[int], stream: bool) -> dict[str, Any]:
        return answered(frontend, sample, ids, cuts, stream=stream)

    whole = ask(steps, False)
    if not streamed:
        return whole | {"forbidden": _forbidden(frontend.grammar, sample["completion"])}
    places = in_two(len(ids), sample)
    cuts_of = [steps, *([place] for place in places)]
    answers = {tuple(c): asking.submit(ask, c, True) for c in cuts_of}
    return replay(whole, lambda cuts: answers[tuple(cuts)].result(), len(ids), places)


def answered(
    frontend: Frontend, sample: Mapping[str, Any], ids: Sequence[int], cuts: Sequence[int], *, stream: bool
) -> dict[str, Any]:
    """Return the answer of the server to one request, whose tokens come in pieces cut before ``cuts``.

    Raises FrontendError with the words of the server.
    """
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": sample["prompt"]}],
        "skip_special_tokens": True,
        "stream": stream,
    }
    if sample["tools"]:
        body["tools"] = list(sample["tools"])
    if sample["kwargs"]:
        body["chat_template_kwargs"] = dict(sample["kwargs"])
    starts = [0, *cuts]
    pieces = [list(ids[start:stop]) for start, stop in zip(starts, [*cuts, len(ids)], strict=True)]
    answer = frontend.ask(body, pieces)
    return from_stream(answer.splitlines()) if stream else from_whole(json.loads(answer))


def _forbidden(tag: str | None, text: str) -> str | None:
    """Return the place that the server's grammar for the request forbids, if it sent one."""
    if tag is None:
        return None
    return forbidden(SimpleNamespace(structured_outputs=SimpleNamespace(structural_tag=tag)), text)
