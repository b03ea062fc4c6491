"""The model that ships: where it lies, and the engine that shows it."""

from pathlib import Path

MODEL = Path(__file__).resolve().parent / "model"
ENGINE = "mlx"  # runs on every system, without a card
