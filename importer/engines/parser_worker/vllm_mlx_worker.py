"""vllm-mlx's parsers, run by its server's own endpoint over the tokens of a sample.

Where the named tool parser reads no call, the server tries a general one (0.6.0): a name that does not fit
may read a whole answer all the same, and fail in a stream.
"""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vllm_mlx
from mlx_lm.utils import load_tokenizer
from vllm_mlx import reasoning
from vllm_mlx import server as endpoint
from vllm_mlx.api.models import ChatCompletionRequest
from vllm_mlx.api.utils import clean_output_text
from vllm_mlx.engine.base import GenerationOutput
from vllm_mlx.tool_parsers import ToolParserManager

from .serving import Pair, Server, served, texts
from .vocabulary import encode, own, synthetic
from .wire import Operation


@dataclass(frozen=True)
class Composed:
    """A tokenizer, and the parsers that the server is started with."""

    tokenizer: Any
    tool: str | None
    reasoning: str | None


def operations() -> Mapping[str, Operation]:
    """Return the operations of this worker."""
    gc.freeze()  # imported modules stay
    return SERVER.operations()


def parsers() -> Iterator[Mapping[str, str]]:
    """Yield every registered parser."""
    for kind, names, get in (
        ("tool", ToolParserManager.list_registered(), ToolParserManager.get_tool_parser),
        ("reasoning", reasoning.list_parsers(), reasoning.get_parser),
    ):
        for name in sorted(names):
            parser = get(name)
            yield {"kind": kind, "name": name, "class": parser.__name__, "module": parser.__module__}


def load(request: Mapping[str, Any]) -> Any:
    """Return the tokenizer as the server loads it; a synthetic one goes by way of a folder."""
    description = request["tokenizer"]
    folder = description["directory"]
    loaded = own(folder, lambda: load_tokenizer(Path(folder))) if folder else None
    if loaded is not None:
        return loaded
    with tempfile.TemporaryDirectory() as folder:
        synthetic(description, texts(request)).save_pretrained(folder)
        config = {"model_type": description.get("model_type") or ""}
        Path(folder, "config.json").write_text(json.dumps(config))
        return load_tokenizer(Path(folder))


def infer(_tokenizer: Any) -> dict[str, str | None]:
    """Return no parsers: this server infers none."""
    return {"tool": None, "reasoning": None}


def compose(tokenizer: Any, pair: Pair) -> Composed:
    """Return the tokenizer with its parsers; raises for names that the server lacks."""
    tool, thoughts = pair["tool"], pair["reasoning"]
    if tool is not None:
        ToolParserManager.get_tool_parser(tool)
    if thoughts is not None:
        reasoning.get_parser(thoughts)
    return Composed(tokenizer, tool, thoughts)


def answer(composed: Composed, sample: Mapping[str, Any], stream: bool) -> dict[str, Any]:
    """Return the answer of the server's endpoint to one request with the tokens of the sample."""
    named = composed.reasoning
    # As its command line sets them.
    state = {
        "_engine": Generator(composed.tokenizer, sample),
        "_enable_auto_tool_choice": composed.tool is not None,
        "_tool_call_parser": composed.tool,
        "_tool_parser_instance": None,
        "_reasoning_parser": None if named is None else reasoning.get_parser(named)(),
        "_reasoning_parser_name": named,
    }
    vars(endpoint).update(state)
    request = ChatCompletionRequest(
        model="model",
        messages=[{"role": "user", "content": "."}],
        tools=list(sample["tools"]) or None,
        chat_template_kwargs=sample["kwargs"] or None,
        stream=stream,
    )
    return served(endpoint.create_chat_completion(request, None), stream=stream)


class Generator:
    """The server's engine, that has its tokens already."""

    model_name = "model"
    is_mllm = False
    preserve_native_tool_format = True

    def __init__(self, tokenizer: Any, sample: Mapping[str, Any]) -> None:
        self.tokenizer, self.sample = tokenizer, sample

    def _apply_chat_template(self, *_messages: Any, **_variables: Any) -> str:
        """Return the prompt; the server looks in it for an open thought."""
        return str(self.sample["prompt"])

    async def chat(self, **_settings: Any) -> Any:
        """Return the whole answer, its special tokens removed by the function of the engine."""
        *_, last = self._outputs()
        last.text = clean_output_text(last.text)
        return last

    async def stream_chat(self, **_settings: Any) -> AsyncIterator[Any]:
        """Yield the answer token by token."""
        for output in self._outputs():
            yield output

    def _outputs(self) -> Iterator[Any]:
        detokenizer, text = self.tokenizer.detokenizer, ""
        tokens = encode(self.tokenizer, self.sample["completion"])
        for token in tokens:
            detokenizer.add_token(token)
            piece = detokenizer.last_segment
            text += piece
            yield GenerationOutput(text=text, new_text=piece, finished=False, finish_reason=None)
        detokenizer.finalize()
        piece = detokenizer.last_segment
        yield GenerationOutput(text=text + piece, new_text=piece, finished=True, finish_reason="stop")


SERVER = Server(
    name="vllm-mlx",
    version=vllm_mlx.__version__,
    parsers=parsers,
    load=load,
    infer=infer,
    compose=compose,
    answer=answer,
)
