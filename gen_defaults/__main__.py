"""``python -m gen_defaults COMMAND``: generates and measures what ships as data."""

from __future__ import annotations

import sys
from importlib import import_module

# A command is a module with ``main(arguments) -> exit status``.
COMMANDS = {
    "abilities": "gen_defaults.abilities",
    "processors": "gen_defaults.processors",
    "registries": "gen_defaults.registries",
    "score": "gen_defaults.score",
    "shapes": "gen_defaults.shapes",
}


def main(arguments: list[str]) -> int:
    """Hand the rest of the arguments to the command."""
    if not arguments or arguments[0] not in COMMANDS:
        sys.stderr.write(f"usage: python -m gen_defaults {{{','.join(COMMANDS)}}} ...\n")
        return 2
    run = import_module(COMMANDS[arguments[0]]).main
    return int(run(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
