"""Whether an engine's version can load a model: its architecture, its weights, on a kind of device.

Only what the engine's own sources or a trial show counts as known; ``None`` says that nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import architectures, config_of, model_type, text_config
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.quantisation import MLX, Quantised, read

MLX_ENGINES = ("mlx", "mlx-vlm", "vllm-mlx")
# Names that vLLM resolves to another before it looks a method up.
ALIASES = {"auto-round": "inc", "autoround": "inc", "intel/auto-round": "inc"}
# The methods in which vLLM keeps ModelOpt's algorithms apart.
MODELOPT = {
    "nvfp4": "modelopt_fp4",
    "nvfp4a16": "modelopt_fp4",
    "mxfp8": "modelopt_mxfp8",
    "mixed": "modelopt_mixed",
}
ALLOW = "engine_args.allow_deprecated_quantization"
NVFP4 = ("nvfp4", "nvfp4a16")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


class LoadReason(StrEnum):
    """What an engine's version makes of a model's architecture and weights."""

    TOGETHER = "together"
    DEPRECATED = "deprecated"
    REMOVED = "removed"
    NOT_ITS_OWN = "not-its-own"
    NO_MODEL_TYPE = "no-model-type"
    MLX_WEIGHTS = "mlx-weights"
    NO_METHOD = "no-method"
    REFUSED = "refused"
    NOT_NAMED = "not-named"
    NOT_TRIED = "not-tried"
    TRIAL_FAILED = "trial-failed"
    ON_PROCESSORS = "on-processors"
    TOO_OLD_A_CARD = "too-old-a-card"
    DETECTED = "detected"
    NEEDS_CARD = "needs-card"
    MLX_READS = "mlx-reads"
    DOES_NOT_READ = "does-not-read"
    NOT_THE_FORMAT = "not-the-format"
    NVFP4_ONLY = "nvfp4-only"
    CONVERTED = "converted"
    MADE_WHOLE = "made-whole"
    FP8_NOT_KNOWN = "fp8-not-known"


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """``can`` is ``None`` where it is not known; ``reason`` is ``None`` where there is nothing to say.

    ``here`` tells a refusal that another device would not share.
    """

    can: bool | None
    reason: Reason | None = None
    here: bool = False


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """Return what the chosen engine makes of architecture and weights, as reasons of the decisions they
    concern.
    """
    facts = []
    served = serves(snapshot, able)
    if served.reason is not None:
        facts.append(Evidence(Rule.ENGINE, "backend", able.engine, able.label, _told(served, served.reason)))
    found = read(snapshot)
    if found is not None:
        verdict = loads(found, snapshot, able, machine)
        if verdict.reason is not None:
            reason = _told(verdict, verdict.reason)
            facts.append(Evidence(Rule.ENGINE, "quantization", found.method, able.label, reason))
        if ALIASES.get(found.method, found.method) in able.deprecated:
            reason = Reason(LoadReason.DEPRECATED, engine=able.label, method=found.method)
            facts.append(Evidence(Rule.ENGINE, ALLOW, True, able.label, reason))
    return facts


def _told(verdict: LoadVerdict, reason: Reason) -> Reason:
    """Return a refusal is a warning."""
    return warning(reason) if verdict.can is False else reason


def fits(snapshot: Snapshot, able: Abilities, machine: Machine) -> LoadVerdict:
    """Return both together: the first that says no, else the first that does not know, else yes."""
    found = read(snapshot)
    asked = [serves(snapshot, able)]
    asked += [loads(found, snapshot, able, machine)] if found is not None else []
    refused = next((v for v in asked if v.can is False), None)
    unsure = next((v for v in asked if v.can is None), None)
    said = tuple(v.reason for v in asked if v.reason is not None)
    return refused or unsure or LoadVerdict(True, Reason(LoadReason.TOGETHER, reasons=said) if said else None)


def serves(snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    """Return whether the engine has the model's architecture."""
    if able.engine in MLX_ENGINES:
        return _serves_mlx(snapshot, able)
    named = architectures(snapshot)
    if not able.architectures or not named:
        return LoadVerdict(None)
    if any(a in able.architectures for a in named):
        return LoadVerdict(True)
    gone = next((a for a in named if a in able.removed), None)
    if gone is not None:
        last = able.removed[gone]
        return LoadVerdict(False, Reason(LoadReason.REMOVED, engine=able.label, architecture=gone, last=last))
    return LoadVerdict(None, Reason(LoadReason.NOT_ITS_OWN, engine=able.label, architecture=named[0]))


