"""Memory that starts on real cards left for the cache, beside estimates: of all, and with a model left out.

``starts.json`` has starts of vLLM that were published with their logs: config (or the record that has it),
card, settings, and the log's figures in GiB of one card. ``left_out`` says what cannot be compared. Those
called *older* are before 0.17. A start that failed has ``started: false`` and a ``cause``. The judgement of
its settings has to foretell it, and may call no start impossible that ran.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import hypot, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.memory import devices, shape
from importer.memory.case import LoadCase
from importer.memory.devices import GIB
from importer.memory.engine_keys import FitRequest
from importer.memory.estimate_types import Unknown
from importer.memory.judgement import Judgement, judge
from importer.memory.pages import has
from importer.memory.rest import BUFFERS, COMPILED, CONSUMED, ENGINE, SYSTEM, is_second
from importer.memory.weights import read
from importer.signals.comparison import INDEX

HEADING = (
    f"{'start':28} {'version':14} {'free':>6} {'estimate':>8} {'error':>8} {'left out':>8} {'safe end':>8}"
)


Pair = tuple[float, float]
OTHERWISE = ("layout", "card")  # causes of a failed start that are no memory


@dataclass(frozen=True)
class Constants:
    """GiB, likely and at most: the engine, a first start with the second runner, buffers, the system."""

    engine: Pair = (ENGINE["cuda"].likely / GIB, ENGINE["cuda"].high / GIB)
    compiled: Pair = (COMPILED.likely / GIB, COMPILED.high / GIB)
    buffers: Pair = (BUFFERS.likely / GIB, BUFFERS.high / GIB)
    system: Pair = (SYSTEM.likely / GIB, SYSTEM.high / GIB)


@dataclass(frozen=True)
class Start:
    """One start; sizes are GiB of one card, ``free`` that of the log.

    ``peak`` is the estimate of one step with its graphs, adapters and what else no constant has, ``spare``
    what a document keeps free, ``open`` the part of it that no constant has, ``surplus`` the other end.
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
    open: float
    surplus: float
    cards: int
    shared: bool
    second: bool

    def estimate(self, constants: Constants) -> float:
        """The memory for the cache."""
        return self.budget - self.weights - self.peak - sum(likely for likely, _ in self.rest(constants))

    def safe(self, constants: Constants) -> float:
        """The memory that a document promises."""
        if constants == Constants():
            return self.estimate(constants) - self.spare
        ranges = (high - likely for likely, high in self.rest(constants))
        return self.estimate(constants) - hypot(self.open, *ranges)

    def rest(self, constants: Constants) -> tuple[Pair, ...]:
        """The constants that count for this start."""
        parts = (
            (True, constants.engine), (self.second, constants.compiled),
            (self.cards > 1, constants.buffers), (self.shared, constants.system),
        )  # fmt: skip
        return tuple(pair for counts, pair in parts if counts)

    def left(self, constants: Constants) -> float:
        """What the log has beside weights, cache and peak, and beside these constants."""
        rest = sum(likely for likely, _ in self.rest(constants))
        return self.budget - self.loaded - self.free - self.peak - rest


def records() -> list[dict[str, Any]]:
    """The starts as they were published, each with its config, whose share of the card is known."""
    listed = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    by_id = {record["id"]: record for record in listed}
    for record in listed:
        while isinstance(record["config"], str):
            of = by_id[record["config"]]
            record |= {key: of[key] for key in ("config", "index") if key in of}
    return [record for record in listed if "memory" not in record.get("left_out", {})]


def starts() -> list[Start]:
    """The starts whose memory for the cache can be compared."""
    return [_start(record) for record in records() if "free" in record["reported"]]


def judged() -> list[tuple[dict[str, Any], Judgement]]:
    """Every start whose settings are known, with their judgement."""
    known = [record for record in records() if "start" not in record.get("left_out", {})]
    return [(record, judge(of, of.request)) for record in known for of in (case(record),)]


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
    known = re.search(r"\b0\.(\d+)(?![-x\d])", record["version"])
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
    plan = judge(of, of.request).plan
    fit = plan.fit
    sizes = {term.part: term.amount.likely / GIB for term in fit.terms}
    if "weights" in record.get("left_out", {}):  # of a size that the log alone has
        sizes["weights"] = record["reported"].get("weights", sizes["weights"])
    total, rest = fit.total, fit.term("overhead")
    known = rest.amount.high - rest.amount.likely if rest is not None else 0
    start = Start(
        record["id"], record["model"], record["version"], record["older"], record["reported"]["free"],
        plan.budget / GIB, sizes["weights"], record["reported"].get("weights", sizes["weights"]),
        sum(sizes.get(part, 0) for part in ("activations", "graphs", "adapters", "overhead")),
        plan.spare / GIB, sqrt(plan.spare**2 - known**2) / GIB, (total.likely - total.low) / GIB,
        plan.split.cards, of.device.shared,
        is_second(of.shape, fit.load) and has(fit.load, CONSUMED) and not fit.load.eager,
    )  # fmt: skip
    return replace(start, peak=start.peak - sum(likely for likely, _ in start.rest(Constants())))


