"""The command that imports a document again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from importer.cli.options import in_folder

# A new import goes on with these by itself.
REMEMBERED = (
    "reference", "observed", "measured", "preferences", "device", "memory", "goal", "concurrency", "context",
)  # fmt: skip


def again(request: Mapping[str, object], folder: str) -> str:
    """Return the command that imports the same again; what was set then is remembered by the receipt."""
    words = ["importer", str(request["reference"])]
    for key, value in request.items():
        for one in () if key in REMEMBERED else value if isinstance(value, list) else (value,):
            if one not in (None, False):
                words += [f"--{key.replace('_', '-')}", *([] if one is True else [str(one)])]
    return shlex.join([*words, *in_folder(folder)])
