"""The options of ``importer validate`` as values, each checked before anything starts."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from importer.cli import messages
from importer.document.schema import at, faults
from importer.errors import UsageError
from importer.frozen import frozen

if TYPE_CHECKING:
    from importer.transport.command import RemoteCommand
    from importer.validation.probe import Probe


LONGEST = 1 << 20  # bytes of a question or a tool
TEXTS = (".txt", ".md", ".json", ".prompt")
HERE = {"against": "--against", "port": "--port", "prompt": "--prompt"}  # not for a run elsewhere
STARTING = {"engine": "--engine", "port": "--port", "fetch": "--fetch"}  # for an engine that is started here
REMOTE = {
    "api_key_env": "--api-key-env",
    "header": "--header",
    "header_env": "--header-env",
    "model": "--model",
}  # for one that is not


@frozen
class Server:
    """A running server; ``key`` and ``headers`` are its secrets."""

    url: str
    key: str | None
    headers: Mapping[str, str]

    @property
    def exposed(self) -> bool:
        """Return whether key or headers would be sent where others can read them."""
        parts = urlsplit(self.url)
        here = ("localhost", "127.0.0.1", "::1")
        secret = self.key is not None or bool(self.headers)
        return secret and parts.scheme == "http" and parts.hostname not in here


def required_abilities(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the shares that abilities must reach; raises UsageError for another name or number."""
    from importer.reports.report_model import ABILITIES

    shares: dict[str, float] = {}
    for text in arguments.require:
        name, _, number = text.partition("=")
        share = float(number) if re.fullmatch(r"[01]|0?\.\d+|1\.0+", number) else None
        if name not in ABILITIES or share is None:
            problem = f"needs ABILITY=SHARE: {', '.join(ABILITIES)}, and a number from 0 to 1"
            raise UsageError("bad-option", option="--require", problem=problem)
        shares[name] = share
    return shares


def chosen_server(arguments: argparse.Namespace) -> Server | None:
    """Return the server of ``--against``; raises UsageError for options that do not fit it."""
    options = vars(arguments)
    against = arguments.against is not None
    unfit = STARTING if against else REMOTE
    for field, option in unfit.items():
        if options[field] not in (None, False, []):
            problem = "is not valid with --against" if against else "is valid with --against only"
            raise UsageError("bad-option", option=option, problem=problem)
    if not against:
        return None
    url, key = _url(arguments.against), _key(arguments.api_key_env)
    return Server(url, key, _headers(arguments.header, arguments.header_env, key))


def chosen_command(arguments: argparse.Namespace) -> RemoteCommand | None:
    """Return the command of ``--on``; raises UsageError, also for options that do not fit it."""
    if arguments.on is None:
        if arguments.on_timeout:
            raise UsageError("bad-option", option="--on-timeout", problem="is valid with --on only")
        return None
    from importer.transport.command import parse_command

    for field, option in HERE.items():
        if vars(arguments)[field] not in (None, []):
            raise UsageError("bad-option", option=option, problem="is not valid with --on")
    return parse_command(arguments.on)


def chosen_probes(arguments: argparse.Namespace) -> tuple[Probe, ...] | None:
    """Return the chosen probes, ``None`` for all; raises UsageError."""
    from importer.validation.registry import named, own_question

    if arguments.tool and arguments.prompt is None:
        raise UsageError("bad-option", option="--tool", problem="is valid with --prompt only")
    if not arguments.probe and arguments.prompt is None:
        return None
    own: tuple[Probe, ...] = ()
    if arguments.prompt is not None:
        own = (own_question(_question(arguments.prompt), tuple(_tool(path) for path in arguments.tool)),)
    return (*named(arguments.probe), *own)


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not (sound and text.isascii() and text.isprintable() and " " not in text):
        problem = "must be an address such as http://127.0.0.1:8000"
    elif "@" in parts.netloc:
        problem = "must not hold a password; name a variable with --api-key-env"
    elif parts.query or parts.fragment:
        problem = "must not have a query or a fragment"
    else:
        return text
    raise UsageError("bad-option", option="--against", problem=problem)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        problem = f"the environment variable {variable} is not set"
    elif not (key.isascii() and key.isprintable()) or set(key) & set(' "\\'):
        problem = f"the value of {variable} is not a valid key"
    else:
        return key
    raise UsageError("bad-option", option="--api-key-env", problem=problem)


def _headers(written: Sequence[str], named: Sequence[str], key: str | None) -> dict[str, str]:
    """Return the headers of ``Name: value`` and ``NAME=VARIABLE``; no error shows a value."""
    from importer.validation.client import checked

    if any(":" not in text for text in written):
        problem = "must be the name of a header, a colon and its value"
        raise UsageError("bad-option", option="--header", problem=problem)
    pairs = [(name.strip(), value) for name, _, value in (text.partition(":") for text in written)]
    for text in named:
        name, _, variable = text.partition("=")
        if not variable:
            problem = "must be the name of a header and of an environment variable, as in X-Key=MY_KEY"
            raise UsageError("bad-option", option="--header-env", problem=problem)
        if variable not in os.environ:
            problem = f"the environment variable {variable} is not set"
            raise UsageError("bad-option", option="--header-env", problem=problem)
        pairs.append((name.strip(), os.environ[variable]))
    return checked(pairs, key=key is not None)


def _question(prompt: str) -> str:
    """Return the text, or what the file of that name holds."""
    path = Path(prompt)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a text can be too long for a name
        is_file = False
    if not is_file and path.suffix in TEXTS and not any(c.isspace() for c in prompt):
        raise UsageError("bad-option", option="--prompt", problem=f"file not found: {prompt}")
    text = _read(path, "--prompt") if is_file else prompt
    if not text.strip() or any("\ud800" <= c <= "\udfff" for c in text):
        raise UsageError("bad-option", option="--prompt", problem="is empty or not text")
    return text


def _read(path: Path, option: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise UsageError("bad-option", option=option, problem=f"{path} is larger than {LONGEST} bytes")
        return data.decode()
    except OSError as error:
        raise UsageError("bad-option", option=option, problem=f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("bad-option", option=option, problem=f"{path} is not UTF-8 text") from None


def _tool(name: str) -> Any:
    """Return an OpenAI tool from a file; its parameters are a sound schema that refers to nothing
    elsewhere.
    """
    try:
        tool = json.loads(_read(Path(name), "--tool"))
    except (ValueError, RecursionError):
        raise UsageError("bad-option", option="--tool", problem=f"{name} is not valid JSON") from None
    for fault in faults("tool", tool):
        wrong = messages.text(at(fault.path, fault.message))
        raise UsageError("bad-option", option="--tool", problem=f"{name} {wrong}")
    problem = _unsound(tool["function"].get("parameters", {}))
    if problem is not None:
        raise UsageError("bad-option", option="--tool", problem=f"{name} at function.parameters: {problem}")
    return tool


def _unsound(schema: dict[str, object]) -> str | None:
    """Return why arguments cannot be judged by a schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if any(not reference.startswith("#") for reference in _references(schema)):
        return "refers to a schema elsewhere"
    try:
        Draft202012Validator.check_schema(schema)
        registry = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema))
        resolver = registry.resolver()
        for reference in _references(schema):
            resolver.lookup(reference)
        Draft202012Validator(schema).is_valid({})
    except SchemaError as error:
        return error.message[:200]
    except Unresolvable as error:
        return f"reference not found: {error.ref}"
    except RecursionError:
        return "refers to itself without end"
    return None


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
