"""Types of a plan: what a deployment is for, how it is laid out over devices, what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import whole
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render

Goal = Literal["latency", "throughput", "context"]
GOALS: tuple[Goal, ...] = ("latency", "throughput", "context")
TYPICAL = 8192  # tokens of a sequence, where a number of sequences is requested without their length


class AimReason(ReasonKind):
    """Why a goal, a number of sequences or their length is invalid."""

    NO_GOAL = "no-goal", "it is one of {known}"
    NO_COUNT = "no-count", "it must be a whole number above zero"


def _stages(fields: Fields) -> str:
    where = ": one or more for each machine" if fields["machines"] else ""
    return f"{fields['stages']} stages of layers, {fields['cards']} x {fields['device']} for each{where}"


def _copies(fields: Fields) -> str:
    each = "one card holds" if fields["each"] == 1 else f"{fields['each']} cards hold"
    return f"{each} the model; {fields['copies']} copies share the requests"


def _experts(fields: Fields) -> str:
    copies = f"; attention is copied {fields['copies']} times" if fields["copies"] > 1 else ""
    return f"whole experts are dealt out over {fields['cards']} cards{copies}"


def _slots(fields: Fields) -> str:
    each = f" in each of {fields['copies']} copies" if fields["copies"] > 1 else ""
    return f"{fields['count']} sequences at the same time{each}, as requested"


class PlanReason(ReasonKind):
    """Reasons of a plan: for its layout and its settings, and what they cost."""

    GOAL_LATENCY = "goal-latency", "goal latency: the least time for a token"
    GOAL_THROUGHPUT = "goal-throughput", "goal throughput: the most tokens a second of all sequences"
    GOAL_CONTEXT = "goal-context", "goal context: the longest sequences, then the most of them"
    DECODING_ALONE = (
        "decoding-alone",
        "steps of decoding alone are compared; with long prompts and short answers, copies gain",
    )
    POOLED = "pooled", "each text is read in one step: copies share the texts"
    TENSOR = (
        "tensor",
        "{cards} x {device} share each layer; {heads} heads divide by it",
        "splits {heads} heads",
    )
    STAGES = "stages", _stages, "layers in stages"
    COPIES = "copies", _copies, "{copies} copies"
    EXPERTS = "experts", _experts, "experts over cards"
    EXPERTS_WHOLE = (
        "experts-whole",
        (
            "{cards} x {device} share attention and keep experts whole, since the blocks of their scales do "
            "not divide"
        ),
        "whole experts",
    )
    SERVERS = (
        "servers",
        (
            "{servers:server|servers} of {cards:card|cards}: start the document once for each, with a "
            "balancer before them"
        ),
    )
    SHARE = "share", "{budget} of the {memory} of {device}", "default share"
    LARGER_SHARE = (
        "larger-share",
        "{budget} of the {memory} of {device}; with the usual {usual} the context would be shorter",
        "longer context",
    )
    CACHE = (
        "cache",
        "{count} x {tokens:,} tokens; left to itself, vLLM would take all memory",
        "{count} sequences",
    )
    FP8_CACHE = (
        "fp8-cache",
        "keys and values in 8 bits, in which {device} calculates: half the memory for each token",
        "half the memory",
    )
    SLOTS = "slots", _slots, "as requested"
    FEW_SLOTS = (
        "few-slots",
        "{count:sequence|sequences} at the same time: the memory of more leaves no room for the context",
        "longer context",
    )
    STATE_BLOCKS = (
        "state-blocks",
        "{count:sequence|sequences} at the same time: vLLM needs a block of states for each",
        "blocks of states",
    )
    BATCHED_LESS = (
        "batched-less",
        "{tokens:,} tokens of prompts in one step, so that running answers wait less",
        "goal latency",
    )
    BATCHED_MORE = (
        "batched-more",
        "{tokens:,} tokens of prompts in one step, so that more prompts are read at once",
        "goal throughput",
    )
    SEQUENCES = "sequences", "it holds {count:sequence|sequences} of {tokens:,} tokens at the same time"
    ASKED = "asked", "{tokens:,} tokens were requested", "as requested"
    BEYOND = "beyond", "{wanted:,} tokens were requested; the model has {most:,}", "the model's most"
    FEWER = (
        "fewer",
        (
            "it holds {held:,} of the {wanted:,} requested sequences of {tokens:,} tokens at the same time; "
            "the others wait"
        ),
        "{held} held",
    )
    IDLE = "idle", "{count} x {device} have no part", "idle cards"
    ENCODER = (
        "encoder",
        (
            "each of {cards} cards reads whole pictures, and nothing is added up between them; its whole "
            "encoder takes {size} more of each card"
        ),
        "whole encoder",
    )
    MACHINES = (
        "machines",
        "vLLM is started on each of {count} machines, with Ray or with nnodes, node_rank and master_addr",
    )
    LOCAL_COPIES = "local-copies", "{copies} copies on each of {machines} machines", "copies per machine"
    COPIES_OF_MACHINES = (
        "copies-of-machines",
        (
            "vLLM is started on each of {count} machines, with data_parallel_address and "
            "data_parallel_start_rank"
        ),
    )
    ROUNDED = (
        "rounded",
        "answers may differ a little from those with keys and values in 16 bits; not measured",
    )
    SISTERS = "sisters", "the card names quantised repositories of it: {names:and}"
    UNCOUNTED = "uncounted", "the estimate does not know how much memory {key} takes", "size unknown"
    OTHER_ENGINE = "other-engine", "{device} is served by {engine}, not by the released {backend}"


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


@frozen
class Plan:
    """One way to deploy a model on a device.

    ``device``     name and number of the cards, as ``--device`` accepts it.
    ``context``    tokens of the longest sequence.
    ``sequences``  how many of ``tokens`` all copies hold together.
    ``settings``   the keys that a document gets by this plan.
    ``step``       least milliseconds for one token of one sequence, from the bandwidth of the memory.
    ``rate``       most tokens a second of all sequences together, from the same figures.
    ``why``        the reasons, and what a start requires.
    ``meets``      whether it holds everything that was requested.
    """

    device: str
    split: Split
    context: int
    sequences: int
    tokens: int
    kv_dtype: str
    share: float
    settings: tuple[tuple[str, Any], ...]
    step: float | None
    rate: float | None
    why: tuple[Reason, ...]
    meets: bool

    def to_json(self) -> dict[str, object]:
        """Return the plan as receipts hold it."""
        return {
            "device": self.device,
            **self.split.to_json(),
            "max_model_len": self.context,
            "sequences": self.sequences,
            "tokens": self.tokens,
            "kv_cache_dtype": self.kv_dtype,
            "gpu_memory_utilization": self.share,
            "settings": dict(self.settings),
            "step_ms": None if self.step is None else round(self.step, 2),
            "tokens_per_second": None if self.rate is None else round(self.rate),
            "meets": self.meets,
            "why": [render(reason) for reason in self.why],
        }


def held(plan: Mapping[str, object]) -> str:
    """Return what a plan of a receipt holds: sequences of so many tokens; older receipts lack the tokens."""
    sequences, tokens = f"{whole(plan.get('sequences')) or 0:,}", whole(plan.get("tokens"))
    return sequences if tokens is None else f"{sequences} × {tokens:,} tokens"
