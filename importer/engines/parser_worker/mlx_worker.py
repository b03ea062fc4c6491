"""mlx-lm's parsers, run by its server's own request handler over the tokens of a sample.

The server reads its tool parser from the tokenizer's settings or infers it from the chat template, and its
thinking markers from the vocabulary alone. A reasoning parser is therefore named by its opening marker, and
another one than that of the vocabulary is an error.
"""

from __future__ import annotations

import copy
import inspect
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx_lm
from mlx_lm import tokenizer_utils
from mlx_lm.generate import make_text_state_machine
from mlx_lm.server import APIHandler, CompletionRequest, ResponseGenerator
from mlx_lm.utils import load_tokenizer

from .markers import thinking_markers
from .serving import Captured, Pair, Server, by_module, from_stream, from_whole, modules, texts, tool_module
from .vocabulary import encode, own, synthetic

TOOLS = "mlx_lm.tool_parsers"
# Settings of the tokenizer that the server obeys, and the package whose modules they name.
CLAIMS = {"tool_parser_type": TOOLS, "chat_template_type": "mlx_lm.chat_templates"}


def load(request: Mapping[str, Any]) -> Any:
    """Return the tokenizer as the server loads it; a synthetic one goes by way of a folder."""
    description = request["tokenizer"]
    # The server would import any other name, and fail; no name leads out of these packages.
    claimed = {
        key: name if (name := str(description["settings"][key])) in modules(package) else None
        for key, package in CLAIMS.items()
        if key in description["settings"]
    }
    if own_folder := description["directory"]:
        loaded = own(own_folder, lambda: load_tokenizer(own_folder, tokenizer_config_extra=claimed))
        if loaded is not None:
            return loaded
    with tempfile.TemporaryDirectory() as folder:
        synthetic(description, texts(request)).save_pretrained(folder)
        Path(folder, "config.json").write_text(
            json.dumps({"model_type": description.get("model_type") or ""})
        )
        return load_tokenizer(folder, tokenizer_config_extra=claimed)


def compose(loaded: Any, pair: Pair) -> Any:
    """Return the server's tokenizer with the named tool parser; raises ValueError for other thinking
    markers than its own.
    """
    if pair["reasoning"] is not None and pair["reasoning"] != loaded.think_start:
        raise ValueError(f"the vocabulary gives the thinking marker {loaded.think_start!r}")
    module = None if pair["tool"] is None else tool_module(TOOLS, pair["tool"])
    tokenizer = copy.copy(loaded)
    tokenizer._tool_parser = module and module.parse_tool_call  # noqa: SLF001 - load() is the only public way in
    tokenizer._tool_call_start = module and module.tool_call_start  # noqa: SLF001
    tokenizer._tool_call_end = module and module.tool_call_end  # noqa: SLF001
    return tokenizer


def answer(tokenizer: Any, sample: Mapping[str, Any], stream: bool) -> dict[str, Any]:
    """Return the answer of the server's handler to one request with the tokens of the sample."""
    handler = Handler(tokenizer, sample, stream)
    request = CompletionRequest(
        "chat", "", [{"role": "user", "content": "."}], list(sample["tools"]) or None, None
    )
    handler.handle_completion(request, stop_words=[])
    return handler.reading()


class Handler(APIHandler):
    """The server's handler without a socket: its output stays in memory."""

    def __init__(self, tokenizer: Any, sample: Mapping[str, Any], stream: bool) -> None:
        self.tokenizer, self.sample, self.stream = tokenizer, sample, stream
        self.wfile = io.BytesIO()
        self.object_type = "chat.completion.chunk" if stream else "chat.completion"
        self.response_generator = SimpleNamespace(generate=self._generate)
        self.top_logprobs = 0

    def __getattr__(self, name: str) -> Any:
        """Return ``None`` for sampling settings and names: the handler only passes them on."""
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def _set_stream_headers(self, status_code: int) -> None: ...

    def _set_completion_headers(self, status_code: int) -> None: ...

    def send_header(self, keyword: str, value: str) -> None:
        """Send no header."""

    def end_headers(self) -> None:
        """Send no headers."""

    def _generate(self, _request: Any, _args: Any, **_callbacks: Any) -> tuple[Any, Iterator[Any]]:
        prompt = encode(self.tokenizer, self.sample["prompt"])
        context = SimpleNamespace(
            tool_parser=self.tokenizer.tool_parser,
            text_sm=make_text_state_machine(self.tokenizer),
            initial_state=initial_state(self.tokenizer, prompt),
            prompt=prompt,
            prompt_cache_count=-1,
            stop=lambda: None,
        )
        return context, self._tokens()

    def _tokens(self) -> Iterator[Any]:
        detokenizer = self.tokenizer.detokenizer
        for token in encode(self.tokenizer, self.sample["completion"]):
            detokenizer.add_token(token)
            yield SimpleNamespace(text=detokenizer.last_segment, token=token, finish_reason=None)
        detokenizer.finalize()
        yield SimpleNamespace(text=detokenizer.last_segment, token=0, finish_reason="stop")

    def reading(self) -> dict[str, Any]:
        """Return the answer as a client reads it."""
        written = self.wfile.getvalue().decode()
        return from_stream(written.splitlines()) if self.stream else from_whole(json.loads(written))


class Capturing:
    """A tokenizer whose applied chat template is not tokenised but captured."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        """Return the member of the server's own tokenizer."""
        return getattr(self._tokenizer, name)

    def apply_chat_template(self, *arguments: Any, **settings: Any) -> Any:
        """Raise Captured with the text."""
        raise Captured(self._tokenizer.apply_chat_template(*arguments, **{**settings, "tokenize": False}))


def render(tokenizer: Any, one: Mapping[str, Any]) -> str:
    """Return the prompt of a conversation, by the server's ``_tokenize``; raises its errors."""
    provider = SimpleNamespace(processor=None, cli_args=SimpleNamespace(chat_template_args={}))
    messages, tools = copy.deepcopy(one["messages"]), one["tools"] or None  # the server changes messages
    request = CompletionRequest("chat", "", messages, tools, None)
    arguments = SimpleNamespace(chat_template_kwargs=one["kwargs"] or None)
    try:
        ResponseGenerator._tokenize(  # noqa: SLF001 - its only way from messages to a prompt
            SimpleNamespace(model_provider=provider), Capturing(tokenizer), request, arguments
        )
    except Captured as prompt:
        return prompt.text
    raise RuntimeError("the server applied no chat template")


def initial_state(tokenizer: Any, prompt: list[int]) -> str:
    """Return whether generation starts inside the thinking block, by the rule of the server's
    ``_tokenize``.
    """
    if tokenizer.response_initial_state:
        return str(tokenizer.response_initial_state)
    if not tokenizer.has_thinking:
        return "normal"
    opened = tokenizer.rfind_think_start(prompt) > tokenizer.rfind_think_end(prompt)
    return "reasoning" if opened else "normal"


def infer(tokenizer: Any) -> dict[str, str | None]:
    """Return ``tool_parser_type``, else the parser by the template's text; thinking markers by the
    vocabulary only.
    """
    return {"tool": tokenizer.init_kwargs.get("tool_parser_type"), "reasoning": tokenizer.think_start}


def _pairs() -> list[tuple[str, str]]:
    return thinking_markers(inspect.getsource(tokenizer_utils))


SERVER = Server(
    name="mlx",
    version=mlx_lm.__version__,
    parsers=lambda: by_module(TOOLS, tokenizer_utils.__name__, _pairs),
    load=load,
    infer=infer,
    compose=compose,
    answer=answer,
    render=render,
)
operations = SERVER.operations
