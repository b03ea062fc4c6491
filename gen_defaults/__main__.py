"""``python -m gen_defaults``: regenerate the tables; with a command, run that command."""

from __future__ import annotations

import sys
from importlib import import_module

# A command is a module with ``main(arguments) -> exit status``.
COMMANDS = {
    "abilities": "gen_defaults.abilities",
    "arguments": "gen_defaults.arguments",
    "frontends": "gen_defaults.frontends",
    "observed": "gen_defaults.observed",
    "processors": "gen_defaults.processors",
    "score": "gen_defaults.score",
    "settings": "gen_defaults.settings",
    "shapes": "gen_defaults.shapes",
    "shipped": "gen_defaults.shipped",
}
TABLES = "gen_defaults.regenerate"


def main(arguments: list[str]) -> int:
    """Hand the rest of the arguments to the command; without one, regenerate the tables."""
    name = arguments[0] if arguments else ""
    if name and not name.startswith("-") and name not in COMMANDS:
        sys.stderr.write(f"usage: python -m gen_defaults [--help | {' | '.join(COMMANDS)}] ...\n")
        return 2
    try:
        run = import_module(COMMANDS.get(name, TABLES)).main
        return int(run(arguments[1:] if name in COMMANDS else arguments))
    except KeyboardInterrupt:
        sys.stderr.write("gen_defaults: stopped\n")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
