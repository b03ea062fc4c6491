"""Which engine family can load the model, and which one suits the machine."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.engine_capabilities import UNKNOWN, Abilities, Machine
from importer.signals.evidence import Evidence, Rule
from importer.signals.loading import LoadVerdict, fits, serves
from importer.signals.modalities import sees
from importer.signals.quantisation import MLX, read

Known = Callable[[str], Abilities]


class BackendReason(StrEnum):
    """Why a model is for one engine or another."""

    MLX_WEIGHTS = "mlx-weights"
    MLX_IS_NATIVE = "mlx-is-native"
    VLLM_SERVES = "vllm-serves"
    OTHER_COULD = "other-could"
    OTHER_CAN = "other-can"


def evidence(
    snapshot: Snapshot, platform: str, machine: Machine | None = None, able: Known = lambda _: UNKNOWN
) -> list[Evidence]:
    """``platform`` is ``sys.platform``; weights in MLX's own quantisation decide, then who can load it.

    ``able`` tells of a backend what the version that would be written for can do.
    """
    apple = _apple(snapshot, able)
    native = apple if platform == "darwin" else "vllm"
    facts = []
    found = read(snapshot)
    if found is not None and found.method == MLX:
        reason = Reason(BackendReason.MLX_WEIGHTS, quote=found.quote)
        facts.append(Evidence(Rule.FILES, "backend", apple, found.source, reason, found.quote))
    elif machine is not None and (found is None or found.named):  # what is only half told decides nothing
        facts += _instead(snapshot, machine, able, native, apple if native == "vllm" else "vllm")
    kind = BackendReason.MLX_IS_NATIVE if native == apple else BackendReason.VLLM_SERVES
    where = "this machine" if machine is None else machine.name
    return [*facts, Evidence(Rule.MACHINE, "backend", native, where, Reason(kind))]


def takers(snapshot: Snapshot, machine: Machine, able: Known) -> dict[str, LoadVerdict]:
    """Return the engines that could take the model, each with what is known; none that is known to fail."""
    apple = _apple(snapshot, able)
    asked = {name: fits(snapshot, able(name), machine) for name in ("vllm", apple)}
    return {
        name: found for name, found in asked.items() if found.can or (name == "vllm" and found.can is None)
    }


def _apple(snapshot: Snapshot, able: Known) -> str:
    """mlx-vlm for a model that sees, unless only mlx-lm has its type: then it reads text alone."""
    if not sees(snapshot):
        return "mlx"
    texts_only = serves(snapshot, able("mlx-vlm")).can is False and serves(snapshot, able("mlx")).can
    return "mlx" if texts_only else "mlx-vlm"


def _instead(snapshot: Snapshot, machine: Machine, able: Known, native: str, other: str) -> list[Evidence]:
    """Return the other engine, where the machine's own is known to fail and the other is known to do.

    An engine that fails on this device alone stays: documents are written for other machines too.
    """
    refusal = fits(snapshot, able(native), machine)
    if refusal.can is not False or not fits(snapshot, able(other), machine).can:
        return []
    if refusal.here:
        could = Reason(BackendReason.OTHER_COULD, engine=able(other).label, backend=other)
        return [Evidence(Rule.MACHINE, "backend", native, able(other).label, could)]
    can = Reason(BackendReason.OTHER_CAN, refusal=refusal.reason, engine=able(other).label)
    return [Evidence(Rule.FILES, "backend", other, able(native).label, can)]
