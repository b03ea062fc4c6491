"""The aim of a deployment, and its layout over devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import whole
from importer.reasons import Reason, ReasonKind

Goal = Literal["latency", "throughput", "context"]
GOALS: tuple[Goal, ...] = ("latency", "throughput", "context")
TYPICAL = 8192  # tokens of a sequence, where a number of sequences is requested without their length


class AimReason(ReasonKind):
    """Why a goal, a number of sequences or their length is invalid."""

    NO_GOAL = "it is one of {known}"
    NO_COUNT = "it must be a whole number above zero"


@frozen
class Aim:
    """What a deployment is for; ``None`` leaves a part open.

    ``concurrency``  sequences that are to be held at the same time.
    ``context``      tokens of each of them: prompt and answer.
    """

    goal: Goal | None = None
    concurrency: int | None = None
    context: int | None = None

    def __bool__(self) -> bool:
        """Return whether anything is requested."""
        return (self.goal, self.concurrency, self.context) != (None, None, None)


NO_AIM = Aim()


def aim(goal: object, concurrency: object, context: object) -> Aim:
    """Return what a deployment is for. Raises UsageError("bad-value") for an unknown goal or no number."""
    if goal is not None and goal not in GOALS:
        problem = Reason(AimReason.NO_GOAL, known=GOALS)
        raise UsageError("bad-value", setting=Setting.GOAL, value=goal, problem=problem)
    for setting, value in ((Setting.CONCURRENCY, concurrency), (Setting.CONTEXT, context)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise UsageError("bad-value", setting=setting, value=value, problem=Reason(AimReason.NO_COUNT))
    return Aim(goal, cast("int | None", concurrency), cast("int | None", context))


@frozen
class Split:
    """The layout of a model over devices.

    ``tensor``    devices that share each layer. ``pipeline``  stages of layers.
    ``data``      copies of attention within one server; a dense model is copied whole.
    ``experts``   whether whole experts are dealt out over ``tensor`` x ``data`` devices.
    ``replicas``  servers of this layout beside each other, each started by itself.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False
    replicas: int = 1

    @property
    def cards(self) -> int:
        """Return the number of devices of one server."""
        return self.tensor * self.pipeline * self.data

    @property
    def devices(self) -> int:
        """Return the number of devices of all servers."""
        return self.cards * self.replicas

    @property
    def copies(self) -> int:
        """Return the number of parts that schedule sequences by themselves."""
        return self.data * self.replicas

    def to_json(self) -> dict[str, object]:
        """Return the layout as receipts hold it."""
        return {
            "tensor_parallel": self.tensor,
            "pipeline_parallel": self.pipeline,
            "data_parallel": self.data,
            "expert_parallel": self.experts,
            "replicas": self.replicas,
            "devices": self.devices,
        }


def held(plan: Mapping[str, object]) -> str:
    """Return what a plan of a receipt holds: sequences of so many tokens; older receipts lack the tokens."""
    sequences, tokens = f"{whole(plan.get('sequences')) or 0:,}", whole(plan.get("tokens"))
    return sequences if tokens is None else f"{sequences} × {tokens:,} tokens"
