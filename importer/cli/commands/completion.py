"""``importer completion``: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

from importer.cli.commands import COMMANDS, action

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments_completion(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS)


def run_completion(arguments: argparse.Namespace) -> None:
    """Print the script; bash reads it from ``~/.local/share/bash-completion/completions/importer``."""
    import shtab

    from importer.cli import output

    output.line(shtab.complete(every_command(), arguments.shell).rstrip())


def every_command() -> argparse.ArgumentParser:
    """Return one parser with all commands below it."""
    top = argparse.ArgumentParser(prog="importer", allow_abbrev=False)
    below = top.add_subparsers(dest="command")
    for name, command in COMMANDS.items():
        action(name).add_arguments(below.add_parser(name, help=command.help, allow_abbrev=False))
    return top
