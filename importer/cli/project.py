"""``importer.toml``: the settings of the project in the current folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from importer import config
from importer.errors import UsageError

FILE = config.FILE
SETTINGS = ("backend", "device", "dir", "prove")
LONGEST = 65_536  # bytes


def read(folder: Path) -> Mapping[str, str]:
    """Return the settings of the file in a folder; none without a file.

    Its folder of documents lies in ``folder``, for the file may be a stranger's. Raises
    UsageError("bad-option").
    """
    path = folder / FILE
    if not os.path.lexists(path):  # loads nothing for most commands
        return {}
    import tomllib

    from importer.hub.folders import read_plain, why
    from importer.sentences import render

    try:
        data = tomllib.loads(read_plain(path, LONGEST).decode())
    except (OSError, ValueError, RecursionError) as error:
        problem = render(why(error)) if isinstance(error, OSError) else str(error)
        raise _refused(f"not readable: {problem}") from None
    for name, value in data.items():
        if name not in SETTINGS:
            raise _refused(f"unknown setting {name!r}; known are {', '.join(SETTINGS)}")
        if not isinstance(value, str) or not value.strip():
            raise _refused(f"{name} is not text")
        if not value.isprintable():
            raise _refused(f"{name} holds characters that cannot be seen")
    if (word := data.get("prove", config.PROVE[0]).strip()) not in config.PROVE:
        raise _refused(f"prove is {word!r}, and none of {', '.join(config.PROVE)}")
    named = Path(data.get("dir", "."))
    if not (folder / named).resolve().is_relative_to(folder.resolve()):
        raise _refused("dir leads out of the folder; use --dir or IMPORTER_DIR")
    return {name: value.strip() for name, value in data.items()}


def _refused(problem: str) -> UsageError:
    return UsageError("bad-option", option=FILE, problem=problem)
