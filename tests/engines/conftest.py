"""Fixtures of the engines' tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Return a model's folder for the toy server: it reads no weights."""
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return folder
