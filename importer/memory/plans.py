"""Types of a plan: what a deployment is for, how it is laid out over devices, what it holds and costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, cast

from importer.errors import Setting, UsageError
from importer.messages import render
from importer.reasons import Reason

Goal = Literal["latency", "throughput", "context"]
GOALS: tuple[Goal, ...] = ("latency", "throughput", "context")
TYPICAL = 8192  # tokens of a sequence, where a number of sequences is requested without their length


class AimReason(StrEnum):
    """Why a goal, a number of sequences or their length is invalid."""

    NO_GOAL = "no-goal"
    NO_COUNT = "no-count"


class PlanReason(StrEnum):
    """Reasons of a plan: for its layout and its settings, and what they cost."""

    GOAL_LATENCY = "goal-latency"
    GOAL_THROUGHPUT = "goal-throughput"
    GOAL_CONTEXT = "goal-context"
    DECODING_ALONE = "decoding-alone"
    POOLED = "pooled"
    TENSOR = "tensor"
    STAGES = "stages"
    COPIES = "copies"
    EXPERTS = "experts"
    EXPERTS_WHOLE = "experts-whole"
    SERVERS = "servers"
    SHARE = "share"
    LARGER_SHARE = "larger-share"
    CACHE = "cache"
    FP8_CACHE = "fp8-cache"
    SLOTS = "slots"
    FEW_SLOTS = "few-slots"
    BATCHED_LESS = "batched-less"
    BATCHED_MORE = "batched-more"
    SEQUENCES = "sequences"
    ASKED = "asked"
    BEYOND = "beyond"
    FEWER = "fewer"
    IDLE = "idle"
    KEYS_COPIED = "keys-copied"
    LATENT_COPIED = "latent-copied"
    TOKENS_PARTED = "tokens-parted"
    GATHERED = "gathered"
    ENCODER = "encoder"
    ENCODER_COPIED = "encoder-copied"
    SUMS = "sums"
    BUBBLES = "bubbles"
    MACHINES = "machines"
    LOCAL_COPIES = "local-copies"
    COPIES_OF_MACHINES = "copies-of-machines"
    ROUNDED = "rounded"
    SISTERS = "sisters"
    LISTED = "listed"
    SISTER_HOLDS = "sister-holds"
    OTHER_ENGINE = "other-engine"
    NOT_EVEN = "not-even"
    MORE_THAN_DEVICE = "more-than-device"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Split:
    """The layout of a model over devices.

    ``tensor``    devices that share each layer. ``pipeline``  stages of layers.
    ``data``      copies of attention within one server; a dense model is copied whole.
    ``experts``   whether whole experts are dealt out over ``tensor`` x ``data`` devices.
    ``replicas``  servers of this layout beside each other, each started by itself.
    ``parts``     devices of ``tensor`` that each keep a part of the tokens of a sequence.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False
    replicas: int = 1
    parts: int = 1

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

    def to_json(self) -> dict[str, Any]:
        """Return the layout as receipts hold it."""
        return {
            "tensor_parallel": self.tensor,
            "pipeline_parallel": self.pipeline,
            "data_parallel": self.data,
            "expert_parallel": self.experts,
            "decode_context_parallel": self.parts,
            "replicas": self.replicas,
            "devices": self.devices,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to deploy a model on a device.

    ``device``     name and number of the cards, as ``--device`` accepts it.
    ``context``    tokens of one sequence; ``sequences``  how many of that length all copies hold together.
    ``settings``   the keys that a document gets by this plan.
    ``step``       least milliseconds for one token of one sequence, from the bandwidth of the memory.
    ``rate``       most tokens a second of all sequences together, from the same figures.
    ``why``        the reasons, ``costs`` what the plan costs beside others.
    ``meets``      whether it holds everything that was requested.
    """

    device: str
    split: Split
    context: int
    sequences: int
    kv_dtype: str
    share: float
    settings: tuple[tuple[str, Any], ...]
    step: float | None
    rate: float | None
    why: tuple[Reason, ...]
    costs: tuple[Reason, ...]
    meets: bool

    def to_json(self) -> dict[str, Any]:
        """Return the plan as receipts hold it."""
        return {
            "device": self.device,
            **self.split.to_json(),
            "max_model_len": self.context,
            "sequences": self.sequences,
            "kv_cache_dtype": self.kv_dtype,
            "gpu_memory_utilization": self.share,
            "settings": dict(self.settings),
            "step_ms": None if self.step is None else round(self.step, 2),
            "tokens_per_second": None if self.rate is None else round(self.rate),
            "meets": self.meets,
            "why": [render(reason) for reason in self.why],
            "costs": [render(reason) for reason in self.costs],
        }
