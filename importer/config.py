"""Configuration from the environment: the home folder, switches, names of backends; and the clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

# Backends: the names of engines in documents.
NAMES = ("vllm", "mlx", "mlx-vlm", "vllm-mlx", "sglang")
# Variables that may hold the Hub's token.
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH")


def home() -> Path:
    """Return the folder of engines and caches: ``IMPORTER_HOME``, else the platform's data directory."""
    override = os.environ.get("IMPORTER_HOME")
    if override:
        return Path(override).expanduser()
    from platformdirs import user_data_path

    return user_data_path("importer", appauthor=False)


def device() -> str | None:
    """Return the device of documents whose import names none (``IMPORTER_DEVICE``); ``None``: no device."""
    return os.environ.get("IMPORTER_DEVICE", "").strip() or None


def flag(name: str) -> bool:
    """Return whether an environment variable is switched on, by huggingface_hub's rule."""
    return os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def now() -> str:
    """Return the time for receipts and tables: ISO 8601 in UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
