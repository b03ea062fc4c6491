"""What an engine is to the importer: how it is installed, started, awaited, and what its log means."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from importer.config_file import field_paths, template_file
from importer.config_file.template_file import ChatTemplate
from importer.engines.deaths import Death
from importer.errors import DocumentError
from importer.reasons import Reason

TEMPLATE = "chat_template.jinja"
TEMPLATES = (TEMPLATE, "chat_template.json", "additional_chat_templates")
SETTINGS = ("tokenizer_config.json", "processor_config.json")  # which may hold a template under a key


def dressed(model_dir: Path, template: str, folder: Path) -> Path:
    """Return a new folder in ``folder`` with links to the model's files, and ``template`` in place of its
    own.
    """
    made = folder / model_dir.resolve().name
    made.mkdir()
    for file in model_dir.resolve().iterdir():
        if file.name in SETTINGS and (bare := _without_template(file)) is not None:
            (made / file.name).write_text(bare, encoding="utf-8")
        elif file.name not in TEMPLATES:
            (made / file.name).symlink_to(file)
    (made / TEMPLATE).write_text(template, encoding="utf-8")
    return made


def _without_template(file: Path) -> str | None:
    """Return the settings without a template; ``None`` where they hold none."""
    with suppress(OSError, ValueError, RecursionError):
        settings = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(settings, dict) and settings.pop("chat_template", None) is not None:
            return json.dumps(settings)
    return None


Document = Mapping[str, Any]
Pip = tuple[str, ...]
WORD = re.compile(r"[A-Za-z0-9][\w.+:-]*")


@dataclass(frozen=True, slots=True)
class Step:
    """A pip command that may go another way.

    ``otherwise``  is run where ``pip`` fails.
    ``unless``     Python code; where the new environment runs it without an error, the step is left out.
    """

    pip: Pip
    otherwise: Pip | None = None
    unless: str | None = None


Plan = tuple[Pip | Step, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start: ``arguments`` after the environment's Python, variables to add, the name requests use.

    ``files`` are written into its working folder before: name to text.
    """

    arguments: tuple[str, ...]
    model: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; by default only this machine can reach it."""

    host: str = "127.0.0.1"
    port: int = 8000


@dataclass(frozen=True, slots=True)
class Readiness:
    """When an engine serves.

    ``path``      answers 200 to a GET.
    ``fatal``     statuses of ``path`` that mean it never will.
    ``warm_up``   path and body of a request to POST then, for engines that answer before the model is loaded.
    ``seconds``   to wait at most, unless the caller says otherwise.
    """

    path: str = "/health"
    fatal: tuple[int, ...] = ()
    warm_up: tuple[str, Mapping[str, Any]] | None = None
    seconds: float = 300.0


class Unstartable(StrEnum):
    """Why an engine cannot be started with a document."""

    CODE_IN_MODEL_FILE = "code-in-model-file"
    FLAG_FOR_VLLM = "flag-for-vllm"
    FLAG_NOT_ALLOWED = "flag-not-allowed"
    LAYERS_OR_PARTS = "layers-or-parts"
    MODEL_IS_OPTION = "model-is-option"
    MODEL_UNPRINTABLE = "model-unprintable"
    NOT_A_FILE = "not-a-file"
    NOT_A_NAME = "not-a-name"
    NOT_A_NUMBER = "not-a-number"
    NOT_A_SWITCH = "not-a-switch"
    NOT_A_VERSION = "not-a-version"
    NOT_IN_CONFIG_FILE = "not-in-config-file"
    NOT_ONE_OF = "not-one-of"
    NOT_RANKS = "not-ranks"
    NO_ARGUMENT = "no-argument"
    NO_OPTION = "no-option"
    NO_TEMPLATE = "no-template"
    SPECULATION = "speculation"
    TEMPLATE_TOO_LONG = "template-too-long"
    VARIABLE_LOST = "variable-lost"


# What a server may offer beyond a plain chat; docs/engines.md shows which engine does.
OFFERS: dict[str, str] = {
    "completions": "plain completions of a prompt given as text",
    "tool-choice": "tool_choice: required, none, or one function by name",
    "structured": "an answer shaped by a JSON schema",
    "guided": "an answer shaped by a choice, a regular expression or a grammar",
    "logprobs": "log-probabilities of what was written",
    "drawn": "log-probabilities of the tokens that were drawn, not of the likeliest ones",
    "usage": "the same counts of tokens, whole and streamed",
    "stop": "stop strings that end an answer wherever they fall",
    "penalties": "repetition, presence and frequency penalties",
    "tokenize": "text to tokens and back",
    "cached": "how many prompt tokens came from its cache",
    "messages": "Anthropic's messages and their token count",
    "switches": "template variables in a request",
    "limit": "refuses a prompt that is longer than the context",
    "metrics": "its memory and KV cache in its log or its metrics",
    "images": "images, where the model sees",
}


class Engine(Protocol):
    """One engine. Adding one is a module with such a class and a line in ``importer.engines.ENGINES``."""

    @property
    def name(self) -> str:
        """Return the backend's name in documents."""

    @property
    def distributions(self) -> tuple[str, ...]:
        """Return the packages that may provide it; the first that is there gives the version."""

    @property
    def readiness(self) -> Readiness:
        """When it serves."""

    @property
    def deaths(self) -> tuple[Death, ...]:
        """Return what its log says when it dies, most telling first."""

    @property
    def offers(self) -> frozenset[str]:
        """Return which of ``OFFERS`` its server has."""

    @property
    def system(self) -> tuple[tuple[str, str], ...]:
        """Libraries of the system that its wheels leave out, each with Debian's package that has it."""

    @property
    def takes_template(self) -> bool:
        """Return whether it can be started with a chat template; else the model's folder is dressed with
        it.
        """

    def plan(self) -> Plan:
        """Return the pip commands that make its environment on this machine, in order, versions pinned."""

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> Launch:
        """Start ``document`` from the weights in ``model_dir``, with the template that it names.

        Raises DocumentError("invalid").
        """

    def client_sampling(self, document: Document) -> dict[str, Any]:
        """``parameters`` and ``stopwords`` that it cannot be started with, under the document's names."""


