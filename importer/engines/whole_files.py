"""A file of the model that an engine refuses: it is away or cut, or whole with other contents."""

from __future__ import annotations

import json
from pathlib import Path

from importer.engines.deaths import CONFIGURATION, DeathCause, Died
from importer.hub import local
from importer.hub.snapshot import SETTINGS
from importer.reasons import Reason

LARGEST = 128 << 20  # bytes of a file of JSON
CONFIG = "config.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")  # one of them is enough


def judged(cause: DeathCause, folder: Path) -> DeathCause:
    """Return the cause of an end over a file; the configuration where no file is away or cut."""
    if not _whole(folder):
        return cause
    return DeathCause(Reason(Died.CONTENTS_REFUSED, problem=cause.reason), CONFIGURATION)


def _whole(folder: Path) -> bool:
    """Return whether config and tokenizer are there, and each file of JSON is JSON."""
    if not (folder / CONFIG).is_file() or not any((folder / name).is_file() for name in TOKENIZERS):
        return False
    return all(map(_is_json, folder.glob("*.json")))


def broken(folder: Path) -> tuple[str, ...]:
    """Return the names of settings that are there and no JSON; engines may go on without them."""
    named = (name for name in SETTINGS if name.endswith(".json") and (folder / name).is_file())
    return tuple(name for name in named if not _is_json(folder / name))


def _is_json(path: Path) -> bool:
    try:
        json.loads(local.read_plain(path, LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return True
