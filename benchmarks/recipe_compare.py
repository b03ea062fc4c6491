"""A recipe's command beside that of the document that importer makes for the same model and hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.recipe_documents import Command, Documents, Refused
from benchmarks.recipe_reasons import reason_for
from benchmarks.recipe_settings import IMPLIED, OURS, same, values_of
from gen_defaults.recipe_book import Book, Profile
from gen_defaults.recipe_commands import Deployment
from importer.engines.registries import PINNED, Kind, load
from importer.exports.vllm_recipe import SEVERAL, precision
from importer.memory.plans import Goal

TENSOR, DATA, PIPELINE = "tensor-parallel-size", "data-parallel-size", "pipeline-parallel-size"
SIZES = (TENSOR, DATA, PIPELINE, "enable-expert-parallel")
CONTEXT = "max-model-len"
PARSERS: Mapping[str, Kind] = {"tool-call-parser": "tool", "reasoning-parser": "reasoning"}
# Flags of a node among several, that no document decides.
OF_NODES = (
    "nnodes",
    "node-rank",
    "master-addr",
    "headless",
    "data-parallel-size-local",
    "data-parallel-address",
)
SIXTEEN = ("bf16", "fp16", "fp32", "")
BITS = {"fp8": 8, "mxfp8": 8, "int8": 8, "nvfp4": 4, "fp4": 4, "mxfp4": 4, "int4": 4}
OTHER = "the files at hand are of other weights than this variant"
GOALS: Mapping[str, Goal] = {
    "latency": "latency",
    "throughput": "throughput",
}  # of a strategy's orientation; others name none


class Outcome(StrEnum):
    """How the document's value of a flag compares with the recipe's."""

    EQUAL = "equal"
    DIFFERS = "differs"
    LEFT_OUT = "left out"
    NO_DOCUMENT = "no document"


@dataclass(frozen=True, slots=True)
class Line:
    """One flag or variable of one deployment; ``why`` is empty where there is no reason."""

    deployment: Deployment
    name: str
    theirs: Any
    ours: Any
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The cards of a deployment: tensor, pipeline and data parallel, and servers beside each other."""

    tensor: int
    pipeline: int
    data: int
    replicas: int = 1

    @classmethod
    def of(cls, flags: Mapping[str, Any], replicas: int = 1) -> Layout:
        """Return the layout of a command."""
        tensor, pipeline, data = (int(flags.get(name) or 1) for name in (TENSOR, PIPELINE, DATA))
        return cls(tensor, pipeline, data, replicas)

    @property
    def cards(self) -> int:
        """Return the number of cards of all servers."""
        return self.tensor * self.pipeline * self.data * self.replicas

    def __str__(self) -> str:
        """Return the sizes that are not one."""
        named = {"TP": self.tensor, "PP": self.pipeline, "DP": self.data, "replicas": self.replicas}
        return " ".join(f"{name}{size}" for name, size in named.items() if size > 1) or "TP1"


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on layout or context: ``equal``, ``better``, ``less``, ``unknown``."""

    deployment: Deployment
    what: str
    verdict: str
    theirs: str
    ours: str
    why: str


def device_of(profile: Profile, nodes: int = 1) -> str:
    """Return the device of a recipe's hardware, for ``--device``."""
    count = profile.count * nodes
    name = SEVERAL.sub("", profile.name).replace("_", "-")
    return name if count == 1 or profile.generation == "cpu" else f"{count}x{name}"


def compared(documents: Documents, book: Book, deployment: Deployment) -> tuple[list[Line], list[Judged]]:
    """Return a line for each flag and variable of the deployment, and the verdicts on layout and context."""
    orientation = book.strategies.get(deployment.strategy, {}).get("orientation")
    goal = GOALS.get(str(orientation))
    device = device_of(deployment.profile, deployment.nodes)
    command = documents.command(deployment.model, device, {}, goal=goal)
    return [*_lines(deployment, command)], [*_judged(deployment, command)]


