"""Every command: its line in the help, its heading, and the functions in its module.

The module has ``add_arguments_NAME(parser)`` for each command of the heading, and ``run_NAME(arguments)``
where ``RUN`` has nothing. The modules stay light: what a command needs is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """``usage`` and ``help`` are its line; ``names_one``: its first word is one model or document."""

    usage: str
    help: str
    names_one: bool = False


class Action(NamedTuple):
    """What a command, or a word behind it such as 'keys' of 'info', does; ``run`` may return an exit code."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


COMMANDS: Mapping[str, Command] = {
    "import": Command(
        "REFERENCE", "decide, review, write, validate; the word 'import' may be left out", True
    ),
    "list": Command("", "list the documents, their review and their validation"),
    "show": Command("NAME", "print one document with its decisions and probes", True),
    "why": Command("NAME [KEY]", "say why a document has its values, and what came next", True),
    "review": Command(
        "NAME", "accept, edit or reject one document; --approve and --reject ask nothing", True
    ),
    "recheck": Command("[NAME...]", "show what an import would change now", True),
    "export": Command("NAME|FILE FORMAT", "write it for another consumer; --list shows the formats", True),
    "report": Command("NAME|FILE", "write its validations as text, JSON, JUnit XML or a page", True),
    "fit": Command(
        "NAME|FILE", "print its memory, or measure it with random weights; --devices: all devices", True
    ),
    "validate": Command("NAME|FILE", "run a document and probe it", True),
    "run": Command("NAME|FILE", "serve it, and print a request for it; --chat talks to it", True),
    "engine": Command("install|list|remove", "manage the engines' environments"),
    "doctor": Command("[NAME|FILE]", "find what would stop a run", True),
    "serve": Command("", "run the gallery service: REST, jobs, review, a gallery for LocalAI"),
    "admin": Command(
        "worker|api-keys|backup|audit", "administer the service: its workers, keys, database and log"
    ),
    "gallery": Command(
        "check|diff|build", "check a gallery in git, compare two, or write it as static pages"
    ),
    "info": Command(
        "keys|devices|parsers|match", "list settings, devices and parsers, or match names against the tables"
    ),
    "demo": Command("", "import, validate and show a small model that ships with importer"),
    "completion": Command("bash|zsh|fish", "print a completion script for a shell"),
}


# The headings of the help, each with its module; a command of none has a module of its own.
GROUPS = {
    "documents": ("list", "show", "why", "review", "recheck", "export", "report"),
    "engines": ("fit", "validate", "run", "engine", "doctor"),
    "service": ("serve", "admin"),
}
# The function of ``importer.cli`` that runs a command, where its module has none.
RUN = {
    "review": "reviewing.review", "recheck": "rechecking.recheck",
    "export": "exporting.run", "report": "reporting.run", "fit": "fitting.fit",
    "validate": "validating.validate", "run": "running.run",
}  # fmt: skip
# Words that are no command, with what is meant by them.
MEANT = {
    "approve": "review NAME --approve", "reject": "review NAME --reject NOTE",
    "help": "--help", "version": "--version",
}  # fmt: skip


def action(name: str) -> Action:
    """Return what a command does."""
    own = "import_" if name == "import" else name
    heading = next((one for one, names in GROUPS.items() if name in names), own)
    found = import_module(f"importer.cli.commands.{heading}")
    run = getattr(found, f"run_{name}", None) or partial(_run, RUN.get(name, ""))
    return Action(COMMANDS[name].help, getattr(found, f"add_arguments_{name}"), run)


def _run(place: str, arguments: argparse.Namespace) -> int | None:
    """Run a function of the command line, else the action behind the command, such as 'list' of 'engine'."""
    module, _, name = place.partition(".")
    run = getattr(import_module(f"importer.cli.{module}"), name) if place else arguments.act
    code: int | None = run(arguments)
    return code


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, Action]) -> None:
    """Add a parser for each action of a command; ``act`` is what the chosen one runs."""
    below = parser.add_subparsers(metavar="|".join(actions), required=True)
    for name, one in actions.items():
        made = below.add_parser(name, help=one.help, description=described(one.help), allow_abbrev=False)
        made.set_defaults(act=one.run)
        one.add_arguments(made)


def described(about: str) -> str:
    """Return a line of help as a sentence."""
    return f"{about[0].upper()}{about[1:]}."
