"""``importer serve``: the gallery service."""

from __future__ import annotations

import argparse

from importer.cli.service_options import add_settings, settings_to_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser, "serve")


def run(arguments: argparse.Namespace) -> None:
    """Answer requests and run jobs until a signal ends it."""
    settings = settings_to_run(arguments)
    if settings is not None:
        from importer.service.server import serve

        serve(settings)
