"""vLLM's parsers, run in the steps of its chat completion server.

The steps are those of 0.32 (``chat_completion/serving.py``, ``renderers/online_renderer.py``); 0.27 gives its
parsers neither the tokenizer when they are composed nor the ids of the prompt. The parser
class is composed by ``ParserManager.get_parser`` and tried on the tokenizer; ``adjust_request`` of one
instance settles whether special tokens stay in the text. A second instance gets the tools and the template's
variables, and reads the detokenised text and the token ids, the end-of-turn token among the ids only. A
stream gets deltas, the last one marked as finished, which flushes the rest.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import vllm
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.sampling_params import SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.tokenizers.hf import get_cached_tokenizer
from vllm.tool_parsers import ToolParserManager
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

from .grammar import forbidden
from .replay import Assembled, in_two, reading, replay
from .vocabulary import Watched, common_suffix, encode, forget, own, synthetic
from .wire import Operation, attempt

TOKENIZER_GIVEN = "tokenizer" in inspect.signature(ParserManager.get_parser).parameters
HARMONY = "gpt_oss"  # the model_type for which the server always takes its harmony parser
Pair = Mapping[str, "str | None"]
Judge = Callable[[Any, Pair, Mapping[str, Any], Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Output:
    """A sample as the engine would hand it to the parser: ``pieces`` is the text that each token adds."""

    request: Any
    variables: Mapping[str, Any]
    prompt_ids: list[int]
    ids: list[int]
    pieces: list[str]


def operations() -> Mapping[str, Operation]:
    """Return the operations of this worker."""
    logging.disable(logging.CRITICAL)  # parsers log a traceback for each output that they cannot read
    return {
        "hello": hello,
        "list": list_parsers,
        "read": lambda request: judged(request, whole),
        "stream": lambda request: judged(request, in_pieces),
        "render": render,
    }


def hello(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield name and version of the engine."""
    yield {"engine": "vllm", "version": vllm.__version__}


