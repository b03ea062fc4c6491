"""The parts of each engine that its parsers and its rendering of prompts are made of.

One list serves the releases of an engine that have a registry; ``python -m gen_defaults`` tries a new one.
"""

from __future__ import annotations

import re
from typing import NoReturn

from .sglang_parts import SGLANG
from .stand_ins import ABSENT, Parts


def _no_processor(*_arguments: object, **_options: object) -> NoReturn:
    """Raise what the engine does where a model has no files of a processor."""
    raise OSError("no processor is loaded here")


VLLM = Parts(
    "vllm",
    re.compile(r"""vllm(\.(
        version|_version|envs|exceptions|logger|logging_utils(\..*)?|logprobs|sampling_params
        |(tool_parsers|reasoning|parser|tokenizers|renderers)(\..*)?
        |entrypoints|entrypoints\.(openai|generate|serve|mcp|cohere|chat_utils|anthropic)(\..*)?
        |utils
        |utils\.(mistral|import_utils|collection_utils|func_utils|math_utils|cache|counter|jsontree|hashing|registry)
        |transformers_utils
        |transformers_utils\.(config|repo_utils|utils|config_parser_base|dynamic_module)
        |transformers_utils\.(configs|tokenizers|chat_templates|tokenizer\w*)(\..*)?
        |inputs|inputs\.(llm|engine)
        |v1\.engine\.detokenizer
        |v1\.structured_output\.(backend_xgrammar|utils|backend_types|request)
    ))?""", re.VERBOSE),
    "vllm/entrypoints/openai/chat_completion/protocol.py",
    ABSENT,
    borrowed=(
        "vllm.config.utils.replace", "vllm.config.utils.getattr_iter",
        "vllm.multimodal.media.connector.merge_media_io_kwargs",
        "vllm.multimodal.media.base.MediaDecodedBudget", "vllm.connections.MediaRequestDownloadBudget",
    ),
    given=lambda _root: {
        "vllm.transformers_utils.processor.cached_get_processor": _no_processor,
        "vllm.distributed.parallel_state.is_local_first_rank": lambda: True,  # its log asks
        "vllm.distributed.parallel_state.is_global_first_rank": lambda: True,
    },
    idle=("vllm.entrypoints.openai.responses.protocol", "openai.types.responses"),
)  # fmt: skip
PARTS = {parts.engine: parts for parts in (VLLM, SGLANG)}
