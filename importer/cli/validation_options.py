"""The options of ``importer validate`` as values, each checked before anything starts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from importer.errors import UsageError
from importer.frozen import frozen

STARTING = ("engine", "port", "fetch")  # for an engine that is started here
ASKED = ("api_key_env", "header_env", "model")  # for a server that runs already


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


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    against, on = arguments.against is not None, arguments.on is not None
    for fields, unfit, problem in (
        (STARTING, against, "is not valid with --against"),
        (ASKED, not against, "is valid with --against only"),
        (("against", "port"), on, "is not valid with --on"),
        (("on_timeout",), not on, "is valid with --on only"),
    ):
        for field in fields if unfit else ():
            if vars(arguments)[field] not in (None, False, []):
                option = f"--{field.replace('_', '-')}"
                raise UsageError("bad-option", option=option, problem=problem)


def chosen_server(arguments: argparse.Namespace) -> Server | None:
    """Return the server of ``--against``; raises UsageError."""
    if arguments.against is None:
        return None
    url, key = _url(arguments.against), _key(arguments.api_key_env)
    return Server(url, key, _headers(arguments.header_env, key))


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
