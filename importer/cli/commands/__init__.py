"""Every command: its line in the help, its group, and the functions in the module of the group.

The module of a group has ``add_arguments_NAME(parser)`` and ``run_NAME(arguments)`` for each command.
The modules stay light: what a command needs is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """``usage`` and ``help`` are its line; ``names_one``: its first word is one model or document."""

    usage: str
    help: str
    names_one: bool = False


class Module(NamedTuple):
    """The functions of a command; ``run`` returns the exit code, where it is not 0."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


COMMANDS: Mapping[str, Command] = {
    "import": Command(
        "REFERENCE", "decide, review, write, validate; the word 'import' may be left out", True
    ),
    "fill": Command("FILE", "add to a hand-written document what it leaves out", True),
    "match": Command("NAME...", "match names against the tables alone"),
    "list": Command("", "list the documents, their review and their validation"),
    "show": Command("NAME", "print one document with its decisions and probes", True),
    "why": Command("NAME [KEY]", "say why a document has its values, and what came next", True),
    "review": Command("NAME", "accept, edit or reject one document", True),
    "approve": Command("NAME", "approve the present content, as 'review NAME --approve' does", True),
    "recheck": Command("[NAME...]", "compare with a new import, and explain each change", True),
    "validate": Command("NAME|FILE", "run a document and probe it", True),
    "run-task": Command("FILE|-", "run a task of 'validate --on' at the far end"),
    "report": Command("NAME|FILE", "write its validations as text, JSON, JUnit XML or a page", True),
    "fit": Command(
        "NAME|FILE", "print its memory, or measure it with random weights; --devices: all devices", True
    ),
    "export": Command("NAME|FILE FORMAT", "write it for another consumer; --list shows the formats", True),
    "response-template": Command("REFERENCE", "derive and prove the model's parser as data", True),
    "gallery": Command(
        "check|diff|build", "check a gallery in git, compare two, or write it as static pages"
    ),
    "engine": Command("install|list|remove", "manage the engines' environments"),
    "doctor": Command("[NAME|FILE]", "find what would stop a run", True),
    "keys": Command("", "list the settings that --set accepts"),
    "devices": Command("", "list the devices that --device accepts"),
    "parsers": Command("", "list the parsers of an engine"),
    "serve": Command("", "run the gallery service: REST, jobs, review, a gallery for LocalAI"),
    "worker": Command("", "run the service's jobs on this machine as well"),
    "api-keys": Command("create|list|revoke", "manage the API keys of the service"),
    "backup": Command("FILE", "copy the service's database while it is in use"),
    "audit": Command("", "print the service's audit log as lines of JSON"),
    "completion": Command("bash|zsh|tcsh", "print a completion script for a shell"),
}


# The help names them by group; a command of no group is in the module ``more``.
GROUPS = {
    "documents": ("list", "show", "why", "review", "approve", "recheck", "fill", "export", "report"),
    "engines": ("validate", "engine", "doctor", "parsers", "devices"),
    "service": ("serve", "worker", "api-keys", "backup", "audit"),
}
MORE = "more"


def module(name: str) -> Module:
    """Return the functions of a command."""
    group = (
        "import_" if name == "import" else next((one for one, names in GROUPS.items() if name in names), MORE)
    )
    found, stem = import_module(f"importer.cli.commands.{group}"), name.replace("-", "_")
    return Module(getattr(found, f"add_arguments_{stem}"), getattr(found, f"run_{stem}"))
