"""The interface of an engine: its installation, start, readiness, and the meaning of its log.

``engine_args`` as words of a command line, by the arguments of the engine's version.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, cast

from importer import backends
from importer.document import argument_check, check, engine_data, environment, schema, template_file
from importer.document.document import Document, Setting, Settings
from importer.document.engine_arguments import Argument, version_of
from importer.document.template_file import ChatTemplate
from importer.engines import deaths
from importer.engines.deaths import Death
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

TEMPLATE = "chat_template.jinja"
Pip = tuple[str, ...]


@frozen
class Step:
    """A pip command with an alternative.

    ``otherwise``  the command after a failure of ``pip``.
    ``unless``     Python code; the step is skipped where the new environment runs it without an error.
    """

    pip: Pip
    otherwise: Pip | None = None
    unless: str | None = None


Plan = tuple[Step, ...]


@frozen
class Launch:
    """The start of a server: ``arguments`` after the environment's Python, variables, the name for requests.

    ``files``  texts by name, written into the working folder before the start.
    """

    arguments: tuple[str, ...]
    model: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@frozen
class Address:
    """The address of a server; by default only this machine can reach it."""

    host: str = "127.0.0.1"
    port: int = 8000


@frozen
class Readiness:
    """The sign that an engine serves.

    ``path``      answers 200 to a GET.
    ``fatal``     statuses of ``path`` after which it never serves.
    ``warm_up``   path and body of a POST after that, for engines that answer before the model is loaded.
    ``seconds``   the default limit of the wait.
    """

    path: str = "/health"
    fatal: tuple[int, ...] = ()
    warm_up: tuple[str, Mapping[str, object]] | None = None
    seconds: float = 300.0


class Unstartable(ReasonKind):
    """Why an engine cannot be started with a document."""

    CODE_IN_MODEL_FILE = (
        "config.json has model_file, code that {server} runs at its start: trust_remote_code allows it"
    )
    MACRO = "{value!r} holds a variable of llama-swap, which has no escape"
    OTHER_TYPE = "{key} is {value!r} and not {wanted}"
    NOT_IN_CONFIG_FILE = "{key} is {value}, which vLLM's configuration file cannot say"
    NO_RUST_FRONTEND = "importer.engine.frontend is 'rust', and vLLM has it from 0.33 on, not in {version}"
    NO_TEMPLATE = "importer.{key} names a template, and none is there"
    NO_TOKENIZER_CONFIG = "importer.{key} belongs into the model's {file}, which is missing or cannot be read"
    TEMPLATE_TOO_LONG = "its chat template has more than {limit:,} bytes"
    VARIABLE_LOST = "chat_template_kwargs.{key} does not reach the template on mlx-vlm, only {only} does"


# Features beyond a plain chat; docs/reference-tables.md has those of each engine.
OFFERS: dict[str, str] = {
    "completions": "plain completions of a prompt given as text",
    "tool-choice": "tool_choice: required, none, or one function by name",
    "structured": "an answer shaped by a JSON schema",
    "logprobs": "log-probabilities of what was written",
    "drawn": "log-probabilities of the tokens that were drawn, not of the likeliest ones",
    "bias": "a bias of single tokens in a request",
    "seed": "answers that one seed repeats",
    "usage": "the same counts of tokens, whole and streamed",
    "renamed-limit": "the limit of an answer by its newer name, max_completion_tokens",
    "stop": "stop strings that end an answer wherever they fall",
    "top-k": "top_k",
    "penalties": "repetition, presence and frequency penalties",
    "cut-calls": "a call that the limit of tokens cuts, reported as cut, whole and streamed",
    "tools-as-sent": "tools in the prompt with their keys in the order of the request",
    "tokenize": "text to tokens and back",
    "cached": "how many prompt tokens came from its cache",
    "messages": "Anthropic's messages",
    "counts": "the token count of Anthropic's messages, equal to that of the answer",
    "responses": "OpenAI's responses, whole and streamed",
    "call-pieces": "a call in streamed responses, in pieces that add up",
    "switches": "template variables in a request",
    "limit": "refuses a prompt that is longer than the document's context",
    "metrics": "its memory and KV cache in its log or its metrics",
    "images": "images, where the model sees",
    "random-weights": "a start with random weights, whose log says the memory it takes",
}


class Environment(Protocol):
    """What is installed into an environment of its own.

    ``name``           its name: of an engine the backend in documents.
    ``distributions``  the packages that may provide it; the first installed one has the version.
    """

    @property
    def name(self) -> str: ...
    @property
    def distributions(self) -> tuple[str, ...]: ...

    def plan(self) -> Plan:
        """Return the pip commands for its environment on this machine, in order, versions pinned."""


@frozen
class Engine(ABC):
    """One engine. A new one is a module with a class of this kind and a line in ``importer.engines.ENGINES``.

    ``readiness``       the sign that it serves.
    ``takes_template``  whether it can be started with a chat template; else a copy of the model's folder gets
                        it.
    ``needs_card``      whether its server runs on cards only; its parsers may be installed without one.
    ``system``          system libraries that its wheels leave out, each with the package of Debian.
    ``per_request``     ``parameters`` that it cannot be started with; ``stops`` is whether requests have stop
                        words.
    """

    name: str
    distributions: tuple[str, ...]
    readiness: Readiness = Readiness()
    takes_template: bool = False
    needs_card: bool = False
    system: tuple[tuple[str, str], ...] = ()
    per_request: tuple[str, ...] = ()
    stops: bool = True

    @property
    def deaths(self) -> tuple[Death, ...]:
        """Return the known causes of its end in its log, the most specific first."""
        return deaths.of_backend(backends.serving(self.name).name)

    @property
    def offers(self) -> frozenset[str]:
        """Return the features of its server, out of ``OFFERS``."""
        offered = engine_data.load(backends.serving(self.name).name).offers
        return frozenset(OFFERS) if engine_data.ALL in offered else offered

    @abstractmethod
    def plan(self) -> Plan:
        """Return the pip commands for its environment on this machine, in order, versions pinned."""

    @abstractmethod
    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> Launch:
        """Return the start of ``document`` on loopback, from the weights in ``model_dir``, with the template
        of the document.

        Raises DocumentError("invalid").
        """

    def client_sampling(self, document: Document) -> dict[str, Setting]:
        """Return ``parameters`` and ``stopwords`` that it cannot be started with, under the document's
        names.
        """
        return sent_by_client(document, self.per_request) | (stopwords(document) if self.stops else {})


def locked(lock: Path) -> Step:
    """Return the install of a lock file as it stands: each package by its hash, none resolved anew.

    pip may take a later release of a package that another one wants with an extra, and then refuses it.
    """
    return Step(("install", "--require-hashes", "--no-deps", "--requirement", str(lock)))


# The request's names of ``parameters`` and stop words, where the document's differ.
REQUEST_NAMES = {"repeat_penalty": "repetition_penalty", "stopwords": "stop"}
# Values without an effect, so that no client has to send them.
NEUTRAL = {"repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}


def parameters(document: Document) -> dict[str, Setting]:
    """Return the ``parameters`` of a document without null values."""
    values = cast("Settings", document.get("parameters") or {})
    return {k: v for k, v in values.items() if v is not None}


def unset(document: Document) -> set[str]:
    """Return ``parameters`` that a document sets to none: even the value in the model's own files is
    dropped.
    """
    keys = (document.get("importer") or {}).get("unset") or ()
    return {key for key in keys if key not in parameters(document)}


def stopwords(document: Document) -> dict[str, list[str]]:
    """Return the stop words in the form of a request, where there are any."""
    words = [w for w in document.get("stopwords") or () if isinstance(w, str) and w]
    return {"stopwords": words} if words else {}


def as_request(values: Mapping[str, object]) -> dict[str, object]:
    """Return values of a document under the names of a request."""
    return {REQUEST_NAMES.get(key, key): value for key, value in values.items()}


def sent_by_client(document: Document, names: tuple[str, ...]) -> dict[str, Setting]:
    """Return those of ``names`` that the document sets to a value with an effect."""
    values = parameters(document)
    return {n: values[n] for n in names if n in values and values[n] != NEUTRAL.get(n)}


def number(document: Document, key: str, value: object) -> str:
    """Return a number as an argument; raises DocumentError("invalid") for others, so no value becomes a
    flag.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise invalid(document, Reason(Unstartable.OTHER_TYPE, key=key, value=value, wanted="a number"))
    return str(int(value)) if value.is_integer() else str(value)


