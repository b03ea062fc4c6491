"""``importer demo``: the main job on the model that ships, on a real engine."""

from __future__ import annotations

import argparse

from importer.cli import options
from importer.cli.commands import action
from importer.demo import ENGINE, MODEL

DOCUMENT = "demo"


def add_arguments_demo(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the document."""
    options.folder(parser)
    parser.set_defaults(folder=".demo")


def steps(folder: str) -> dict[str, list[str]]:
    """Return the arguments of each command that the demo runs, in this order."""
    written = ["--name", DOCUMENT, "--backend", ENGINE, "--dir", folder, "--yes"]
    return {"engine": ["install", ENGINE], "import": [str(MODEL), *written, "--validate"]}


def run_demo(arguments: argparse.Namespace) -> None:
    """Install the engine, import the model, validate its document, and print the next steps."""
    from importer.cli import output

    for command, words in steps(arguments.folder).items():
        parser, chosen = argparse.ArgumentParser(), action(command)
        chosen.add_arguments(parser)
        chosen.run(parser.parse_args(words, argparse.Namespace(sandbox=arguments.sandbox)))
    served = output.typed("run", DOCUMENT, arguments.folder)
    output.note(f"Next: {served} serves it, 'importer Qwen/Qwen3-8B' imports a model of the Hub.")