def _lines(deployment: Deployment, command: Command | Refused) -> Iterator[Line]:
    theirs = {k: v for k, v in values_of(deployment.flags).items() if k not in (*OURS, *OF_NODES)}
    for name, value in theirs.items():
        if isinstance(command, Refused):
            yield Line(deployment, f"--{name}", value, None, Outcome.NO_DOCUMENT, command.message)
            continue
        ours = command.flags.get(name)
        if name in IMPLIED and theirs.get("tool-call-parser") is None:
            continue
        if (
            same(ours, value)
            or _is_alias(name, value, ours)
            or (name in SIZES and int(value) == int(ours or 1))
        ):
            yield Line(deployment, f"--{name}", value, ours, Outcome.EQUAL)
            continue
        outcome = Outcome.LEFT_OUT if ours is None else Outcome.DIFFERS
        why = reason_for(name, value, ours, command)
        yield Line(deployment, f"--{name}", value, ours, outcome, why)
    for name, text in deployment.env.items():
        if isinstance(command, Refused):
            yield Line(deployment, name, text, None, Outcome.NO_DOCUMENT, command.message)
            continue
        own = command.env.get(name)
        outcome = Outcome.EQUAL if own == text else Outcome.LEFT_OUT if own is None else Outcome.DIFFERS
        why = "" if outcome is Outcome.EQUAL else reason_for(name, text, own, command)
        yield Line(deployment, name, text, own, outcome, why)


def _is_alias(name: str, theirs: Any, ours: Any) -> bool:
    """Return whether two names are one parser of vLLM for cards."""
    kind = PARSERS.get(name)
    if kind is None or ours is None:
        return False
    found = [load("vllm", PINNED["vllm-cuda"]).class_of(kind, str(one)) for one in (theirs, ours)]
    return found[0] is not None and found[0] == found[1]


def _judged(deployment: Deployment, command: Command | Refused) -> Iterator[Judged]:
    """Yield the verdicts on the layout and on the context."""
    flags = values_of(deployment.flags)
    theirs = Layout.of(flags)
    if isinstance(command, Refused):
        yield Judged(deployment, "layout", "no document", str(theirs), "", command.message)
        yield Judged(deployment, "context", "no document", str(flags.get(CONTEXT)), "", command.message)
        return
    fit = command.plan.fit
    if _is_other(deployment, command):
        for what, value in (("layout", str(theirs)), ("context", str(flags.get(CONTEXT)))):
            yield Judged(deployment, what, "other files", value, "", f"{deployment.precision}: {OTHER}")
        return
    if fit.verdict == "unknown":
        yield Judged(deployment, "layout", "unknown", str(theirs), "", fit.message)
        yield Judged(deployment, "context", "unknown", str(flags.get(CONTEXT)), "", fit.message)
        return
    ours = Layout.of(command.flags, command.replicas)
    why = command.layout_reason
    yield Judged(deployment, "layout", _of_layouts(theirs, ours, fit.verdict), str(theirs), str(ours), why)
    longest = fit.requested or 0
    wanted = flags.get(CONTEXT)
    their_length = wanted if isinstance(wanted, int) else longest
    our_length = command.flags.get(CONTEXT)
    our_length = our_length if isinstance(our_length, int) else longest
    verdict = "equal" if our_length == their_length else "better" if our_length > their_length else "less"
    if fit.verdict == "too-large":
        verdict = "less"
    yield Judged(deployment, "context", verdict, str(their_length), str(our_length), fit.message)


def _is_other(deployment: Deployment, command: Command) -> bool:
    """Return whether the files at hand have another precision than the recipe's variant."""
    block = command.plan.built.data["importer"]
    ours = "" if block.get("quantization") is None else precision(command.plan.built.data)
    theirs = "" if deployment.precision in SIXTEEN else deployment.precision
    known = ours in BITS and theirs in BITS
    return bool(ours) != bool(theirs) or (known and BITS[ours] != BITS[theirs])


def _of_layouts(theirs: Layout, ours: Layout, verdict: str) -> str:
    """Return ``better`` for another layout of as many cards or more that holds the model."""
    if verdict == "too-large":
        return "less"
    if (theirs.tensor, theirs.pipeline, theirs.data) == (ours.tensor, ours.pipeline, ours.data):
        return "equal"
    return "better" if ours.cards >= theirs.cards else "less"