def fitted(known: list[Start]) -> Constants:
    """The median and p90 of what is left: of single cards, then of each kind beside what is fitted."""
    known = [s for s in known if not s.older]
    alone = [s for s in known if s.cards == 1 and not s.shared]
    none = (0.0, 0.0)
    found = Constants(none, none, none, none)
    groups = {
        "engine": [s for s in alone if not s.second], "compiled": [s for s in alone if s.second],
        "buffers": [s for s in known if s.cards > 1 and not s.shared],
        "system": [s for s in known if s.shared],
    }  # fmt: skip
    for name, group in groups.items():
        rests = [s.left(found) for s in group]
        pair = (median(rests), _p90(sorted(rests))) if len(rests) > 1 else getattr(Constants, name)
        found = replace(found, **{name: pair})
    return found


def rows() -> Iterator[str]:
    """Each start, then the errors, the starts that were promised more than they had, and the constants."""
    found, used = starts(), Constants()
    others = {s.model: fitted([o for o in found if o.model != s.model]) for s in found}
    for start in found:
        got, safe = start.estimate(used), start.safe(used)
        yield (
            f"{start.name:28} {start.version[:14]:14} {start.free:6.2f} "
            f"{got:8.2f} {got / start.free - 1:>+8.1%} "
            f"{start.estimate(others[start.model]) / start.free - 1:>+8.1%} {safe:8.2f}"
            f"{'  over' if safe > start.free else ''}"
        )
    parts = {
        "all": found, "from 0.17 on": [s for s in found if not s.older],
        "cards of their own": [s for s in found if not s.shared],
        "memory of the system": [s for s in found if s.shared],
    }  # fmt: skip
    for name, some in parts.items():
        yield _summary(name, some, dict.fromkeys(others, used))
        yield _summary(f"{name}, with each model left out", some, others)
    yield from _foretold()
    fit = fitted(found)
    for field in fields(Constants):
        (one, most), (likely, high) = getattr(fit, field.name), getattr(used, field.name)
        yield f"{field.name}, GiB: fitted {one:.2f}, at most {most:.2f}; used {likely:.2f}, {high:.2f}"


def _foretold() -> Iterator[str]:
    """Each failed start that no judgement foretold, then how many were, and the starts called impossible."""
    failed = [(r, j) for r, j in judged() if r["reported"].get("started") is False]
    missed = [r for r, j in failed if j.word == "fits" and not j.start]
    for record in missed:
        yield f"not foretold: {record['id']} ({record['cause']})"
    own = [r for r, _ in failed if r["cause"] not in OTHERWISE]
    yield (
        f"failed starts foretold: {1 - len(missed) / len(failed):.0%} of {len(failed)}; "
        f"of memory alone {1 - len(missed) / len(own):.0%} of {len(own)}"
    )
    ran = [(r, j) for r, j in judged() if r["reported"].get("started") is not False]
    wrong = [r["id"] for r, j in ran if j.word == "too-large" or j.start]
    doubted = sum(j.word == "may-not-start" for _, j in ran)
    yield (
        f"starts that ran: {len(ran)}; called impossible: {len(wrong)} ({', '.join(wrong) or 'none'}); "
        f"they may not start: {doubted}"
    )


def _summary(name: str, some: list[Start], constants: Mapping[str, Constants]) -> str:
    ends = [(s.estimate(constants[s.model]), s.safe(constants[s.model]), s) for s in some]
    errors = sorted(abs(got / s.free - 1) for got, _, s in ends)
    over = [s.name for _, safe, s in ends if safe > s.free]
    held = [safe <= s.free <= got + s.surplus for got, safe, s in ends]
    unused = [1 - safe / s.free for _, safe, s in ends if safe <= s.free]
    return (
        f"{name}: {len(some)} starts, error at the median {median(errors):.1%}, p90 {_p90(errors):.1%}; "
        f"{len(over)} promised more than there was ({', '.join(over) or 'none'}); of the others "
        f"{median(unused):.0%} unused at the median; the range holds for {sum(held) / len(held):.0%}"
    )


def _p90(errors: list[float]) -> float:
    return errors[min(len(errors) - 1, int(0.9 * len(errors)))]