def word(document: Document, key: str, value: object) -> str:
    """Return a name as an argument; raises DocumentError("invalid") for a text that could be more."""
    if not isinstance(value, str) or not check.WORD.fullmatch(value):
        raise invalid(document, Reason(Unstartable.OTHER_TYPE, key=key, value=value, wanted="a name"))
    return value


def limits(document: Document, engine: str) -> Iterator[str]:
    """Yield an option for each number, word and object of a document that the engine has one for.

    Raises DocumentError("invalid").
    """
    options = engine_data.load(engine).options
    size = document.get("context_size")
    if document.get(check.CONTEXT) is None and size is not None:
        yield f"--{options['numbers'][check.CONTEXT]}={number(document, 'context_size', size)}"
    for key, flag in options["numbers"].items():
        value = document.get(key)
        auto = (key, value) == (check.CONTEXT, check.AUTO) and backends.of(engine).auto_context
        if value is not None:
            yield f"--{flag}={value if auto else number(document, key, value)}"
    for key, flag in options["words"].items():
        if document.get(key) is not None:
            yield f"--{flag}={word(document, key, document.get(key))}"
    for key, flag in options["objects"].items():
        if document.get(key):
            yield f"--{flag}={json.dumps(document.get(key))}"


def sampling(document: Document, engine: str) -> Iterator[Words]:
    """Yield an option for each sampling value; a negative ``top_k`` (none, as vLLM writes it) becomes 0.

    Raises DocumentError("invalid").
    """
    values = parameters(document)
    for key, flag in engine_data.load(engine).options["sampling"].items():
        if key in values:
            text = number(document, f"parameters.{key}", values[key])
            yield f"--{flag}", ["0" if key == "top_k" and text.startswith("-") else text]


