"""The model that ships: where it lies."""

from pathlib import Path

MODEL = Path(__file__).resolve().parent / "model"
