"""Train the models named, all but the demo model by default, with the Python of the engine mlx."""

from __future__ import annotations

import argparse

from tests.models.formats import FORMATS


def main() -> None:
    """Each into its own folder."""
    from tools.demo_model.train import train

    parser = argparse.ArgumentParser(prog="python -m tests.models")
    parser.add_argument("names", nargs="*", choices=[[], *FORMATS], metavar="NAME")
    for name in parser.parse_args().names or [n for n in FORMATS if n != "hermes"]:
        train(FORMATS[name], FORMATS[name].folder, FORMATS[name].steps)


main()
