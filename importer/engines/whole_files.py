"""A file of the model that an engine refuses: it is away or cut, or whole with other contents."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from importer.engines.deaths import CONFIGURATION, DeathCause, Died
from importer.hub.folders import Folder
from importer.hub.snapshot import SETTINGS
from importer.reasons import Reason

LARGEST = 128 << 20  # bytes of a file of JSON
CONFIG = "config.json"
JSON = ".json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")  # one of them is enough


def judged(cause: DeathCause, folder: Path) -> DeathCause:
    """Return the cause of an end over a file; the configuration where no file is away or cut."""
    if not _whole(folder):
        return cause
    return DeathCause(Reason(Died.CONTENTS_REFUSED, problem=cause.reason), CONFIGURATION)


def _whole(folder: Path) -> bool:
    """Return whether config and tokenizer are there, and each file of JSON is JSON."""
    with suppress(OSError), Folder(folder) as opened:
        there = opened.has(CONFIG) and any(map(opened.has, TOKENIZERS))
        return there and all(_is_json(opened, name) for name in opened.names() if name.endswith(JSON))
    return False


def broken(folder: Path) -> tuple[str, ...]:
    """Return the names of settings that are there and no JSON; engines may go on without them."""
    with suppress(OSError), Folder(folder) as opened:
        named = [name for name in SETTINGS if name.endswith(JSON) and opened.has(name)]
        return tuple(name for name in named if not _is_json(opened, name))
    return ()


def _is_json(folder: Folder, name: str) -> bool:
    try:
        json.loads(folder.read(name, LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return True