def steps(engine: Engine) -> tuple[Step, ...]:
    """Return the plan with every command as a step."""
    return tuple(step if isinstance(step, Step) else Step(step) for step in engine.plan())


# Values that change nothing, so that nobody has to send them.
NEUTRAL = {"repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}


def parameters(document: Document) -> dict[str, Any]:
    """``parameters`` of a document, unset ones left out."""
    return {k: v for k, v in (document.get("parameters") or {}).items() if v is not None}


def unset(document: Document) -> set[str]:
    """``parameters`` that a document says to be none: not even the value in the model's own files."""
    said = (document.get("importer") or {}).get("unset") or ()
    return {key for key in said if key not in parameters(document)}


def stopwords(document: Document) -> dict[str, Any]:
    """Return the stop words as a request has them, where there are any."""
    words = [w for w in document.get("stopwords") or () if isinstance(w, str) and w]
    return {"stopwords": words} if words else {}


def numeric_options(document: Document, known: tuple[str, ...], server: str) -> Iterator[str]:
    """``engine_args`` as options of a server that takes numbers; raises DocumentError("invalid").

    Flags among ``options`` are for vLLM alone.
    """
    flag = next((o.key for o in field_paths.of(document) if o.key.startswith("--")), None)
    if flag is not None:
        raise invalid(document, Reason(Unstartable.FLAG_FOR_VLLM, flag=flag, server=server))
    for key, value in (document.get("engine_args") or {}).items():
        if key not in known:
            raise invalid(document, Reason(Unstartable.NO_OPTION, key=key, server=server, known=known))
        yield "--" + key.replace("_", "-")
        yield number(document, f"engine_args.{key}", value)


def sent_by_client(document: Document, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of ``names`` that the document sets to something that matters."""
    given = parameters(document)
    return {n: given[n] for n in names if n in given and given[n] != NEUTRAL.get(n)}


def number(document: Document, key: str, value: object) -> str:
    """Return a number as an argument; anything else raises DocumentError("invalid"), so no value becomes a
    flag.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise invalid(document, Reason(Unstartable.NOT_A_NUMBER, key=key, value=value))
    return str(int(value)) if value.is_integer() else str(value)


def word(document: Document, key: str, value: object) -> str:
    """Return a name as an argument; raises DocumentError("invalid") for what could be more than that."""
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise invalid(document, Reason(Unstartable.NOT_A_NAME, key=key, value=value))
    return value


def given_template(document: Document, template: ChatTemplate | None) -> ChatTemplate | None:
    """Return the template to start with; raises DocumentError("invalid") where the named one is not given."""
    if template_file.named(document) and template is None:
        raise invalid(document, Reason(Unstartable.NO_TEMPLATE, key=template_file.KEY))
    return template


def invalid(document: Document, problem: Reason) -> DocumentError:
    """Return the error for a document that an engine cannot be started with."""
    return DocumentError("invalid", path=document.get("name") or "The document", problem=problem)
