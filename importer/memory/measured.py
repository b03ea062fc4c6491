"""The memory that an engine reported at a start with random weights; it takes the place of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from importer.frozen import frozen
from importer.hub.snapshot import mapping, whole
from importer.memory import pages
from importer.memory.devices import GIB, Device
from importer.memory.estimate_types import CACHES, Amount, Fit, Load, Term, TermReason
from importer.reasons import Reason, ReasonKind

LOG_DIGITS = GIB // 16  # bytes by which sums of a log's rounded figures may be off
AGAIN = 150 << 20  # bytes that vLLM itself keeps free between two starts (its gpu_worker.py)
NEAR = 0.03  # of a card's memory: two drivers report one card so far apart
SURE = 0.01  # of a sequence's bytes: less is no difference
SCALES = (0.5, 2.0)  # engine's bytes of a sequence, by the counted ones
LARGEST = 1 << 50
AT_MOST = ("slots", "batched_tokens")
# Settings of a load whose own effect the figures do not hold, or that may be less than at the measurement.
FREE = {
    "context", "sequences", "slots", "batched_tokens", "version", "memory", "capability", "shared",
}  # fmt: skip


class MeasuredReason(ReasonKind):
    """Why reported figures count for nothing, or for another device."""

    BEYOND = "its log says {what} {size:.2f} GiB, of {whole:.2f} GiB in all"
    TOKENS = "its log says {tokens:,} tokens in {cache:.2f} GiB, room for {counted:,}"
    NOTHING = "its log does not say how much memory it took"


@frozen
class Reported:
    """What a log reports of one device, in bytes; of several devices, the fullest one's.

    ``weights``      of the loaded model. ``activations`` at their peak; ``graphs`` of CUDA.
    ``consumed``     by weights and everything that the engine does not free, without the cache.
    ``cache``        free for keys, values and states; ``tokens`` in it, ``context`` of one sequence.
    ``free``         of ``total`` bytes before the start; ``requested`` those that the engine may fill.
    """

    weights: int | None = None
    cache: int | None = None
    tokens: int | None = None
    context: int | None = None
    activations: int | None = None
    graphs: int | None = None
    consumed: int | None = None
    free: int | None = None
    total: int | None = None
    requested: int | None = None

    def parts(self, beside: int) -> dict[str, int | None]:
        """Return what is a part of everything but the cache.

        The graphs are one where vLLM subtracts them for themselves. Its second runner did not before 0.29,
        and its activations have them since then.
        """
        parts = {"weights": self.weights, "activations": self.activations}
        with_graphs = {**parts, "graphs": self.graphs}
        return with_graphs if sum(n or 0 for n in with_graphs.values()) <= beside + LOG_DIGITS else parts


@frozen
class Measured:
    """A start with random weights, as receipts hold it; bytes of one device.

    ``engine``  the backend; ``revision`` the commit of the model.
    ``load``    the settings of the run. ``beside`` everything but the cache.
    ``scale``   the engine's bytes of a sequence, by the counted ones.
    ``served``  whether the engine served with this context; otherwise it ended, and named the room.
    ``device``  kind, name, count, memory and capability; ``cards`` by name, their ``driver``.
    """

    engine: str
    version: str
    revision: str | None
    at: str
    seconds: float
    device: Mapping[str, Any]
    load: Mapping[str, Any]
    beside: int
    reported: Reported
    served: bool
    scale: float = 1.0
    cards: tuple[str, ...] = ()
    driver: str | None = None

    @property
    def name(self) -> str:
        """Return the engine with its version."""
        return f"{self.engine} {self.version}"

    def to_json(self) -> dict[str, Any]:
        """Return the measurement as receipts hold it, without figures that the log lacks."""
        data = asdict(self) | {"cards": [*self.cards], "load": dict(self.load), "device": dict(self.device)}
        data["reported"] = {key: n for key, n in asdict(self.reported).items() if n is not None}
        return {key: value for key, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: object) -> Measured:
        """Return the measurement that ``to_json`` gave; raises ValueError for anything else."""
        given = dict(mapping(data))
        figures = mapping(given.get("reported"))
        named = {f.name for f in fields(Reported)}
        amounts = {key: whole(n, 0) for key, n in figures.items() if key in named}
        sizes = [given.get("beside"), *amounts.values()]
        texts = [given.get(key) for key in ("engine", "version", "at")]
        scale, seconds = given.get("scale", 1.0), given.get("seconds")
        sound = (
            all(isinstance(n, int) and 0 <= n < LARGEST for n in sizes)
            and all(isinstance(text, str) and text.isprintable() and len(text) <= 100 for text in texts)
            and isinstance(scale, int | float) and SCALES[0] <= scale <= SCALES[1]
            and isinstance(seconds, int | float) and isinstance(given.get("served"), bool)
        )  # fmt: skip
        if not sound:
            raise ValueError("measured")
        known = {key: value for key, value in given.items() if key in cls.__dataclass_fields__}
        revision = known.get("revision")
        own = {
            "revision": revision if isinstance(revision, str) else None,
            "device": mapping(known.get("device")), "load": mapping(known.get("load")),
            "cards": tuple(str(card) for card in known.get("cards") or ()), "reported": Reported(**amounts),
        }  # fmt: skip
        return cls(**known | own)

    def on(self, device: Device) -> bool:
        """Return whether it holds for a device: this machine's own, or one of the same kind."""
        own = self.device.get("name") == device.name
        return (own and self.device.get("kind") == device.kind) or alike(self.device, device)

    def difference(self, load: Load) -> tuple[str, object, object] | None:
        """Return the setting for which it does not hold, with the value of the load and that of the run.

        Fewer sequences and fewer tokens of a step are no difference.
        """
        for key, value in ran(load).items():
            run = self.load.get(key)
            more = key in AT_MOST and value > whole(run, 0)
            if more or (key not in FREE and run != value):
                return key, value, run
        return None

    def applied(self, fit: Fit) -> Fit:
        """Return the estimate with the reported figures in place of everything that it guessed."""
        caches = (replace(t, amount=t.amount.times(self.scale)) for t in fit.terms if t.part in CACHES)
        return replace(fit, terms=(*self._terms(fit), *caches), scale=self.scale)

    def _terms(self, fit: Fit) -> list[Term]:
        counted, figures = fit.term("weights"), self.reported
        weights = figures.weights if figures.weights is not None or counted is None else (
            min(counted.amount.likely, self.beside)
        )  # fmt: skip
        parts = replace(figures, weights=weights).parts(self.beside)
        rest = max(self.beside - sum(n or 0 for n in parts.values()), 0)
        why = Reason(TermReason.MEASURED, engine=self.name, at=self.at[:10])
        terms = [Term(part, Amount.exactly(n), why) for part, n in parts.items() if n is not None]  # type: ignore[arg-type]
        return [*terms, Term("overhead", Amount(rest, rest, rest + AGAIN), why)]


