"""Verdicts on whether an engine's version can load a model, and the engine that suits the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, listed, mapping, text
from importer.reasons import Reason
from importer.signals.architecture import FILE, architectures, config_of, model_type, text_config
from importer.signals.comparison import tensors
from importer.signals.engine_capabilities import UNKNOWN, Abilities, Machine
from importer.signals.evidence import Evidence, Rule, Source, warning
from importer.signals.mistral_files import forms
from importer.signals.modalities import sees
from importer.signals.quantisation import MLX, Quantised, read
from importer.signals.reasons import BackendReason, LoadReason

# Names that vLLM resolves to another before it looks a method up.
ALIASES = {"auto-round": "inc", "autoround": "inc", "intel/auto-round": "inc"}
# vLLM's own methods for ModelOpt's algorithms.
MODELOPT = {
    "nvfp4": "modelopt_fp4",
    "nvfp4a16": "modelopt_fp4",
    "mxfp8": "modelopt_mxfp8",
    "mixed": "modelopt_mixed",
}
ALLOW = "engine_args.allow_deprecated_quantization"
# Ends of class names that vLLM replaces by each other, to find one to convert (``_SUFFIX_TO_DEFAULTS``).
ENDS = (
    "ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel", "ForTextEncoding",
    "EmbeddingModel", "ForSequenceClassification", "ForTokenClassification", "ForAudioClassification",
    "ForImageClassification", "ForVideoClassification", "ClassificationModel", "ForRewardModeling",
    "RewardModel", "Model",
)  # fmt: skip
NVFP4 = ("nvfp4", "nvfp4a16")
TOKENIZER = "tokenizer_config.json"
OWN_CONFIG = "params.json"  # Mistral's; engines on MLX open config.json alone (``utils.load_config``)
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


@frozen
class LoadVerdict:
    """Whether an engine can load a model.

    ``can``     ``None`` where it is unknown.
    ``reason``  ``None`` where there is nothing to report.
    ``here``    whether a rejection holds for this device alone.
    """

    can: bool | None
    reason: Reason | None = None
    here: bool = False


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """Return the engine's verdicts on architecture and weights, as evidence for their keys."""
    facts = []
    served = serves(snapshot, able)
    if served.reason is not None:
        facts.append(
            Evidence(Rule.ENGINE, "backend", able.engine, able.label, _marked(served, served.reason))
        )
    quantised = read(snapshot)
    if quantised is not None:
        verdict = loads(quantised, snapshot, able, machine)
        if verdict.reason is not None:
            reason = _marked(verdict, verdict.reason, silent=backends.of(able.engine).on_apple)
            if verdict.reason.kind is LoadReason.TRIAL_FAILED and not machine.named:
                reason = verdict.reason  # the document is for no device in particular
            facts.append(Evidence(Rule.ENGINE, "quantization", quantised.method, able.label, reason))
        if ALIASES.get(quantised.method, quantised.method) in able.deprecated:
            reason = Reason(LoadReason.DEPRECATED, engine=able.label, method=quantised.method)
            facts.append(Evidence(Rule.ENGINE, ALLOW, True, able.label, reason))
    return facts


