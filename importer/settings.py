"""Where things live: folders and the few environment variables that move them."""

from __future__ import annotations

import os
from pathlib import Path

# Variables of ours that nobody else may read: the Hub's tokens, the gallery's database and its password.
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH")
PRIVATE = ("IMPORTER_SERVE_", "PGPASS", "PGSERVICE", "PGUSER", "PGHOST", "DBOS")


def home() -> Path:
    """Engines and caches: ``IMPORTER_HOME``, else the platform's data directory."""
    given = os.environ.get("IMPORTER_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("importer", appauthor=False)


def for_others() -> dict[str, str]:
    """The variables that processes get which run the code of others: engines, their parsers, pip."""
    return {k: v for k, v in os.environ.items() if k not in TOKENS and not k.startswith(PRIVATE)}


def flag(name: str) -> bool:
    """Whether an environment variable is switched on, read as huggingface_hub reads its own."""
    return os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}
