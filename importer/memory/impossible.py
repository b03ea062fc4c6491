"""Sizes of a layout with which vLLM starts on no device."""

from __future__ import annotations

from importer.memory.parallelism import PIPELINE, TENSOR, FitRequest
from importer.memory.plans import PlanReason
from importer.memory.shape import Shape
from importer.reasons import Reason


def impossible(shape: Shape, request: FitRequest) -> tuple[str, Reason] | None:
    """Return a size of the user's with which vLLM starts on no device, and why; ``None`` without one."""
    tensor, stages = (request.count(key) or 1 if request.is_fixed(key) else 1 for key in (TENSOR, PIPELINE))
    if shape.heads % tensor:
        return TENSOR, Reason(PlanReason.HEADS_LEFT, heads=shape.heads, cards=tensor)
    if stages > len(shape.layers):
        return PIPELINE, Reason(PlanReason.EMPTY_STAGES, layers=len(shape.layers), stages=stages)
    return None
