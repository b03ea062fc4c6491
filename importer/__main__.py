"""``python -m importer`` and the ``importer`` command."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        if "_ARGCOMPLETE" in os.environ:  # a shell asks what the line may go on with
            from importer.cli.commands.completion import complete

            complete()
        from importer.cli import streams
        from importer.cli.main import run

        streams.prepare()
        return run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command line had begun, or a second time while it ended
        return 130


if __name__ == "__main__":
    sys.exit(main())
