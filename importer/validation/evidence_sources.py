"""What is known of a served model beside its API.

The make and version of a running server, from what it shows in its ordinary answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from importer.chat_template.study import TemplateAnalysis
from importer.engines.tokenizer import Ask, MergedWords, TokenTable
from importer.frozen import frozen
from importer.memory.estimate_types import Figure
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation.client import Client, Exchange
from importer.validation.engine_log import Journal
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason
from importer.validation.likelihood import Likelihood
from importer.validation.offline_parsers import OfflineParsers
from importer.validation.prompts import GREETING, Prompt
from importer.validation.served_engine import Controls

NO_TOKENIZER = Reason(CommonReason.NO_TOKENIZER)


class Render(Protocol):
    """A renderer of prompts with the chat template of the served model."""

    @property
    def bos(self) -> str:
        """Return the token that begins a text; an engine may add it by itself. May be empty."""

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the tokens that end an answer, as the repository names them."""

    @property
    def digest(self) -> str:
        """Return the digest of the template, as a proof names it."""

    @property
    def place(self) -> str:
        """Return the template's file where several stand beside one another; else empty."""

    @property
    def analysis(self) -> TemplateAnalysis | None:
        """Return the analysis of the template, as a proof has it; ``None`` without a template."""

    @property
    def claimed(self) -> str | None:
        """Return the tool parser that the repository names for engines that infer theirs."""

    @property
    def files(self) -> Mapping[str, str]:
        """Return hashes of the files that the engine reads beside the weights, by name."""

    @property
    def others(self) -> tuple[str, ...]:
        """Return files that hold another template than the rendered one."""

    @property
    def text(self) -> str:
        """Return the template of requests with tools; empty where there is none."""

    def under(self, text: str, /) -> AbstractContextManager[Render]:
        """Return the rendering with another template."""

    def dressed(self, convention: str, /) -> str | None:
        """Return the template under one of importer's conventions; ``None`` where they do not fit."""

    def knows(self, variable: str, /) -> bool:
        """Return whether the template names a variable."""

    def at(self, prompt: Prompt, later: float, /, *, template: str | None = None) -> str | None:
        """Return the text of the prompt, rendered ``later`` seconds after the fixed time.

        ``template``  in place of the model's own.
        """

    def __call__(self, prompt: Prompt, /) -> str | None:
        """Return the text of the prompt, ``None`` where it is unknown; raises TemplateRefusedError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What is known of a served model beside its API; each part may be unknown.

    ``render``    renders a prompt with the template of the model.
    ``proof``     the parsers that read the model's template, where a proof was made.
    ``journal``   the log of the engine, where it is readable.
    ``memory``    returns the bytes that the engine's processes hold, where it runs on this machine.
    ``fit``       returns predicted and reported memory, as ``fit.compare`` does.
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
    ``likelihood``  figures of the first validated run, and of this one as they are measured.
    """

    render: Render | None = None
    proof: Proof | None = None
    journal: Journal | None = None
    memory: Callable[[], int | None] | None = None
    fit: Callable[[], Mapping[str, Figure]] | None = None
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
    likelihood: Likelihood = field(default_factory=Likelihood)


OWNERS = ("vllm", "vllm-mlx", "sglang")  # they own their models by their own name
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
        return Make("mlx-vlm", header[1])
    owners = {entry.get("owned_by") for entry in _entries(listed)}
    if (engine := next((name for name in OWNERS if name in owners), None)) is not None:
        return Make(engine, version(client))
    greeting = {"model": model, "messages": list(GREETING.messages), "max_tokens": 1}
    try:
        answer = client.post("/v1/chat/completions", greeting, log)
    except ExchangeError:
        return None
    shown = FINGERPRINT.match(str(answer.get("system_fingerprint"))) if isinstance(answer, dict) else None
    return None if shown is None else Make("mlx", shown[1])


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