def unnamed_class(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the warning for a config without a class: vLLM takes that of the model type, without a head.

    So does ``get_config`` in ``transformers_utils/config.py``; it ends for a type that transformers lacks.
    """
    name = text(snapshot.json(FILE).get("model_type"))
    if not backends.of(able.engine).adapts or name is None or architectures(snapshot):
        return []
    reason = warning(Reason(LoadReason.NO_ARCHITECTURES, engine=able.label, model_type=name))
    return [Evidence(Rule.ENGINE, "backend", able.engine, FILE, reason, f"model_type: {name}"[:80])]


def _marked(verdict: LoadVerdict, reason: Reason, *, silent: bool = False) -> Reason:
    """Return the reason, marked as a warning where the verdict is a rejection.

    So it is where nothing is known and the engine would be ``silent``: vllm-mlx drops unknown tensors.
    """
    return warning(reason) if verdict.can is False or (silent and verdict.can is None) else reason


def fits(snapshot: Snapshot, able: Abilities, machine: Machine) -> LoadVerdict:
    """Return the verdict on architecture and weights: the first rejection, else unknown, else yes."""
    quantised = read(snapshot)
    verdicts = [serves(snapshot, able)]
    verdicts += [loads(quantised, snapshot, able, machine)] if quantised is not None else []
    refused = next((v for v in verdicts if v.can is False), None)
    unsure = next((v for v in verdicts if v.can is None), None)
    reasons = tuple(v.reason for v in verdicts if v.reason is not None)
    return (
        refused
        or unsure
        or LoadVerdict(True, Reason(LoadReason.TOGETHER, reasons=reasons) if reasons else None)
    )


def serves(snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    """Return whether the engine has the model's architecture."""
    if backends.of(able.engine).on_apple:
        return _serves_mlx(snapshot, able)
    named = architectures(snapshot)
    if not able.architectures or not named:
        return LoadVerdict(None)
    if (unknown := _unknown_tokenizer(snapshot, able)) is not None:
        return LoadVerdict(False, unknown)
    if any(a in able.architectures or a in able.pooling for one in named for a in _converted(one)):
        return LoadVerdict(True)
    removed = next((a for a in named if a in able.removed), None)
    if removed is not None:
        last = able.removed[removed]
        return LoadVerdict(
            False, Reason(LoadReason.REMOVED, engine=able.label, architecture=removed, last=last)
        )
    lacking = model_type(snapshot)
    unknown_type = able.model_types and lacking is not None and lacking not in able.model_types
    if unknown_type and not config_of(snapshot).get("auto_map"):
        reason = Reason(LoadReason.NO_CODE, engine=able.label, architecture=named[0], model_type=lacking)
        return LoadVerdict(False, reason)
    return LoadVerdict(None, Reason(LoadReason.NOT_ITS_OWN, engine=able.label, architecture=named[0]))


def _unknown_tokenizer(snapshot: Snapshot, able: Abilities) -> Reason | None:
    """Return the reason for a tokenizer's class that the engine's transformers lacks, and no code brings."""
    settings, own = snapshot.json(TOKENIZER), forms(snapshot)
    name = text(settings.get("tokenizer_class"))
    if name is None or not able.tokenizer_classes or settings.get("auto_map"):
        return None
    plain = name.removesuffix("Fast")
    if {plain, f"{plain}Fast"} & able.tokenizer_classes or (own.own_tokenizer and not own.tokenizer):
        return None
    quote = f"tokenizer_class: {name}"[:80]
    return Reason(LoadReason.NO_TOKENIZER, engine=able.label, file=TOKENIZER, quote=quote)


def _converted(name: str) -> Iterator[str]:
    """Yield the class, and those that vLLM converts to return what the class returns."""
    yield name
    end = next((e for e in ENDS if name.endswith(e)), None)
    if end is not None:
        yield from (name.removesuffix(end) + other for other in ENDS)


def _serves_mlx(snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    if snapshot.has(OWN_CONFIG) and not snapshot.has(FILE):
        return LoadVerdict(False, Reason(LoadReason.NO_CONFIG, engine=able.label, file=OWN_CONFIG))
    able, type_name = _library(snapshot, able), model_type(snapshot)
    if not able.model_types or type_name is None or config_of(snapshot).get("model_file"):
        return LoadVerdict(None)
    type_name = able.remapped.get(type_name, type_name)
    tower = text(mapping(config_of(snapshot).get("vision_config")).get("model_type"))
    towers = able.towers.get(type_name)
    if towers and tower is not None and tower not in towers and sees(snapshot):
        fields = {"model_type": type_name, "quote": f"model_type: {tower}"[:80], "towers": towers}
        return LoadVerdict(False, Reason(LoadReason.NO_TOWER, engine=able.label, **fields))
    if type_name in able.model_types:
        return LoadVerdict(True)
    return LoadVerdict(False, Reason(LoadReason.NO_MODEL_TYPE, engine=able.label, model_type=type_name))


def loads(quantised: Quantised, snapshot: Snapshot, able: Abilities, machine: Machine) -> LoadVerdict:
    """Return whether the engine reads weights with this quantisation."""
    if backends.of(able.engine).on_apple and quantised.beside:
        reason = Reason(LoadReason.NOT_IN_CONFIG, engine=able.label, file=quantised.source)
        return LoadVerdict(False, reason)
    if backends.of(able.engine).on_apple:
        return _loads_mlx(quantised, snapshot, able)
    if quantised.method == MLX:
        return LoadVerdict(False, _unread(able, quantised.label))
    if not able.methods:
        return LoadVerdict(None)
    method = ALIASES.get(quantised.method, quantised.method)
    if method not in able.methods:
        return LoadVerdict(False, _unread(able, quantised.label))
    if quantised.key in able.refused:
        why = able.refused[quantised.key]
        return LoadVerdict(
            False, Reason(LoadReason.REFUSED, engine=able.label, quantisation=quantised.label, words=why)
        )
    if not quantised.named:
        return LoadVerdict(False, Reason(LoadReason.NOT_NAMED, engine=able.label))
    if machine.kind == "cpu":
        return _on_processors(quantised, snapshot, able)
    return _on_cards(quantised, method, able, machine)


def _of(kind: LoadReason, able: Abilities, quantisation: str) -> Reason:
    return Reason(kind, engine=able.label, quantisation=quantisation)


def _unread(able: Abilities, quantisation: str, alone: tuple[str, ...] = ()) -> Reason:
    return Reason(LoadReason.DOES_NOT_READ, engine=able.label, quantisation=quantisation, alone=alone)


def _on_processors(quantised: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    experts = any(key in text_config(config_of(snapshot)) for key in EXPERTS)
    trials = [f"{quantised.key}/experts"] * experts + [quantised.key]
    key = next((k for k in trials if k in able.processors), None)
    if key is None:
        return LoadVerdict(None, _of(LoadReason.NOT_KNOWN, able, f"{quantised.label} on processors"))
    why = able.processors[key]
    if why:
        reason = Reason(
            LoadReason.TRIAL_FAILED, engine=able.label, quantisation=quantised.label, words=why,
            needs=needs(quantised, able),
        )  # fmt: skip
        return LoadVerdict(False, reason, here=True)
    return LoadVerdict(True, _of(LoadReason.READS, able, f"{quantised.label} on processors"))


def _on_cards(quantised: Quantised, method: str, able: Abilities, machine: Machine) -> LoadVerdict:
    if machine.kind != "cuda":
        return LoadVerdict(None)
    least = _least(quantised, method, able)
    if machine.capability is not None and machine.capability < least:
        reason = Reason(
            LoadReason.TOO_OLD_A_CARD, engine=able.label, quantisation=quantised.label, least=least / 10,
            device=machine.name, capability=machine.capability / 10,
        )  # fmt: skip
        return LoadVerdict(False, reason, here=True)
    return LoadVerdict(True, Reason(LoadReason.DETECTED, engine=able.label, needs=needs(quantised, able)))


def needs(quantised: Quantised, able: Abilities) -> Reason:
    """Return the reason that names the NVIDIA cards with kernels for the weights."""
    least = _least(quantised, ALIASES.get(quantised.method, quantised.method), able)
    return Reason(LoadReason.NEEDS_CARD, least=least / 10 if least > 1 else None)


def _least(quantised: Quantised, method: str, able: Abilities) -> int:
    """Return the least compute capability (89 for 8.9), by method and, where it counts, by scheme."""
    scheme = quantised.scheme or ""
    method = MODELOPT.get(scheme, method) if method == "modelopt" else method
    by_scheme = able.schemes.get(scheme, able.schemes.get("fp8", 0) if scheme.startswith("fp8-") else 0)
    return max(able.methods.get(method, 0), by_scheme if method == "compressed-tensors" else 0)


def _loads_mlx(quantised: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict:
    if quantised.method == MLX:
        return LoadVerdict(True, _of(LoadReason.READS, able, quantised.label))
    able = _library(snapshot, able)
    named, method = quantised.label, quantised.method
    is_mlx_lm, type_name = (able.library or able.engine) == backends.MLX.name, str(model_type(snapshot))
    if not able.methods:
        return LoadVerdict(None, _of(LoadReason.NOT_KNOWN, able, named))
    if method == "fp8" and is_mlx_lm and able.remapped.get(type_name, type_name) in able.fp8_types:
        return LoadVerdict(True, _of(LoadReason.READS, able, named))
    if method not in able.methods:
        return LoadVerdict(False, _unread(able, named))
    if method == "compressed-tensors" and able.formats and quantised.form not in able.formats:
        return LoadVerdict(False, _unread(able, f"{method} in the format {quantised.form}"))
    if method == "modelopt" and is_mlx_lm and quantised.scheme not in NVFP4:
        return LoadVerdict(False, _unread(able, named, ("ModelOpt's NVFP4",)))
    if method == "fp8" and is_mlx_lm:
        return LoadVerdict(None, _of(LoadReason.NOT_KNOWN, able, f"{named} of {type_name}"))
    bits = able.bits.get(method, ())
    if bits and quantised.bits is not None and quantised.bits not in bits:
        return LoadVerdict(False, _unread(able, named, tuple(f"{n} bits" for n in bits)))
    if (refused := _refused_tensor(quantised, snapshot, able)) is not None:
        return refused
    return LoadVerdict(True, _of(LoadReason.READS, able, named))


def _library(snapshot: Snapshot, able: Abilities) -> Abilities:
    """Return the abilities of the library that loads the model."""
    if able.sighted is None or not sees(snapshot):
        return able
    return replace(able, **{f.name: getattr(able.sighted, f.name) for f in fields(able.sighted)})


def _refused_tensor(quantised: Quantised, snapshot: Snapshot, able: Abilities) -> LoadVerdict | None:
    """Return the verdict on tensors that the engine refuses; only GPTQ's tools write those of an order."""
    ends, known = able.refused_tensors.get(quantised.method, ()), tensors(snapshot)
    fields = {"engine": able.label, "quantisation": quantised.label, "names": ends}
    if ends and known is not None and any(name.endswith(ends) for name in known.names):
        return LoadVerdict(False, Reason(LoadReason.TENSORS, **fields))
    unsure = ends and quantised.method == "gptq" and (known is None or not known.whole)
    return LoadVerdict(None, Reason(LoadReason.TENSORS_UNREAD, **fields)) if unsure else None


MADE_FOR_MLX = MLX
OWNER = "mlx-community"  # publishes conversions to MLX alone


def made_for_mlx(snapshot: Snapshot) -> tuple[str, str] | None:
    """Return the source and its words, where the repository is one for MLX; else ``None``.

    Weights of MLX without quantisation have the format of all others, so only these words name their engine.
    """
    card = snapshot.info.get("card")
    named = card.get("library_name") if isinstance(card, dict) else None
    if MADE_FOR_MLX in (snapshot.info.get("library_name"), named):
        return Source.HUB, f"library_name: {MADE_FOR_MLX}"
    if MADE_FOR_MLX in listed(snapshot.info.get("tags")):
        return Source.HUB, f"tags: {MADE_FOR_MLX}"
    if (snapshot.model_id or "").partition("/")[0].lower() == OWNER:
        return Source.NAME, str(snapshot.model_id)
    return None


Known = Callable[[str], Abilities]


def backend_evidence(
    snapshot: Snapshot, platform: str, machine: Machine | None = None, able: Known = lambda _: UNKNOWN
) -> list[Evidence]:
    """Return the evidence for the backend: MLX weights decide, then the engines that can load the model.

    ``platform`` is a value of ``sys.platform``. ``able`` returns the abilities of a backend's target version.
    """
    if machine is not None and machine.is_named_card:
        reason = Reason(BackendReason.VLLM_SERVES)
        return [Evidence(Rule.MACHINE, "backend", backends.DEFAULT, machine.name, reason)]
    apple = _apple(snapshot, able)
    native = apple if platform == "darwin" else backends.DEFAULT
    facts = []
    quantised = read(snapshot)
    if quantised is not None and quantised.method == MLX:
        reason = Reason(BackendReason.MLX_WEIGHTS, quote=quantised.quote)
        facts.append(Evidence(Rule.FILES, "backend", apple, quantised.source, reason, quantised.quote))
    elif (origin := made_for_mlx(snapshot)) and serves(snapshot, able(apple)).can is not False:
        reason = Reason(BackendReason.MLX_ORIGIN, quote=origin[1])
        facts.append(Evidence(Rule.FILES, "backend", apple, origin[0], reason, origin[1]))
    elif machine is not None and (quantised is None or quantised.named):  # an unnamed method decides nothing
        other = apple if native == backends.DEFAULT else backends.DEFAULT
        facts += _instead(snapshot, machine, able, native, other)
    kind = BackendReason.MLX_IS_NATIVE if native == apple else BackendReason.VLLM_SERVES
    where = "this machine" if machine is None else machine.name
    return [*facts, Evidence(Rule.MACHINE, "backend", native, where, Reason(kind))]


def takers(snapshot: Snapshot, machine: Machine, able: Known) -> dict[str, LoadVerdict]:
    """Return the engines that could load the model with their verdicts; engines known to fail are absent."""
    apple = _apple(snapshot, able)
    verdicts = {name: fits(snapshot, able(name), machine) for name in (backends.DEFAULT, apple)}
    return {
        name: verdict
        for name, verdict in verdicts.items()
        if verdict.can or (name == backends.DEFAULT and verdict.can is None)
    }


def _apple(snapshot: Snapshot, able: Known) -> str:
    """Return ``mlx-vlm`` for a model with other inputs than text, unless only mlx-lm has its type."""
    texts, inputs = backends.MLX.name, backends.MLX_VLM.name
    if not sees(snapshot):
        return texts
    texts_only = serves(snapshot, able(inputs)).can is False and serves(snapshot, able(texts)).can
    return texts if texts_only else inputs


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
