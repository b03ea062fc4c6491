"""The options of ``importer validate`` as values, each checked before anything starts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from importer.errors import UsageError
from importer.frozen import frozen

if TYPE_CHECKING:
    from importer.transport.command import RemoteCommand
    from importer.validation.probe import Probe


HERE = {"against": "--against", "port": "--port"}  # not for a run elsewhere
STARTING = {"engine": "--engine", "port": "--port", "fetch": "--fetch"}  # for an engine that is started here
REMOTE = {
    "api_key_env": "--api-key-env",
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
    return Server(url, key, _headers(arguments.header_env, key))


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
    from importer.validation.registry import named

    return named(arguments.probe) if arguments.probe else None


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


def _headers(named: Sequence[str], key: str | None) -> dict[str, str]:
    """Return the headers of ``NAME=VARIABLE``; no error shows a value."""
    from importer.validation.client import checked

    pairs = []
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
