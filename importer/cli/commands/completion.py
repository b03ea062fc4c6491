"""``importer completion``: commands, options and their values, completed in a shell."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from importer.cli.commands import COMMANDS, action

PROGRAMS = ("importer", "model-importer")
IMPORT = "import"
SHELLS = ("bash", "zsh", "fish")


def add_arguments_completion(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS)


def run_completion(arguments: argparse.Namespace) -> None:
    """Print the script; bash reads it from ``~/.local/share/bash-completion/completions/importer``."""
    from argcomplete.shell_integration import shellcode

    from importer.cli import output

    files = True  # where nothing is offered, bash offers files
    output.line(shellcode(PROGRAMS, files, arguments.shell).strip())


def complete() -> None:
    """Answer the shell that asks by its variables, and end the process."""
    from argcomplete import autocomplete

    from importer import config
    from importer.cli import project
    from importer.errors import UsageError

    with suppress(UsageError):
        config.PROJECT.set(project.read(Path()))
    autocomplete(_parser(os.environ.get("COMP_LINE", "")), always_complete_options=False)


def _parser(line: str) -> argparse.ArgumentParser:
    """Return the parser of a line: behind a reference that of an import, else one with every command."""
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # an open quotation mark
        words = []
    bare = bool(words) and words[0] not in COMMANDS and (len(words) > 1 or line.endswith(" "))
    return _filled(IMPORT, argparse.ArgumentParser(prog=PROGRAMS[0])) if bare else every_command()


def every_command() -> argparse.ArgumentParser:
    """Return one parser with all commands below it."""
    top = argparse.ArgumentParser(prog=PROGRAMS[0], allow_abbrev=False)
    below = top.add_subparsers(dest="command")
    for name, command in COMMANDS.items():
        _filled(name, below.add_parser(name, help=command.help, allow_abbrev=False))
    return top


def _filled(name: str, parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the arguments of a command, each with the values that a shell offers for it."""
    action(name).add_arguments(parser)
    offered: dict[str, Callable[..., Iterable[str]]] = {
        "device": _devices, "settings": _settings, "probe": _probes, "engine": _engines,
    }  # fmt: skip
    if COMMANDS[name].names_one and name != IMPORT:
        offered |= {"name": _documents, "names": _documents, "key": _keys, "format": _formats}
    _offer(parser, offered)
    return parser


def _offer(parser: argparse.ArgumentParser, offered: Mapping[str, Callable[..., Iterable[str]]]) -> None:
    """Name what is offered for each argument of a command, and of the words behind it."""
    for one in parser._actions:  # noqa: SLF001 - argparse has no other way to see them
        if isinstance(one.choices, dict):
            for below in one.choices.values():
                _offer(below, offered)
        elif one.dest in offered and one.choices is None:
            one.completer = offered[one.dest]  # type: ignore[attr-defined]


def _documents(parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    return sorted(path.stem for path in Path(parsed_args.folder).glob("*.yaml"))


def _devices(**_: object) -> Iterable[str]:
    from importer.memory.devices import known

    return [*known()]


def _keys(**_: object) -> Iterable[str]:
    from importer.app.preferences import settable

    return [key.removeprefix("parameters.") for key, _, _ in settable()]


def _settings(**_: object) -> Iterable[str]:
    return (f"{key}=" for key in _keys())


def _probes(**_: object) -> Iterable[str]:
    from importer.validation.probes import BY_NAME

    return [name for name, _ in BY_NAME.every()]


def _engines(**_: object) -> Iterable[str]:
    from importer.engines import ENGINES

    return [name for name, _ in ENGINES.every()]


def _formats(**_: object) -> Iterable[str]:
    from importer.exports import FORMATS

    return [name for name, _ in FORMATS.every()]
