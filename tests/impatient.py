"""``importer`` with shorter waits: ``WAITS`` has constants, as ``importer.sandbox.pool.WALL_SECONDS=1``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from importer.__main__ import main

NAME = "tests.impatient"
ENDS = "importer.service.jobs.runner.PATIENCE=1"  # jobs have five seconds when their process ends


def waits(*settings: str) -> dict[str, str]:
    """The variables of a process with these waits, run by ``NAME``."""
    return {"WAITS": " ".join(settings)}


def shorten() -> None:
    """Set the constants that ``WAITS`` names; a name that is none is an error."""
    for setting in os.environ.get("WAITS", "").split():
        place, _, seconds = setting.partition("=")
        module, _, name = place.rpartition(".")
        owner = import_module(module)
        assert isinstance(getattr(owner, name), int | float), place
        setattr(owner, name, float(seconds))


if __name__ == "__main__":
    shorten()
    sys.exit(main())
