"""From shape, weights and load to the memory of one device."""

from __future__ import annotations

from importer.fit.result import Fit, Load, Longest
from importer.fit.shape import Shape
from importer.fit.weights import Weights


def estimate(shape: Shape, weights: Weights, load: Load, backend: str) -> Fit:
    """What the fullest device holds; ``backend`` as a document names it (``vllm``, ``mlx`` …)."""
    raise NotImplementedError


def longest(shape: Shape, weights: Weights, load: Load, backend: str, budget: int) -> Longest:
    """The longest context up to ``load.context`` whose likely total stays within ``budget`` bytes."""
    raise NotImplementedError
