"""``importer devices``: the devices that ``--device`` accepts."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    options.json(parser, "one line of JSON per device")


def run(arguments: argparse.Namespace) -> None:
    """Print each device with its memory, its machine, its number formats and the source of its figures."""
    print_all(as_json=arguments.json)


def print_all(*, as_json: bool) -> None:
    """Print the table, or a line of JSON for each device; several are ``8xNAME``."""
    from importer.cli import output
    from importer.memory import devices

    known = devices.known()
    if as_json:
        output.json_lines([device.to_json() for device in known.values()])
        return
    rows = [
        (
            name,
            d.kind,
            "this machine's" if d.memory is None else f"{d.memory / devices.GIB:g} GiB",
            str(d.node),
            ", ".join(sorted(d.native)),
            d.source if d.engine is None else f"{d.source}; served by {d.engine}",
        )
        for name, d in known.items()
    ]
    output.console().print(output.table(("device", "kind", "memory", "a machine", "formats", "source"), rows))