def is_measured(fit: Fit) -> Reason | None:
    """Return the reason of figures that were measured; ``None`` for an estimate."""
    return next((t.why for t in fit.terms if t.why.kind is TermReason.MEASURED), None)


def alike(one: Mapping[str, Any], device: Device) -> bool:
    """Return whether a device, as receipts hold it, is of the same kind as another one, whatever its name.

    A part of a card's memory, that the user gave, is of that card, too.
    """
    memory, own = one.get("memory"), device.memory
    if not isinstance(memory, int) or own is None or one.get("kind") != device.kind:
        return False
    known = {one.get("capability"), device.capability} - {None}
    given = "given" in (one.get("basis"), device.basis)
    return len(known) <= 1 and (given or abs(memory - own) <= NEAR * own)


def ran(load: Load) -> dict[str, Any]:
    """Return the settings of a load, the engine's own defaults included."""
    slots = load.slots or pages.slots_default(load)
    batched = load.batched_tokens or pages.batched_default(load)
    return replace(load, slots=min(slots, batched), batched_tokens=batched).to_json()


def contradiction(
    reported: Reported, beside: int | None, memory: int, pool: Mapping[str, int] | None
) -> Reason | None:
    """Return what cannot be true of reported figures on a device with so many bytes, if anything.

    ``pool`` has bytes of a block, and blocks of one sequence with the reported context.
    """
    if beside is None:
        return Reason(MeasuredReason.NOTHING)
    named = {
        "weights": reported.weights, "activations": reported.activations, "graphs": reported.graphs,
    }  # fmt: skip
    for what, size in {**named, "a cache of": reported.cache, "all beside the cache": beside}.items():
        if size is not None and not 0 <= size <= memory + LOG_DIGITS:
            return Reason(MeasuredReason.BEYOND, what=what, size=size / GIB, whole=memory / GIB)
    parts = sum(n or 0 for n in reported.parts(beside).values())
    if parts > beside + LOG_DIGITS:
        return Reason(MeasuredReason.BEYOND, what="parts of", size=parts / GIB, whole=beside / GIB)
    ratio = scale(reported, pool)
    if ratio is not None and not SCALES[0] <= ratio <= SCALES[1]:
        cache, tokens = reported.cache or 0, reported.tokens or 0
        return Reason(MeasuredReason.TOKENS, tokens=tokens, cache=cache / GIB, counted=int(tokens * ratio))
    return None


def scale(reported: Reported, pool: Mapping[str, int] | None) -> float | None:
    """Return the engine's bytes of one sequence by the counted ones; ``None`` where a figure is missing.

    It is 1 where the log's rounding explains the difference.
    """
    cache, tokens, context = reported.cache, reported.tokens, reported.context
    if not (cache and tokens and context and pool and pool["block"] and pool["blocks"]):
        return None
    ratio = cache // pool["block"] / pool["blocks"] * context / tokens
    return 1.0 if abs(ratio - 1) <= max(SURE, GIB / 100 / cache) else round(ratio, 3)
