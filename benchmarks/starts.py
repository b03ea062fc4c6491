"""Memory that starts on real cards left for the cache, beside estimates: of all, and with a model left out.

``starts.json`` has starts of vLLM that were published with their logs: config, card, settings, and the log's
figures in GiB of one card. ``left_out`` says what cannot be compared. Those called *older* are before 0.17.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.memory import devices, shape
from importer.memory.devices import GIB
from importer.memory.estimate_types import Unknown
from importer.memory.parallelism import FitRequest, LoadCase
from importer.memory.plans import Split
from importer.memory.rest import BUFFERS, ENGINE, SHARED
from importer.memory.weights import INDEX, read

HEADING = (
    f"{'start':28} {'version':14} {'free':>6} {'estimate':>8} {'error':>8} {'left out':>8} {'safe end':>8}"
)


@dataclass(frozen=True)
class Constants:
    """GiB of the engine, of buffers between cards; and the system's share of the weights."""

    engine: float = ENGINE["cuda"].likely / GIB
    buffers: float = BUFFERS.likely / GIB
    shared: float = SHARED[1]


@dataclass(frozen=True)
class Start:
    """One start; sizes are GiB of one card, ``free`` that of the log.

    ``peak`` is the estimate of one step with its graphs, ``spare`` what a document keeps free, ``surplus``
    the other end.
    """

    name: str
    model: str
    version: str
    older: bool
    free: float
    budget: float
    weights: float
    loaded: float
    peak: float
    spare: float
    surplus: float
    cards: int
    shared: bool

    def estimate(self, constants: Constants) -> float:
        """The memory for the cache."""
        return self.budget - self.weights - self.peak - self._rest(constants, self.weights)

    def _rest(self, constants: Constants, loaded: float) -> float:
        rest = constants.engine + (constants.buffers if self.cards > 1 else 0)
        return rest + (constants.shared * loaded if self.shared else 0)

    def left(self, constants: Constants) -> float:
        """What the log has beside weights, cache and peak, and beside these constants."""
        return self.budget - self.loaded - self.free - self.peak - self._rest(constants, self.loaded)


def records() -> list[dict[str, Any]]:
    """The starts as they were published."""
    return list(json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")))


def starts() -> list[Start]:
    """The starts whose memory for the cache can be compared."""
    told = (r for r in records() if "free" in r["reported"] and "memory" not in r.get("left_out", {}))
    return [_start(record) for record in told]


def case(record: Mapping[str, Any]) -> LoadCase:
    """The case of a start."""
    texts = {"config.json": json.dumps(record["config"])}
    if "index" in record:
        texts[INDEX] = json.dumps({"metadata": {"total_size": record["index"]}, "weight_map": {}})
    snapshot = Snapshot(record["model"], record["model"], None, (), texts)
    described = shape.read(snapshot)
    size = read(snapshot, described)
    if isinstance(described, Unknown) or isinstance(size, Unknown):
        raise TypeError(record["id"])
    settings = {k: _value(v) for k, _, v in (s.partition("=") for s in record["settings"])}
    device = devices.named(record["device"])
    device = device.with_memory(devices.size(record["memory"])) if "memory" in record else device
    known = re.match(r"0\.(\d+)(?!x|\d)", record["version"])
    request = FitRequest(settings, settings, version=f"0.{known[1]}.0" if known else None)
    context = request.count("max_model_len") or described.context or 0
    dtype = str(settings.get("dtype", "auto"))
    return LoadCase(record["config"], described, size, device, "vllm", request, context, dtype)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _start(record: Mapping[str, Any]) -> Start:
    of = case(record)
    split = Split(of.request.count("tensor_parallel_size") or 1)
    placed, fit = of.placed(split, of.shares()[0]), of.fit(of.context, split)
    sizes = {term.part: term.amount.likely / GIB for term in fit.terms}
    total = fit.total
    return Start(
        record["id"], record["model"], record["version"], record["older"], record["reported"]["free"],
        placed.budget / GIB, sizes["weights"], record["reported"].get("weights", sizes["weights"]),
        sizes["activations"] + sizes.get("graphs", 0), placed.spare / GIB,
        (total.likely - total.low) / GIB, split.cards, of.device.shared,
    )  # fmt: skip


def fitted(known: list[Start]) -> Constants:
    """The medians of what is left: of single cards, of several, and of memory that the system shares."""
    known = [s for s in known if not s.older]
    none = Constants(0, 0, 0)
    engine = median(s.left(none) for s in known if s.cards == 1 and not s.shared)
    alone = Constants(engine, 0, 0)
    several = [s.left(alone) for s in known if s.cards > 1 and not s.shared]
    both = Constants(engine, median(several) if several else Constants.buffers, 0)
    shared = [s.left(both) / s.loaded for s in known if s.shared]
    return Constants(engine, both.buffers, median(shared) if shared else Constants.shared)


def rows() -> Iterator[str]:
    """Each start, then the errors, the starts that were promised more than they had, and the constants."""
    found = starts()
    apart: dict[str, float] = {}
    for start in found:
        others = fitted([s for s in found if s.model != start.model])
        apart[start.name] = start.estimate(others)
        got = start.estimate(Constants())
        safe = got - start.spare
        yield (
            f"{start.name:28} {start.version:14} {start.free:6.2f} {got:8.2f} {got / start.free - 1:>+8.1%} "
            f"{apart[start.name] / start.free - 1:>+8.1%} {safe:8.2f}{'  over' if safe > start.free else ''}"
        )
    for name, some in (("all", found), ("from 0.17 on", [s for s in found if not s.older])):
        alone = sorted(abs(apart[s.name] / s.free - 1) for s in some)
        yield from _summary(name, some)
        yield f"{name}: with a model left out the median is {median(alone):.1%}, p90 {_p90(alone):.1%}"
    now, then = fitted(found), Constants()
    for what, fit, used in (
        ("engine, GiB", now.engine, then.engine),
        ("buffers between cards, GiB", now.buffers, then.buffers),
        ("the system's share of the weights", now.shared, then.shared),
    ):
        yield f"{what}: fitted {fit:.2f}, used {used:.2f}"


def _summary(name: str, some: list[Start]) -> Iterator[str]:
    ends = [(s.estimate(Constants()), s) for s in some]
    errors = sorted(abs(got / s.free - 1) for got, s in ends)
    over = [s.name for got, s in ends if got - s.spare > s.free]
    held = [got - s.spare <= s.free <= got + s.surplus for got, s in ends]
    unused = [1 - (got - s.spare) / s.free for got, s in ends if got - s.spare <= s.free]
    yield (
        f"{name}: {len(some)} starts, error at the median {median(errors):.1%}, p90 {_p90(errors):.1%}; "
        f"{len(over)} promised more than there was ({', '.join(over) or 'none'}); of the others "
        f"{median(unused):.0%} unused at the median; the range holds for {sum(held) / len(held):.0%}"
    )


def _p90(errors: list[float]) -> float:
    return errors[min(len(errors) - 1, int(0.9 * len(errors)))]
