"""The tokens that an engine's parsers work with: those of a repository's tokenizer, or its declared ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from importer.frozen import frozen

RENDERING = ("vllm", "mlx", "mlx-vlm")  # engines whose worker renders prompts


@frozen
class Tokens:
    """The source of the worker's tokenizer: a folder with that of the repository, else the declared markers.

    ``tokens``      (text, special): exactly these are single tokens.
    ``model_type``  that of the config, by which the server recognises harmony.
    ``settings``    ``tokenizer_config.json``, with the keys that parsers read: ``response_template``,
                    ``tool_parser_type``, ``token_suffix``.
    ``assumed``     the repository declares no vocabulary: markers that a parser needs are assumed.
    """

    directory: Path | None = None
    tokens: tuple[tuple[str, bool], ...] = ()
    eos: str | None = None
    bos: str | None = None
    chat_template: str | None = None
    model_type: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    assumed: bool = False
