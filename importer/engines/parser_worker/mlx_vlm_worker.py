"""mlx-vlm's parsers, run by its server's own endpoint over the tokens of a sample.

The server infers its tool parser from the chat template, or uses the one in a request. It splits thinking at
a few pairs of markers, for every model, in their order. A reasoning parser is named by its opening marker,
and runs with its pair alone: else each would read the text of all.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx_vlm
from mlx_vlm.server import responses_state
from mlx_vlm.server.generation import StreamingToken
from mlx_vlm.server.runtime import runtime
from mlx_vlm.server.schemas import ChatRequest
from mlx_vlm.tokenizer_utils import (
    BPEStreamingDetokenizer,
    TokenizerWrapper,
    _ServerTokenStreamer,
    load_tokenizer,
    make_streaming_detokenizer,
)
from mlx_vlm.tools import _infer_tool_parser_from_processor

from .serving import Captured, Pair, Server, by_module, served, texts, tool_module
from .vocabulary import encode, own, synthetic
from .wire import Operation

ENDPOINT: Any = importlib.import_module("mlx_vlm.server.openai")
TOOLS = "mlx_vlm.tools.parsers"
APPLY = ENDPOINT.apply_chat_template  # ``answer`` puts its own in its place
STATE = responses_state.ThinkingStreamState
PAIRS = {opening: (opening, closing) for opening, closing in STATE._DEFAULT_OPEN_CLOSE_MARKERS}  # noqa: SLF001


@dataclass(frozen=True)
class Composed:
    """A tokenizer, the tool parser of the request, and the markers of the server."""

    tokenizer: Any
    tool: str | None
    markers: tuple[tuple[str, str], ...]


def operations() -> Mapping[str, Operation]:
    """Return the operations of this worker."""
    gc.freeze()  # the server collects garbage after each answer; imported modules stay
    return SERVER.operations()


def load(request: Mapping[str, Any]) -> Any:
    """Return the tokenizer as the server wraps it; processors of images have no part in reading text."""
    description = request["tokenizer"]
    folder = description["directory"]
    loaded = own(folder, lambda: load_tokenizer(Path(folder))) if folder else None
    if loaded is not None:
        return loaded
    tokenizer = synthetic(description, texts(request))
    template = description["settings"].get("response_template")
    if template is not None:  # the server lets the tokenizer split by it
        tokenizer.response_template = template
    return TokenizerWrapper(tokenizer, BPEStreamingDetokenizer)


def infer(tokenizer: Any) -> dict[str, str | None]:
    """Return the tool parser by the template's text; thinking markers are not inferred, all are tried."""
    return {"tool": _infer_tool_parser_from_processor(tokenizer), "reasoning": None}


def compose(tokenizer: Any, pair: Pair) -> Composed:
    """Return the tokenizer with its parsers; raises ValueError or ModuleNotFoundError for names that the
    server lacks.
    """
    tool, opening = pair["tool"], pair["reasoning"]
    if tool is not None:
        tool_module(TOOLS, tool)
    if opening not in (None, *PAIRS):
        raise ValueError(f"the server knows no thinking marker {opening!r}")
    return Composed(tokenizer, tool, tuple(PAIRS.values()) if opening is None else (PAIRS[opening],))


def answer(composed: Composed, sample: Mapping[str, Any], stream: bool) -> dict[str, Any]:
    """Return the answer of the server's endpoint to one request with the tokens of the sample."""
    ENDPOINT.get_cached_model = lambda *_args: (None, composed.tokenizer, SimpleNamespace())
    ENDPOINT.apply_chat_template = lambda *_args, **_variables: sample["prompt"]
    ENDPOINT._infer_tool_parser_from_processor = lambda _processor, override: override  # noqa: SLF001
    runtime.response_generator = Generator(composed.tokenizer, sample)
    STATE._DEFAULT_OPEN_CLOSE_MARKERS = composed.markers  # noqa: SLF001
    request = ChatRequest(
        model="",
        messages=[{"role": "user", "content": "."}],
        tools=list(sample["tools"]) or None,
        tool_parser=composed.tool,
        stream=stream,
        context_management=[],
    )
    return served(ENDPOINT.chat_completions_endpoint(request, None), stream=stream)


def render(tokenizer: Any, one: Mapping[str, Any]) -> str:
    """Return the prompt of a conversation, by the server's endpoint; raises its errors."""

    def captured(*arguments: Any, **variables: Any) -> Any:
        raise Captured(APPLY(*arguments, **variables))

    config = {"model_type": one["model_type"] or ""}
    ENDPOINT.get_cached_model = lambda *_arguments: (None, tokenizer, config)
    ENDPOINT.apply_chat_template = captured
    runtime.response_generator = Generator(tokenizer, {"completion": ""})
    request = ChatRequest(
        model="", messages=one["messages"], tools=one["tools"] or None, context_management=[], **one["kwargs"]
    )
    try:
        asyncio.run(ENDPOINT.chat_completions_endpoint(request, None))
    except Captured as prompt:
        return prompt.text
    raise RuntimeError("the server applied no chat template")


class Generator:
    """The server's generator of tokens, that has them already."""

    def __init__(self, tokenizer: Any, sample: Mapping[str, Any]) -> None:
        self.tokenizer, self.sample = tokenizer, sample

    def generate(self, prompt: str, *_media: Any, **_settings: Any) -> tuple[Any, Iterator[StreamingToken]]:
        """Return the context of a request, and its tokens."""
        return SimpleNamespace(prompt_tokens=len(encode(self.tokenizer, prompt))), self._tokens()

    def validate_context_budget(self, *_prompt: Any, **_settings: Any) -> None:
        """Accept every sample."""

    def _tokens(self) -> Iterator[StreamingToken]:
        streamer = _ServerTokenStreamer(self.tokenizer, make_streaming_detokenizer(self.tokenizer))
        for token in encode(self.tokenizer, self.sample["completion"]):
            yield _token(streamer.advance(token, None), token, None)
        yield _token(streamer.advance(0, "stop"), 0, "stop")


def _token(text: str, token: int, finish: str | None) -> StreamingToken:
    return StreamingToken(text=text, token=token, logprobs=0.0, finish_reason=finish)


SERVER = Server(
    name="mlx-vlm",
    version=mlx_vlm.__version__,
    parsers=lambda: by_module(TOOLS, responses_state.__name__, PAIRS.values),
    load=load,
    infer=infer,
    compose=compose,
    answer=answer,
    render=render,
)
