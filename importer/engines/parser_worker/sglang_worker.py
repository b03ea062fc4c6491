"""SGLang's parsers, run by its own chat server over the tokens of a sample.

The request goes through the server's conversion, that decides about special tokens and grammars. Its prompt
is given as token ids, so nothing is rendered again. In place of the engine stands a tokenizer manager with
the tokens of the sample. The server reads reasoning first, and calls in the rest.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from .by_name import class_for, set_up_by_name
from .grammar import forbidden_by
from .replay import in_two, replay
from .serving import Pair, from_stream, from_whole, texts
from .vocabulary import encode, forget, own, synthetic
from .wire import Operation, attempt


def _without_client() -> None:
    """Let SGLang's modules be imported without the start of its package, that loads its client library."""
    found = find_spec("sglang")
    package = ModuleType("sglang")
    package.__path__ = list(found.submodule_search_locations or ()) if found else []
    sys.modules["sglang"] = package


_without_client()
warnings.simplefilter("ignore")  # it warns of each quantisation that a machine without cards lacks

from sglang.srt.entrypoints.openai import serving_chat  # noqa: E402
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from sglang.srt.parser import reasoning_parser  # noqa: E402
from sglang.srt.parser import template_detection as detection  # noqa: E402
from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: E402
from sglang.srt.parser.response_template import resolve_response_template  # noqa: E402
from sglang.srt.parser.template_manager import TemplateManager  # noqa: E402
from sglang.srt.runtime_context import get_context, get_serving  # noqa: E402
from sglang.srt.utils.hf_transformers_utils import get_tokenizer  # noqa: E402

NAME = "sglang"
UNFINISHED = "\ufffd"  # the end of a text whose last character is not whole
OF_TEMPLATE = ("detect_inline_system_support", "jinja_template_reads_reasoning_content")
# Where ``auto`` falls back to the template in the tokenizer's settings: kind to field.
FIELDS = {"tool": "tool_calls", "reasoning": "thinking"}


@dataclass(frozen=True)
class Server:
    """The server with a pair of parsers; ``manager`` yields the tokens of the present sample."""

    chat: Any
    manager: Manager


class Manager:
    """The tokenizer manager of the server, with the tokens of a sample in place of an engine."""

    served_model_name = "model"
    model_path = ""
    processor = None
    server_args = None

    def __init__(self, tokenizer: Any, model_type: str | None, pair: Pair) -> None:
        self.tokenizer = tokenizer
        self.model_config = SimpleNamespace(
            hf_config=SimpleNamespace(architectures=[], model_type=model_type or ""),
            is_multimodal=False,
            get_default_sampling_params=dict,
        )
        self._parsers = {"tool_call_parser": pair["tool"], "reasoning_parser": pair["reasoning"]}
        self.ids: list[int] = []
        self.cuts: list[int] = []

    def config_value(self, name: str) -> Any:
        """Return a value of the server's command line; all but the parsers are left out."""
        return self._parsers.get(name)

    async def generate_request(self, request: Any, _raw: Any = None) -> AsyncIterator[dict[str, Any]]:
        """Yield the text up to each cut, as the detokenizer of the server hands it on."""
        done = ""
        for stop in (*self.cuts, len(self.ids)):
            text = self._text(stop, request.sampling_params)
            finished = stop == len(self.ids)
            # An unfinished character waits for the rest of its bytes.
            text = text if finished else text.rstrip(UNFINISHED)
            if text == done and not finished:
                continue
            reported = text[len(done) :] if get_serving().incremental_streaming_output else text
            done = text
            yield {"text": reported, "output_ids": self.ids[:stop], "meta_info": self._about(stop, finished)}

    def _text(self, stop: int, sampling: Mapping[str, Any]) -> str:
        return str(
            self.tokenizer.decode(
                self.ids[:stop],
                skip_special_tokens=sampling.get("skip_special_tokens", True),
                spaces_between_special_tokens=sampling.get("spaces_between_special_tokens", True),
            )
        )

    def _about(self, stop: int, finished: bool) -> dict[str, Any]:
        reason = {"type": "stop", "matched": self.tokenizer.eos_token_id} if finished else None
        counts = {"prompt_tokens": 0, "completion_tokens": stop}
        return {"id": "0", "weight_version": "0", "finish_reason": reason, **counts}


def operations() -> Mapping[str, Operation]:
    """Return the operations of this worker."""
    logging.disable(logging.CRITICAL)
    get_context().override_server_args().install()
    for reader in OF_TEMPLATE:  # the server is made once, here for every pair of parsers
        setattr(serving_chat, reader, lru_cache(maxsize=4)(getattr(serving_chat, reader)))
    return {
        "hello": hello,
        "list": list_parsers,
        "infer": infer,
        "read": lambda request: judged(request, streamed=False),
        "stream": lambda request: judged(request, streamed=True),
    }


