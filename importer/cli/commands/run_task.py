"""``importer run-task FILE|-``: the far end of ``validate --on``."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the task."""
    parser.add_argument(
        "task", metavar="FILE|-", help="the task as a launcher sends it; - reads it from stdin"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the task and print its result for the launcher."""
    from importer.cli import remote_task

    remote_task.run(arguments.task)
