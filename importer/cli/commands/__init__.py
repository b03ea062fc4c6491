"""Every command: its line in the help, and its module here.

A module has ``add_arguments(parser)`` and ``run(arguments)``.
The modules stay light: what a command needs is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple, Protocol, cast


class Command(NamedTuple):
    """``usage`` and ``help`` are its line; ``names_one``: its first word is one model or document."""

    usage: str
    help: str
    names_one: bool = False


class Module(Protocol):
    """What a module of this package has."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int | None: ...


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


def module(name: str) -> Module:
    """Return the module of a command."""
    stem = "import_" if name == "import" else name.replace("-", "_")
    return cast(Module, import_module(f"importer.cli.commands.{stem}"))
