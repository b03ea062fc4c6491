"""``importer worker``: a process that runs the service's jobs."""

from __future__ import annotations

import argparse

from importer.cli.service_options import add_settings, settings_to_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser, "worker")


def run(arguments: argparse.Namespace) -> None:
    """Run jobs until a signal ends it."""
    settings = settings_to_run(arguments)
    if settings is not None:
        from importer.service.server import work

        work(settings)
