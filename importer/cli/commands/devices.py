"""``importer devices``: the devices that ``--device`` accepts."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    options.json(parser, "one line of JSON per device")


def run(arguments: argparse.Namespace) -> None:
    """Print the devices of each maker: memory, machine, number formats and the source of the figures."""
    print_all(as_json=arguments.json)


def print_all(*, as_json: bool) -> None:
    """Print a table for each maker, or a line of JSON for each device; several are ``8xNAME``."""
    from importer.cli import output
    from importer.memory import devices

    known = devices.known()
    if as_json:
        output.json_lines([device.to_json() for device in known.values()])
        return
    heads = ("device", "memory", "known", "a machine", "formats", "source")
    for kind, maker in devices.MAKERS.items():
        rows = [
            (
                name,
                "this machine's" if d.memory is None else f"{d.memory / devices.GIB:g} GiB",
                devices.BASES[d.basis],
                str(d.node),
                ", ".join(sorted(d.native)),
                d.source if d.engine is None else f"{d.source}; served by {d.engine}",
            )
            for name, d in sorted(known.items(), key=lambda item: item[1].memory or 0)
            if d.kind == kind
        ]
        output.console().print(f"{maker} ({kind})")
        output.console().print(output.table(heads, rows))
