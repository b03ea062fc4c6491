"""The backends of documents: what importer asks about an engine, answered once for each.

A module asks for a property of a backend and not for its name, so that a further one is declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Backend(NamedTuple):
    """The properties of an engine that documents name as their backend; those of an unknown one are off.

    ``program``       its name for people, as its project writes it.
    ``builds``        the engines that serve it, the one for cards first.
    ``on_cards``      whether it shares a model over NVIDIA's cards.
    ``on_apple``      whether it is one of MLX, for Apple's devices.
    ``by_flag``       whether it is started with the names of its parsers; others infer them from the files.
    ``frontends``     its servers, where there are several.
    ``takes_quantization``  whether it has an option for the quantisation of weights.
    ``planned``       whether its cache, layouts and steps are computed, so that they can be chosen.
    ``shares_evenly`` whether documents have its tensor parallelism alone, and no share of a card.
    ``encoders``      what names its own encoders of chats: a model's ``architecture``, or a ``mode`` of its
                      tokenizer; empty where every chat has a template.
    ``tasks``         whether it serves models that pool or transcribe.
    ``sees``          whether its prompts of images can be asked for.
    ``text_only``     whether it loads no towers of vision and sound.
    ``limits_inputs`` whether inputs of a request have limits, which may be maps.
    ``auto_context``  whether a context may be left to its memory.
    ``adapts``        whether it reads Mistral's own files, overrides of the configuration, scales for its
                      cache, and heads that draft.
    ``begins_chats``  whether its server puts the tokenizer's first token before a rendered chat.
    ``variable``      the only template variable of its command line; ``None`` where all have a place.
    ``globs``         whether it loads every file of weights by a pattern of names.
    ``cut``           its limit of an answer, in tokens, where a request has none.
    ``temperature``   of its server where nothing names one, and ``top_p`` beside it; ``None`` is unknown.
    ``conventions``   importer's conventions for tools that it can read, each with the parser.
    ``in_localai``    what LocalAI does with it: ``checked`` (its configurations are known whole), ``parsers``
                      (read from the options), ``detected`` (by files), ``unpinned`` (gets no commit).
    """

    name: str
    program: str = ""
    builds: tuple[str, ...] = ()
    on_cards: bool = False
    on_apple: bool = False
    by_flag: bool = False
    frontends: tuple[str, ...] = ()
    takes_quantization: bool = False
    planned: bool = False
    shares_evenly: bool = False
    encoders: Literal["", "architecture", "mode"] = ""
    tasks: bool = False
    sees: bool = False
    text_only: bool = False
    limits_inputs: bool = False
    auto_context: bool = False
    adapts: bool = False
    begins_chats: bool = False
    variable: str | None = None
    globs: bool = False
    cut: int | None = None
    temperature: float | None = None
    top_p: float = 1.0
    conventions: Mapping[str, str] = {}
    in_localai: frozenset[str] = frozenset()

    @property
    def infers(self) -> bool:
        """Return whether its server chooses parsers by the model's files."""
        return self.on_apple and not self.by_flag

    @property
    def installed_as(self) -> str:
        """Return the engine to install on any machine."""
        return self.builds[-1] if self.builds else self.name


VLLM = Backend(
    "vllm", "vLLM", ("vllm-cuda", "vllm-cpu"),
    on_cards=True, by_flag=True, frontends=("python", "rust"), takes_quantization=True,
    planned=True, encoders="mode", tasks=True, sees=True, limits_inputs=True, auto_context=True,
    adapts=True, temperature=1.0, conventions={"json": "hermes"},
    in_localai=frozenset({"checked", "parsers", "detected"}),
)  # fmt: skip
MLX = Backend(
    "mlx", "mlx-lm", on_apple=True, text_only=True, globs=True, cut=512, temperature=0.0,
    conventions={"json": "json_tools"}, in_localai=frozenset({"checked", "detected", "unpinned"}),
)  # fmt: skip
MLX_VLM = Backend(
    "mlx-vlm", on_apple=True, sees=True, begins_chats=True, variable="enable_thinking", cut=2048,
    temperature=0.0, conventions={"json": "json_tools"},
    in_localai=frozenset({"checked", "detected", "unpinned"}),
)  # fmt: skip
VLLM_MLX = Backend(
    "vllm-mlx", on_apple=True, by_flag=True, globs=True, begins_chats=True, temperature=0.7, top_p=0.9,
    conventions={"json": "hermes"},
)  # fmt: skip
SGLANG = Backend(
    "sglang", "SGLang", on_cards=True, by_flag=True, takes_quantization=True, shares_evenly=True,
    encoders="architecture", temperature=1.0,
    in_localai=frozenset({"parsers"}),
)  # fmt: skip
BACKENDS: Mapping[str, Backend] = {b.name: b for b in (VLLM, MLX, MLX_VLM, VLLM_MLX, SGLANG)}
NAMES = tuple(BACKENDS)
DEFAULT = VLLM.name  # serves every kind of model; the tables have the names of its parsers


def of(name: object) -> Backend:
    """Return the backend of a name, or of a document's value; one without properties for any other."""
    found = BACKENDS.get(name) if isinstance(name, str) else None
    return found or Backend(str(name))


def serving(engine: str) -> Backend:
    """Return the backend that an engine serves, such as ``vllm`` for ``vllm-cpu``, or that a program is."""
    named = (b for b in BACKENDS.values() if engine in b.builds or engine == b.program)
    return next(named, of(engine))


def serves(engine: object, backend: object) -> bool:
    """Return whether an engine is the backend's, in one of its builds."""
    return serving(str(engine)).name == serving(str(backend)).name