def hello(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield name and version of the engine."""
    yield {"engine": NAME, "version": version(NAME)}


def list_parsers(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield every parser of the server's two registries."""
    registries = {"tool": FunctionCallParser.ToolCallParserEnum, "reasoning": ReasoningParser.DetectorMap}
    own = set_up_by_name(inspect.getsource(reasoning_parser))
    for kind, registry in registries.items():
        for name, cls in sorted(registry.items()):
            label = cls.__name__ if kind == "tool" else class_for(name, cls.__name__, own)
            yield {"kind": kind, "name": name, "class": label, "module": cls.__module__}


def infer(request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parsers that ``auto`` selects, by the rules of the server in their order."""
    tokenizer = load(request)
    template = tokenizer.chat_template
    forced, toggle = detection.detect_reasoning_pattern(template)
    chosen = {
        "tool": detection.detect_tool_call_parser(template, tokenizer, toggle, forced),
        "reasoning": detection.detect_reasoning_parser(template, tokenizer, toggle, forced),
    }
    declared = (resolve_response_template(tokenizer) or {}).get("fields") or {}
    yield {
        kind: name or ("response_template" if FIELDS[kind] in declared else None)
        for kind, name in chosen.items()
    }


def judged(request: Mapping[str, Any], *, streamed: bool) -> Iterator[Any]:
    """Yield one item per pair of parsers: its readings of the samples, whole or also streamed."""
    forget()
    limit, samples = request["limit"], request["samples"]
    loop = asyncio.new_event_loop()
    try:
        tokenizer = load(request)
        model_type = request["tokenizer"]["model_type"]
        templates = templates_of(tokenizer, model_type)
        for pair in request["asks"]:
            made = attempt(limit, lambda: {"server": compose(pair, tokenizer, model_type, templates)})  # noqa: B023
            if "error" in made:
                yield [made] * len(samples)
                continue
            read = in_pieces if streamed else whole
            yield [attempt(limit, lambda: read(made["server"], sample, loop)) for sample in samples]  # noqa: B023
    finally:
        loop.close()


def load(request: Mapping[str, Any]) -> Any:
    """Return the repository's tokenizer as the server loads it, else a synthetic one."""
    description = request["tokenizer"]
    loaded = repository_tokenizer(description["directory"]) if description["directory"] else None
    if loaded is not None:
        return loaded
    tokenizer = synthetic(description, texts(request))
    tokenizer.init_kwargs.update(description["settings"])
    return tokenizer


def templates_of(tokenizer: Any, model_type: str | None) -> Any:
    """Return the server's manager of templates, with its findings on this one; of the last one it is kept."""
    key = str(tokenizer.chat_template)
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = TemplateManager()
        nobody: Pair = {"tool": None, "reasoning": None}
        _KEPT[key].load_chat_template(Manager(tokenizer, model_type, nobody), None, "")
    return _KEPT[key]


_KEPT: dict[str, Any] = {}


@lru_cache(maxsize=1)  # one import asks several times
def repository_tokenizer(directory: str) -> Any:
    """Return the tokenizer in the folder; ``None`` where it cannot be loaded without code of its own."""
    return own(directory, lambda: get_tokenizer(directory, trust_remote_code=False))


def compose(pair: Pair, tokenizer: Any, model_type: str | None, templates: Any) -> Server:
    """Return the server with its parsers; raises ValueError for names that it lacks."""
    if pair["tool"] is not None and pair["tool"] not in FunctionCallParser.ToolCallParserEnum:
        raise ValueError(f"there is no tool parser {pair['tool']}")
    if pair["reasoning"] is not None:
        ReasoningParser(pair["reasoning"], tokenizer=tokenizer)  # the server would go on without it
    manager = Manager(tokenizer, model_type, pair)
    return Server(serving_chat.OpenAIServingChat(manager, templates), manager)


def converted(server: Server, sample: Mapping[str, Any], *, stream: bool) -> tuple[Any, Any]:
    """Return the engine's request and the client's, as the server makes them, for the sample's tokens."""
    tokenizer = server.manager.tokenizer
    request = ChatCompletionRequest(
        model="model",
        messages=[{"role": "user", "content": "."}],
        tools=list(sample["tools"]) or None,
        chat_template_kwargs=dict(sample["kwargs"]) or None,
        input_ids=encode(tokenizer, sample["prompt"]),
        stream=stream,
    )
    server.manager.ids = encode(tokenizer, sample["completion"])
    adapted, processed = server.chat._convert_to_internal_request(request)  # noqa: SLF001 - its way in
    return adapted, processed


def whole(server: Server, sample: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """Read a finished output at once."""
    adapted, request = converted(server, sample, stream=False)
    tag = (adapted.sampling_params or {}).get("structural_tag")
    return _answered(server, adapted, request, loop) | {"forbidden": forbidden_by(tag, sample["completion"])}


def _answered(server: Server, adapted: Any, request: Any, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    server.manager.cuts = []
    chat = server.chat
    answer = loop.run_until_complete(chat._handle_non_streaming_request(adapted, request, None))  # noqa: SLF001
    if not hasattr(answer, "choices"):
        raise RuntimeError(bytes(answer.body).decode())
    return from_whole(answer.model_dump())


def in_pieces(server: Server, sample: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """Read the output whole and in every split."""
    adapted, request = converted(server, sample, stream=False)
    read = _answered(server, adapted, request, loop)

    def feed(cuts: list[int]) -> dict[str, Any]:
        adapted, request = converted(server, sample, stream=True)
        server.manager.cuts = cuts
        return loop.run_until_complete(_streamed(server.chat, adapted, request))

    tokens = len(server.manager.ids)
    return replay(read, feed, tokens, in_two(tokens, sample))


async def _streamed(chat: Any, adapted: Any, request: Any) -> dict[str, Any]:
    events = chat._generate_chat_stream(adapted, request, None)  # noqa: SLF001 - below it is FastAPI's response
    return from_stream([line async for event in events for line in event.splitlines()])
