"""Whether an engine's version can load a model: its architecture, its weights, on a kind of device.

Only what the engine's own sources or a trial show counts as known; ``None`` says that nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from importer.evidence.abilities import Abilities, Machine
from importer.evidence.architecture import architectures, config_of, text_config
from importer.evidence.fact import Evidence
from importer.evidence.quantisation import MLX, Quantised, read
from importer.hub.snapshot import Snapshot

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """``can`` is ``None`` where it is not known; ``says`` is the reason, empty where there is nothing to say.

    ``here`` tells a refusal that another device would not share.
    """

    can: bool | None
    says: str = ""
    here: bool = False


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """What the chosen engine makes of architecture and weights, as reasons of the decisions they concern."""
    facts = []
    served = serves(snapshot, able)
    if served.says:
        says = served.says if served.can is not False else f"warning: {served.says}"
        facts.append(Evidence("engine", "backend", able.engine, able.label, says))
    found = read(snapshot)
    if found is not None:
        verdict = loads(found, snapshot, able, machine)
        says = verdict.says if verdict.can is not False else f"warning: {verdict.says}"
        if says:
            facts.append(Evidence("engine", "quantization", found.method, able.label, says))
        if ALIASES.get(found.method, found.method) in able.deprecated:
            says = (
                f"{able.label} refuses {found.method}, which it means to drop, unless it is told to allow it"
            )
            facts.append(Evidence("engine", ALLOW, True, able.label, says))
    return facts


def fits(snapshot: Snapshot, able: Abilities, machine: Machine) -> Verdict:
    """Both together: the first that says no, else the first that does not know, else yes."""
    found = read(snapshot)
    asked = [serves(snapshot, able)]
    asked += [loads(found, snapshot, able, machine)] if found is not None else []
    refused = next((v for v in asked if v.can is False), None)
    unsure = next((v for v in asked if v.can is None), None)
    return refused or unsure or Verdict(True, "; ".join(v.says for v in asked if v.says))


def serves(snapshot: Snapshot, able: Abilities) -> Verdict:
    """Whether the engine has the model's architecture."""
    if able.engine in MLX_ENGINES:
        return _serves_mlx(snapshot, able)
    named = architectures(snapshot)
    if not able.architectures or not named:
        return Verdict(None)
    if any(a in able.architectures for a in named):
        return Verdict(True)
    gone = next((a for a in named if a in able.removed), None)
    if gone is not None:
        last = able.removed[gone]
        return Verdict(False, f"{able.label} does not serve {gone} any more; {last} was the last that did")
    says = f"{able.label} has no {named[0]} of its own; it would try transformers' code for it"
    return Verdict(None, says)


def _serves_mlx(snapshot: Snapshot, able: Abilities) -> Verdict:
    model_type = config_of(snapshot).get("model_type")
    if not (able.model_types and isinstance(model_type, str)) or config_of(snapshot).get("model_file"):
        return Verdict(None)
    if able.remapped.get(model_type, model_type) in able.model_types:
        return Verdict(True)
    return Verdict(False, f"{able.label} has no model type {model_type}")


def loads(found: Quantised, snapshot: Snapshot, able: Abilities, machine: Machine) -> Verdict:
    """Whether the engine reads weights that are quantised so."""
    if able.engine in MLX_ENGINES:
        return _loads_mlx(found, snapshot, able)
    if found.method == MLX:
        return Verdict(False, f"{able.engine} does not read weights in MLX's own quantisation")
    if not able.methods:
        return Verdict(None)
    method = ALIASES.get(found.method, found.method)
    if method not in able.methods:
        return Verdict(False, f"{able.label} has no quantisation method {found.method}")
    if found.key in able.refused:
        return Verdict(False, f"{able.label} refuses {found.label}: {able.refused[found.key]}")
    if not found.named:
        says = "nothing in the files names modelopt where it is looked for"
        return Verdict(False, f"{able.label} takes the weights for whole: {says}")
    if machine.kind == "cpu":
        return _on_processors(found, snapshot, able)
    return _on_cards(found, method, able, machine)


def _on_processors(found: Quantised, snapshot: Snapshot, able: Abilities) -> Verdict:
    experts = any(key in text_config(config_of(snapshot)) for key in EXPERTS)
    key = next((k for k in _trials(found, experts) if k in able.processors), None)
    if key is None:
        says = f"whether {able.label} runs {found.label} on processors was not tried"
        return Verdict(None, f"{says}; it detects the method by itself")
    why = able.processors[key]
    if why:
        says = f"{able.label} does not run {found.label} on processors: a trial ended with “{why}”"
        return Verdict(False, f"{says}; {needs(found, able)}", here=True)
    return Verdict(True, f"{able.label} loads {found.label} on processors and detects it by itself")


def _trials(found: Quantised, experts: bool) -> Iterator[str]:
    if experts:
        yield f"{found.key}/experts"
    yield found.key


def _on_cards(found: Quantised, method: str, able: Abilities, machine: Machine) -> Verdict:
    if machine.kind != "cuda":
        return Verdict(None)
    least = _least(found, method, able)
    if machine.capability is not None and machine.capability < least:
        says = f"{able.label} needs {_capability(least)} for {found.label}"
        return Verdict(False, f"{says}; {machine.name} has {machine.capability / 10:.1f}", here=True)
    return Verdict(True, f"{able.label} detects it by itself; {needs(found, able)}")


def needs(found: Quantised, able: Abilities) -> str:
    """The NVIDIA cards that can."""
    least = _least(found, ALIASES.get(found.method, found.method), able)
    return f"it needs an NVIDIA card{f' of {_capability(least)}' if least > 1 else ''}"


def _least(found: Quantised, method: str, able: Abilities) -> int:
    """Of compressed-tensors and ModelOpt the scheme decides too; fp8 has kernels of several demands."""
    scheme = found.scheme or ""
    method = MODELOPT.get(scheme, method) if method == "modelopt" else method
    by_scheme = able.schemes.get(scheme, able.schemes.get("fp8", 0) if scheme.startswith("fp8-") else 0)
    return max(able.methods.get(method, 0), by_scheme if method == "compressed-tensors" else 0)


def _capability(least: int) -> str:
    return f"compute capability {least / 10:.1f} or more"


def _loads_mlx(found: Quantised, snapshot: Snapshot, able: Abilities) -> Verdict:
    if found.method == MLX:
        return Verdict(True, f"weights in MLX's own quantisation, which {able.engine} reads")
    if not able.methods:
        return Verdict(None)
    if found.method not in able.methods:
        return Verdict(False, f"{able.label} does not read {found.label}")
    if found.method == "compressed-tensors" and able.formats and found.form not in able.formats:
        return Verdict(False, f"{able.label} does not read compressed-tensors in the format {found.form}")
    if found.method == "modelopt" and able.engine == "mlx" and found.scheme not in NVFP4:
        return Verdict(False, f"{able.label} reads ModelOpt's NVFP4 alone, not {found.scheme}")
    if found.method == "fp8" and able.engine == "mlx":
        return _fp8_mlx(found, snapshot, able)
    return Verdict(True, f"{able.label} turns {found.label} into its own quantisation while it loads")


def _fp8_mlx(found: Quantised, snapshot: Snapshot, able: Abilities) -> Verdict:
    model_type = str(config_of(snapshot).get("model_type"))
    if able.remapped.get(model_type, model_type) in able.fp8_types:
        return Verdict(
            True, f"{able.label} turns {found.label} of {model_type} into whole weights while it loads"
        )
    return Verdict(
        None, f"{able.label} reads FP8 weights of some model types; {model_type} is not known to be one"
    )