def _serves_mlx(snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    told = model_type(snapshot)
    if not able.model_types or told is None or config_of(snapshot).get("model_file"):
        return LoadVerdict(None)
    if able.remapped.get(told, told) in able.model_types:
        return LoadVerdict(True)
    return LoadVerdict(False, Reason(LoadReason.NO_MODEL_TYPE, engine=able.label, model_type=told))


def loads(found: Quantised, snapshot: Snapshot, able: Abilities, machine: Machine) -> LoadVerdict:
    """Return whether the engine reads weights that are quantised so."""
    if able.engine in MLX_ENGINES:
        return _loads_mlx(found, snapshot, able)
    if found.method == MLX:
        return LoadVerdict(False, Reason(LoadReason.MLX_WEIGHTS, engine=able.engine))
    if not able.methods:
        return LoadVerdict(None)
    method = ALIASES.get(found.method, found.method)
    if method not in able.methods:
        return LoadVerdict(False, Reason(LoadReason.NO_METHOD, engine=able.label, method=found.method))
    if found.key in able.refused:
        why = able.refused[found.key]
        return LoadVerdict(
            False, Reason(LoadReason.REFUSED, engine=able.label, quantisation=found.label, words=why)
        )
    if not found.named:
        return LoadVerdict(False, Reason(LoadReason.NOT_NAMED, engine=able.label))
    if machine.kind == "cpu":
        return _on_processors(found, snapshot, able)
    return _on_cards(found, method, able, machine)


def _on_processors(found: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    experts = any(key in text_config(config_of(snapshot)) for key in EXPERTS)
    key = next((k for k in _trials(found, experts) if k in able.processors), None)
    if key is None:
        return LoadVerdict(None, Reason(LoadReason.NOT_TRIED, engine=able.label, quantisation=found.label))
    why = able.processors[key]
    if why:
        reason = Reason(
            LoadReason.TRIAL_FAILED, engine=able.label, quantisation=found.label, words=why,
            needs=needs(found, able),
        )  # fmt: skip
        return LoadVerdict(False, reason, here=True)
    return LoadVerdict(True, Reason(LoadReason.ON_PROCESSORS, engine=able.label, quantisation=found.label))


def _trials(found: Quantised, experts: bool) -> Iterator[str]:
    if experts:
        yield f"{found.key}/experts"
    yield found.key


def _on_cards(found: Quantised, method: str, able: Abilities, machine: Machine) -> LoadVerdict:
    if machine.kind != "cuda":
        return LoadVerdict(None)
    least = _least(found, method, able)
    if machine.capability is not None and machine.capability < least:
        reason = Reason(
            LoadReason.TOO_OLD_A_CARD, engine=able.label, quantisation=found.label, least=least / 10,
            device=machine.name, capability=machine.capability / 10,
        )  # fmt: skip
        return LoadVerdict(False, reason, here=True)
    return LoadVerdict(True, Reason(LoadReason.DETECTED, engine=able.label, needs=needs(found, able)))


def needs(found: Quantised, able: Abilities) -> Reason:
    """Return the NVIDIA cards that can."""
    least = _least(found, ALIASES.get(found.method, found.method), able)
    return Reason(LoadReason.NEEDS_CARD, least=least / 10 if least > 1 else None)


def _least(found: Quantised, method: str, able: Abilities) -> int:
    """Of compressed-tensors and ModelOpt the scheme decides too; fp8 has kernels of several demands."""
    scheme = found.scheme or ""
    method = MODELOPT.get(scheme, method) if method == "modelopt" else method
    by_scheme = able.schemes.get(scheme, able.schemes.get("fp8", 0) if scheme.startswith("fp8-") else 0)
    return max(able.methods.get(method, 0), by_scheme if method == "compressed-tensors" else 0)


def _loads_mlx(found: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    if found.method == MLX:
        return LoadVerdict(True, Reason(LoadReason.MLX_READS, engine=able.engine))
    if not able.methods:
        return LoadVerdict(None)
    if found.method not in able.methods:
        return LoadVerdict(
            False, Reason(LoadReason.DOES_NOT_READ, engine=able.label, quantisation=found.label)
        )
    if found.method == "compressed-tensors" and able.formats and found.form not in able.formats:
        return LoadVerdict(False, Reason(LoadReason.NOT_THE_FORMAT, engine=able.label, format=found.form))
    if found.method == "modelopt" and able.engine == "mlx" and found.scheme not in NVFP4:
        return LoadVerdict(False, Reason(LoadReason.NVFP4_ONLY, engine=able.label, scheme=found.scheme))
    if found.method == "fp8" and able.engine == "mlx":
        return _fp8_mlx(found, snapshot, able)
    return LoadVerdict(True, Reason(LoadReason.CONVERTED, engine=able.label, quantisation=found.label))


def _fp8_mlx(found: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    told = str(model_type(snapshot))
    if able.remapped.get(told, told) in able.fp8_types:
        reason = Reason(LoadReason.MADE_WHOLE, engine=able.label, quantisation=found.label, model_type=told)
        return LoadVerdict(True, reason)
    return LoadVerdict(None, Reason(LoadReason.FP8_NOT_KNOWN, engine=able.label, model_type=told))
