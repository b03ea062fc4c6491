"""``importer serve``: the gallery service."""

from __future__ import annotations

import argparse

from importer.cli.service_options import add_settings, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser)


def run(arguments: argparse.Namespace) -> None:
    """Answer requests and run jobs until a signal ends it."""
    from importer.cli import show

    settings = settings_of(arguments)
    if arguments.show_config:
        show.line(settings.to_text().rstrip())
        return
    from importer.service.server import serve

    serve(settings.settings)
