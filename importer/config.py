"""Where things live: folders and the few environment variables that move them; and the clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

# Where the Hub's token may stand.
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH")


def home() -> Path:
    """Engines and caches: ``IMPORTER_HOME``, else the platform's data directory."""
    given = os.environ.get("IMPORTER_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("importer", appauthor=False)


def flag(name: str) -> bool:
    """Return whether an environment variable is switched on, read as huggingface_hub reads its own."""
    return os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def now() -> str:
    """Return the time as receipts and tables have it: ISO 8601 in UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


NAMES = ("vllm", "mlx", "mlx-vlm", "vllm-mlx")
