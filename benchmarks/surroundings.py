"""An environment in which no engine, Hub or folder of the user's is seen."""

from __future__ import annotations

import os

from tests.hubserver import OVERRIDES


def bare(**given: str) -> dict[str, str]:
    """The caller's environment without the user's engines and Hub settings, with ``given`` beside."""
    hidden = {n for n in os.environ if n.startswith("IMPORTER_") and n.endswith("_PYTHON")} | {*OVERRIDES}
    return {name: value for name, value in os.environ.items() if name not in hidden} | given