def required_template(document: Document, template: ChatTemplate | None) -> ChatTemplate | None:
    """Return the template to start with; raises DocumentError("invalid") where the named one is missing."""
    if template_file.named(document) and template is None:
        raise invalid(document, Reason(Unstartable.NO_TEMPLATE, key=template_file.KEY))
    return template


def invalid(document: Document, problem: Reason) -> DocumentError:
    """Return the error for a document that an engine cannot be started with."""
    return DocumentError("invalid", path=document.get("name") or "The document", problem=problem)


Words = tuple[str, list[str]]  # a flag, and the words behind it


def checked(document: Document, engine: str) -> None:
    """Raise DocumentError("invalid") for arguments and variables that the engine's version refuses."""
    version = version_of(document)
    arguments = document.get(argument_check.KEY) or {}
    for path, reason in argument_check.faults(engine, version, arguments):
        raise invalid(document, schema.at((argument_check.KEY, *path), reason))
    for path, reason in environment.faults(engine, version, document.get(environment.KEY) or {}):
        raise invalid(document, schema.at((environment.KEY, *path), reason))


def written(document: Document, engine: str, leave: tuple[str, ...] = ()) -> Iterator[Words]:
    """Yield each argument with its words, without ``leave``; raises what ``checked`` raises."""
    checked(document, engine)
    for name, value in (document.get(argument_check.KEY) or {}).items():
        argument = argument_check.known(engine, version_of(document), name)
        if value is not None and argument is not None and argument.name not in leave:
            yield from _words(argument, value)


def joined(pairs: Iterator[Words]) -> Iterator[str]:
    """Yield ``--flag=value`` for one value, else the flag and its values as words of their own."""
    for flag, values in pairs:
        yield from [f"{flag}={values[0]}"] if len(values) == 1 else [flag, *values]


def apart(pairs: Iterator[Words]) -> Iterator[str]:
    """Yield every flag and value as a word of its own."""
    for flag, values in pairs:
        yield from (flag, *values)


def grouped(words: list[str]) -> Iterator[Words]:
    """Yield the flags of a command line, each with its values; the reverse of ``joined``."""
    flag, values = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            values.append(word)
            continue
        if flag:
            yield flag, values
        flag, equals, text = word.partition("=")
        values = [text] if equals else []


def _words(argument: Argument, value: Any) -> Iterator[Words]:
    value = [value] if argument.many and not isinstance(value, list) else value
    flag = argument.flag or f"--{argument.name.replace('_', '-')}"
    if isinstance(value, bool):
        chosen = argument.flag if value else argument.off
        yield from [(chosen, [])] if chosen else []
    elif isinstance(value, list) and argument.repeats:
        yield from ((flag, [_text(one)]) for one in value)
    elif isinstance(value, list) and argument.many:
        yield from [(flag, [_text(one) for one in value])] if value else []
    elif isinstance(value, list) and argument.commas:
        yield flag, [",".join(map(_text, value))]
    else:
        yield flag, [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, Mapping | list | bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
