"""Evidence for the backend: the engines that can load a model, and the one that suits the machine."""

from __future__ import annotations

from collections.abc import Callable

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.engine_capabilities import UNKNOWN, Abilities, Machine
from importer.signals.evidence import Evidence, Rule
from importer.signals.loading import LoadVerdict, fits, serves
from importer.signals.mlx_origin import made_for_mlx
from importer.signals.modalities import sees
from importer.signals.quantisation import MLX, read
from importer.signals.reasons import BackendReason

Known = Callable[[str], Abilities]


def evidence(
    snapshot: Snapshot, platform: str, machine: Machine | None = None, able: Known = lambda _: UNKNOWN
) -> list[Evidence]:
    """Return the evidence for the backend: MLX weights decide, then the engines that can load the model.

    ``platform`` is a value of ``sys.platform``. ``able`` returns the abilities of a backend's target version.
    """
    if machine is not None and machine.is_named_card:
        reason = Reason(BackendReason.VLLM_SERVES)
        return [Evidence(Rule.MACHINE, "backend", "vllm", machine.name, reason)]
    apple = _apple(snapshot, able)
    native = apple if platform == "darwin" else "vllm"
    facts = []
    quantised = read(snapshot)
    if quantised is not None and quantised.method == MLX:
        reason = Reason(BackendReason.MLX_WEIGHTS, quote=quantised.quote)
        facts.append(Evidence(Rule.FILES, "backend", apple, quantised.source, reason, quantised.quote))
    elif (origin := made_for_mlx(snapshot)) and serves(snapshot, able(apple)).can is not False:
        reason = Reason(BackendReason.MLX_ORIGIN, quote=origin[1])
        facts.append(Evidence(Rule.FILES, "backend", apple, origin[0], reason, origin[1]))
    elif machine is not None and (quantised is None or quantised.named):  # an unnamed method decides nothing
        facts += _instead(snapshot, machine, able, native, apple if native == "vllm" else "vllm")
    kind = BackendReason.MLX_IS_NATIVE if native == apple else BackendReason.VLLM_SERVES
    where = "this machine" if machine is None else machine.name
    return [*facts, Evidence(Rule.MACHINE, "backend", native, where, Reason(kind))]


def takers(snapshot: Snapshot, machine: Machine, able: Known) -> dict[str, LoadVerdict]:
    """Return the engines that could load the model with their verdicts; engines known to fail are absent."""
    apple = _apple(snapshot, able)
    verdicts = {name: fits(snapshot, able(name), machine) for name in ("vllm", apple)}
    return {
        name: verdict
        for name, verdict in verdicts.items()
        if verdict.can or (name == "vllm" and verdict.can is None)
    }


def _apple(snapshot: Snapshot, able: Known) -> str:
    """Return ``mlx-vlm`` for a model with other inputs than text, unless only mlx-lm has its type."""
    if not sees(snapshot):
        return "mlx"
    texts_only = serves(snapshot, able("mlx-vlm")).can is False and serves(snapshot, able("mlx")).can
    return "mlx" if texts_only else "mlx-vlm"


def _instead(snapshot: Snapshot, machine: Machine, able: Known, native: str, other: str) -> list[Evidence]:
    """Return evidence for ``other``, where ``native`` is known to fail and ``other`` is known to work.

    An engine that fails on this device alone stays: documents serve other machines too.
    """
    refusal = fits(snapshot, able(native), machine)
    if refusal.can is not False or not fits(snapshot, able(other), machine).can:
        return []
    if refusal.here:
        could = Reason(BackendReason.OTHER_COULD, engine=able(other).label, backend=other)
        return [Evidence(Rule.MACHINE, "backend", native, able(other).label, could)]
    can = Reason(BackendReason.OTHER_CAN, refusal=refusal.reason, engine=able(other).label)
    return [Evidence(Rule.FILES, "backend", other, able(native).label, can)]
