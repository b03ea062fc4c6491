"""``importer devices``: the devices that ``--device`` accepts."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    options.json(parser, "one line of JSON per device")


def run(arguments: argparse.Namespace) -> None:
    """Print each device with its memory and its number formats; several are ``8xNAME``."""
    from importer.cli import show
    from importer.memory import devices

    known = devices.known()
    if arguments.json:
        show.json_lines([device.to_json() for device in known.values()])
        return
    rows = [
        (
            name,
            d.kind,
            "this machine's" if d.memory is None else f"{d.memory / devices.GIB:g} GiB",
            ", ".join(sorted(d.native)),
        )
        for name, d in known.items()
    ]
    show.console().print(show.table(("device", "kind", "memory", "formats"), rows))
