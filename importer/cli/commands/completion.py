"""``importer completion bash|zsh|tcsh``: a completion script for a shell."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> None:
    """Print the script; bash reads it from ``~/.local/share/bash-completion/completions/importer``."""
    import shtab

    from importer.cli import output
    from importer.cli.arguments import every

    output.line(shtab.complete(every(), arguments.shell).rstrip())