def render(request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the prompts of conversations; the modules for it are loaded with the first question."""
    from .vllm_render import rendered

    return rendered(request, tokenizer_for(request))


def list_parsers(_request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield every registered parser; no parser's module is imported for it."""
    for kind, lazy, eager in (
        ("tool", ToolParserManager.lazy_parsers, ToolParserManager.tool_parsers),
        ("reasoning", ReasoningParserManager.lazy_parsers, ReasoningParserManager.reasoning_parsers),
    ):
        classes = {name: (cls.__module__, cls.__name__) for name, cls in eager.items()} | dict(lazy)
        for name, (module, class_name) in sorted(classes.items()):
            yield {"kind": kind, "name": name, "class": class_name, "module": module}


def judged(request: Mapping[str, Any], judge: Judge) -> Iterator[Any]:
    """Yield one item per pair of parsers: the results of ``judge`` for the samples."""
    forget()
    texts_of.cache_clear()
    tokenizer = tokenizer_for(request)
    limit, samples = request["limit"], request["samples"]
    for pair in request["asks"]:
        fitted = attempt(limit, lambda: fit(pair, request, tokenizer))  # noqa: B023
        if "error" in fitted:
            yield [fitted] * len(samples)
        else:
            yield [
                attempt(limit, lambda: judge(fitted["class"], pair, sample, fitted["tokenizer"]))  # noqa: B023
                for sample in samples
            ]


def fit(pair: Pair, request: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Return the parser class and a tokenizer; an assumed vocabulary gets the markers that the class
    missed.
    """
    harmony = request["tokenizer"]["model_type"] == HARMONY
    missed = getattr(tokenizer.get_vocab(), "missed", {})
    missed.clear()
    try:
        return {"class": compose(pair, tokenizer, harmony), "tokenizer": tokenizer}
    except Exception:
        if not missed:
            raise
        tokenizer = tokenizer_for(request, tuple(missed))
        return {"class": compose(pair, tokenizer, harmony), "tokenizer": tokenizer}


def tokenizer_for(request: Mapping[str, Any], supposed: Sequence[str] = ()) -> Any:
    """Return the repository's tokenizer as the server loads it, else a synthetic one; its code is never
    run.
    """
    description = request["tokenizer"]
    loaded = repository_tokenizer(description["directory"]) if description["directory"] else None
    if loaded is not None:
        return templated(loaded, description["settings"])
    tokens = [*description["tokens"], *({"content": text, "special": False} for text in supposed)]
    samples = request.get("samples", ())
    texts = [text for sample in samples for text in (sample["prompt"], sample["completion"])]
    number = harmony_number() if description["model_type"] == HARMONY else None
    tokenizer = synthetic(description | {"tokens": tokens}, texts, number)
    tokenizer.init_kwargs.update(description["settings"])
    tokenizer = get_cached_tokenizer(tokenizer)
    if description["assumed"]:
        watched = Watched(tokenizer.get_vocab())
        type(tokenizer).get_vocab = lambda _self: watched
        tokenizer.init_kwargs.setdefault("token_suffix", common_suffix(t["content"] for t in tokens))
    return tokenizer


def templated(tokenizer: Any, settings: Mapping[str, Any]) -> Any:
    """Return the tokenizer with the response template of the settings, as from a changed configuration."""
    template = settings.get("response_template")
    tokenizer.response_template = template
    tokenizer.init_kwargs["response_template"] = template
    return tokenizer


@lru_cache(maxsize=1)  # one import asks several times
def repository_tokenizer(directory: str) -> Any:
    """Return the tokenizer in the folder; ``None`` where it cannot be loaded without code of its own."""
    return own(directory, lambda: get_tokenizer(directory, trust_remote_code=False))


def harmony_number() -> Callable[[str], int | None]:
    """Return a function from a text to its id in harmony's vocabulary, that comes with the library."""
    from vllm.entrypoints.openai.parser.harmony_utils import get_encoding

    encoding = get_encoding()

    def number(text: str) -> int | None:
        ids = encoding.encode(text, allowed_special="all")
        return ids[0] if len(ids) == 1 else None

    return number


def compose(pair: Pair, tokenizer: Any, harmony: bool) -> Any:
    """Return the parser class of the server for ``--tool-call-parser`` and ``--reasoning-parser``."""
    given = {"tokenizer": tokenizer} if TOKENIZER_GIVEN else {}
    return ParserManager.get_parser(
        tool_parser_name=pair["tool"],
        reasoning_parser_name=pair["reasoning"],
        enable_auto_tools=pair["tool"] is not None,
        is_harmony=harmony,
        **given,
    )


def output_of(parser_class: Any, sample: Mapping[str, Any], tokenizer: Any) -> Output:
    """Build the request as the server would, let the parser adjust it, and detokenise by its settings."""
    request = ChatCompletionRequest(
        model="model",
        messages=[{"role": "user", "content": "."}],
        tools=sample["tools"] or None,
        chat_template_kwargs=sample["kwargs"] or None,
    )
    variables = request.build_chat_params(None, "auto").chat_template_kwargs
    if (
        getattr(parser_class, "always_adjust_request", False)
        or parser_class.reasoning_parser_cls is not None
        or request.tool_choice != "none"
    ):
        fresh(parser_class, tokenizer, request, variables).adjust_request(request=request)
    prompt_ids, ids = encode(tokenizer, sample["prompt"]), encode(tokenizer, sample["completion"])
    skip, spaces = request.skip_special_tokens, request.spaces_between_special_tokens
    pieces = texts_of(tuple(ids), tuple(prompt_ids), skip, spaces, tokenizer)
    return Output(request, variables, prompt_ids, ids, list(pieces))


def fresh(parser_class: Any, tokenizer: Any, request: Any, variables: Mapping[str, Any]) -> Any:
    """Return a parser for one request: parsers have state."""
    return parser_class(tokenizer, request.tools, chat_template_kwargs=variables, model_config=None)


@lru_cache(maxsize=512)  # parsers differ in two flags only
def texts_of(
    ids: tuple[int, ...], prompt_ids: tuple[int, ...], skip: bool, spaces: bool, tokenizer: Any
) -> tuple[str, ...]:
    """Return the text of each token by the engine's own detokeniser."""
    sampling = SamplingParams(skip_special_tokens=skip, spaces_between_special_tokens=spaces)
    core_request = SimpleNamespace(
        sampling_params=sampling, prompt_token_ids=list(prompt_ids), prompt_embeds=None, request_id="0"
    )
    detokenizer = IncrementalDetokenizer.from_new_request(tokenizer, core_request)
    pieces = []
    for token in ids:
        detokenizer.update([token], False)
        pieces.append(detokenizer.get_next_output_text(finished=False, delta=True))
    return tuple(pieces)


def ended(ids: list[int], tokenizer: Any) -> list[int]:
    """Return the ids with the token that stopped generation, that is absent from the text."""
    return ids if tokenizer.eos_token_id is None else [*ids, tokenizer.eos_token_id]


def whole(parser_class: Any, pair: Pair, sample: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Read a finished output at once."""
    output = output_of(parser_class, sample, tokenizer)
    read = read_whole(parser_class, pair, output, tokenizer)
    return read | {"forbidden": forbidden(output.request, sample["completion"])}


def read_whole(parser_class: Any, pair: Pair, output: Output, tokenizer: Any) -> dict[str, Any]:
    """Return the reading of a request that does not stream."""
    parser = fresh(parser_class, tokenizer, output.request, output.variables)
    if hasattr(parser, "set_prompt_token_ids"):
        parser.set_prompt_token_ids(output.prompt_ids)
    reasoning, content, calls = parser.parse(
        "".join(output.pieces),
        output.request,
        enable_auto_tools=pair["tool"] is not None,
        model_output_token_ids=ended(output.ids, tokenizer),
    )
    if not output.request.tools or pair["tool"] is None:
        calls = None
    return reading([(call.name, call.arguments) for call in calls or ()], reasoning, content)


def in_pieces(parser_class: Any, pair: Pair, sample: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Read the output whole and in every split."""
    output = output_of(parser_class, sample, tokenizer)
    finished = ended(output.ids, tokenizer)

    def feed(cuts: list[int]) -> dict[str, Any]:
        parser = fresh(parser_class, tokenizer, output.request, output.variables)
        assembled = Assembled()
        starts = [0, *cuts]
        for start, stop in zip(starts, [*cuts, len(finished)], strict=True):
            delta = parser.parse_delta(
                delta_text="".join(output.pieces[start:stop]),
                delta_token_ids=finished[start:stop],
                request=output.request,
                prompt_token_ids=output.prompt_ids,
                finished=stop == len(finished),
            )
            if delta is not None:
                assembled.add(delta_fields(delta))
        return assembled.reading()

    whole_reading = read_whole(parser_class, pair, output, tokenizer)
    return replay(whole_reading, feed, len(finished), in_two(len(finished), sample))


def delta_fields(delta: Any) -> dict[str, Any]:
    """Return the parts of a delta that a client joins."""
    calls = [
        (call.index, call.function and call.function.name, call.function and call.function.arguments)
        for call in delta.tool_calls or ()
    ]
    return {"reasoning": delta.reasoning, "content": delta.content, "calls": calls}
