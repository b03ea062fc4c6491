"""``python -m gen_defaults``: one parser for the job of the tables and all other commands."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from gen_defaults import regenerate
from gen_defaults.place import Place

# A command is a module with ``options(parser)`` and ``main(options) -> exit status``, imported when it runs.
COMMANDS = {
    "version": "all commands for a new version of an engine, in their order",
    "abilities": "what each version can load, from its sources",
    "arguments": "the arguments of each installed engine's server",
    "localai-diff": "rows that LocalAI's parser table lacks, and refuted ones, with their evidence",
    "parsers": "whether the parsers of each version load without their engine",
    "processors": "which quantisations the installed vLLM loads on processors",
    "settings": "the variables of an engine, and names whose effect is unread",
    "shapes": "what transformers takes for keys that a config leaves out",
}


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the job or of a command; ``run`` runs it, ``refuse`` ends with the usage."""
    parser = argparse.ArgumentParser(prog="python -m gen_defaults", description=regenerate.__doc__)
    regenerate.options(parser)
    parser.set_defaults(run=regenerate.main, refuse=parser.error)
    commands = parser.add_subparsers(title="other commands", metavar="COMMAND")
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if name in arguments:
            module = import_module(f"gen_defaults.{name.replace('-', '_')}")
            command.description = module.__doc__
            module.options(command)
            command.set_defaults(run=module.main, refuse=command.error)
    return parser.parse_args(arguments)


def main(arguments: list[str], place: Place | None = None) -> int:
    """Run the job or a command, the job on the tables of ``place``; return the exit status."""
    options = parsed(arguments)
    options.place = place or Place()
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        sys.stderr.write("gen_defaults: stopped\n")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
