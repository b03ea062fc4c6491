"""Settings that a model's own config rules out, as its engine does at its start.

The facts of a model beside its document: an import records them, and each check of the document uses them.

An edit has no snapshot. The facts in the receipt stand for it, so that an edit, a review and a file by hand
meet the check of the import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from importer.config_file import argument_check, check
from importer.config_file.argument_check import known
from importer.config_file.document import Document
from importer.config_file.engine_arguments import load, version_of
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, mapping
from importer.memory import experts
from importer.memory.choose import OVERFLOWS
from importer.memory.config_keys import HEADS, LAYERS, Keys
from importer.memory.estimate_types import Unknown
from importer.memory.layers import Attention, Latent
from importer.memory.parallelism import PARTED, copies_divided
from importer.memory.shape import describe
from importer.reasons import Reason, ReasonKind
from importer.signals import context, quantisation, speculation
from importer.signals.architecture import architectures, config_of, model_types, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.overrides import KEY as OVERRIDES
from importer.signals.overrides import given, overridden

if TYPE_CHECKING:
    from importer.config_file.receipt import Receipt


TENSOR, CONTEXT, DTYPE = "tensor_parallel_size", "max_model_len", "dtype"
ANY_LENGTH = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
STAGES = ("pipeline_parallel_size", "pp_size")
OF_EXPERTS = ("enable_expert_parallel", "enable_eplb", "ep_size", "moe_dp_size")  # of vLLM and SGLang
SHORT = ("float16", "half")
METHOD = "quantization"
DSPARK = "dspark"  # its settings in a config begin so (vLLM's ``config/speculative.py``)
QUANT_FILE = re.compile(r"quant.*config")  # quantize_config, quant_config, hf_quant_config
TERRATORCH = "terratorch"  # vLLM asserts the architecture of that name


class ModelConflict(ReasonKind):
    """Why a value does not go with the model."""

    NO_EXPERTS = "no-experts", "the model has no experts"
    HEADS = "heads", "it does not divide the model's {value} attention heads"
    STAGES = "stages", "it is more than the model's {value} layers"
    PARTS = (
        "parts",
        (
            "vLLM divides a sequence between copies of a head of keys: {keys} heads on {cards} cards allow "
            "{choices:or}"
        ),
    )
    NOT_DRAFTING = (
        "not-drafting",
        "the checkpoint has no layers that {method} drafts with, and no model is named for it",
    )
    FLOAT16 = "float16", "vLLM does not compute {model_type} in float16; use bfloat16 or float32"
    TOO_LONG = "too-long", "the model's context is {value} tokens; a longer one needs {overrides}"
    OTHER_CLASS = "other-class", "it is for models of the architecture {name}"
    NOT_QUANTISED = (
        "not-quantised",
        "the weights have no quantisation {method}; for plain weights there are {known}, or leave it out",
    )


Conflict = tuple[tuple[str, ...], Reason]


@frozen
class ModelFacts:
    """What the checks read of a model; ``None`` is unknown.

    ``heads``    of attention; ``layers`` of the language model; ``experts`` whether it has some.
    ``keys``     heads of keys; ``None`` also where a latent cache (MLA) stands in their place.
    ``drafts``   whether it has layers for multi-token prediction that the engine may draft with.
    ``dspark``   whether the checkpoint has the weights of DSpark, whose drafts have several tokens.
    ``quantised``  whether a file of the repository describes a quantisation.
    ``longest``  context in tokens that the engine takes without a change of the rotary embedding.
    """

    heads: int | None = None
    keys: int | None = None
    layers: int | None = None
    experts: bool | None = None
    drafts: bool | None = None
    dspark: bool | None = None
    longest: int | None = None
    quantised: bool | None = None
    model_types: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()


def read(snapshot: Snapshot, able: Abilities, settings: Mapping[str, object] | None = None) -> ModelFacts:
    """Return the facts of a repository, as the version of the engine reads them.

    ``settings`` may override its config, and with that its context.
    """
    text = text_config(config_of(snapshot))
    keys = Keys.of(text)
    return ModelFacts(
        heads=keys.count(*HEADS),
        keys=_keys(snapshot),
        layers=keys.count(*LAYERS),
        experts=experts.count(keys) > 0 if text else None,
        drafts=speculation.may_draft(snapshot, able) if text else None,
        dspark=any(key.startswith(f"{DSPARK}_") for key in (*config_of(snapshot), *text)) if text else None,
        longest=context.longest(overridden(snapshot, given(settings or {})), able),
        quantised=_quantised(snapshot) if text else None,
        model_types=tuple(model_types(snapshot)),
        architectures=tuple(architectures(snapshot)),
    )


def _keys(snapshot: Snapshot) -> int | None:
    """Return the heads of keys of all layers, where they have one number and no layer is latent."""
    shape = describe(config_of(snapshot))
    layers = () if isinstance(shape, Unknown) else shape.layers
    caches = {cached for layer in layers for cached in layer}
    found = {cached.kv_heads for cached in caches if isinstance(cached, Attention)}
    return found.pop() if len(found) == 1 and not any(isinstance(c, Latent) for c in caches) else None


def _quantised(snapshot: Snapshot) -> bool:
    """Return whether vLLM finds a quantisation: a block of the config, or a file beside it."""
    files = (PurePosixPath(file.path) for file in snapshot.files)
    beside = any(path.suffix == ".json" and QUANT_FILE.search(path.stem) for path in files)
    return beside or quantisation.read(snapshot) is not None or quantisation.has_block(snapshot)


def conflicts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield the settings, by dotted paths, that the engine of the document refuses for this model."""
    for rule in RULES.get(str(document.get("backend")), ()):
        yield from rule(document, dict(_settings(document, settings)), facts)


Settings = Mapping[str, object]


def _settings(document: Settings, settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the settings with the arguments of a map apart, each by the engine's own name."""
    arguments = settings.get("engine_args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    apart = {**settings, **{f"engine_args.{name}": value for name, value in arguments.items()}}
    for key, value in apart.items():
        head, _, name = key.partition(".")
        argument = known(str(document.get("backend")), None, name) if head == "engine_args" else None
        yield key if argument is None else f"{head}.{argument.name}", value


def _experts(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    for name in OF_EXPERTS:
        value = settings.get(f"engine_args.{name}")
        if facts.experts is False and (value is True or (_whole(value) or 0) > 1):
            yield ("engine_args", name), Reason(ModelConflict.NO_EXPERTS)


def _shares(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    cards = _whole(settings.get(TENSOR))
    if cards and facts.heads and facts.heads % cards:
        yield (TENSOR,), Reason(ModelConflict.HEADS, value=facts.heads)
    for name in STAGES:
        stages = _whole(settings.get(f"engine_args.{name}"))
        if stages and facts.layers and stages > facts.layers:
            yield ("engine_args", name), Reason(ModelConflict.STAGES, value=facts.layers)
    yield from _parts(document, settings, facts)


def _parts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a number of cards that cannot each keep a part of a sequence: ``verify_with_parallel_config``."""
    parts = _whole(settings.get(PARTED))
    cards = _whole(settings.get(TENSOR, document.get(TENSOR))) or 1
    if facts.keys and facts.heads and parts and parts > 1:
        choices = copies_divided(facts.heads, facts.keys, cards)
        if parts not in choices:
            reason = Reason(ModelConflict.PARTS, keys=facts.keys, cards=cards, choices=choices)
            yield ("engine_args", PARTED.rpartition(".")[2]), reason


def _drafting(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a method for the model's own layers, where it has none."""
    key = "engine_args.speculative_config"
    value = settings.get(key)
    asked = value if isinstance(value, Mapping) else {}
    method, model = (asked.get(k, settings.get(f"{key}.{k}")) for k in ("method", "model"))
    own = facts.dspark if method == DSPARK else facts.drafts if str(method).endswith("mtp") else None
    if own is False and model is None:
        yield ("engine_args", "speculative_config"), Reason(ModelConflict.NOT_DRAFTING, method=method)


def _short(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    for model_type in facts.model_types:
        if settings.get(DTYPE) in SHORT and model_type in OVERFLOWS:
            yield (DTYPE,), Reason(ModelConflict.FLOAT16, model_type=model_type)


def _length(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a context above the model's, unless its config is overridden or vLLM is told to take any."""
    length, variables = _whole(settings.get(CONTEXT)), document.get("env")
    told = isinstance(variables, Mapping) and variables.get(ANY_LENGTH) not in (None, False, 0, "0")
    if length and facts.longest and length > facts.longest and not told:
        longer = f"{OVERRIDES}.max_position_embeddings"
        yield (CONTEXT,), Reason(ModelConflict.TOO_LONG, value=facts.longest, overrides=longer)


def _class(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    named = {name.lower() for name in facts.architectures}
    if settings.get("engine_args.model_impl") == TERRATORCH and named and TERRATORCH not in named:
        yield ("engine_args", "model_impl"), Reason(ModelConflict.OTHER_CLASS, name="Terratorch")


def _method(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a quantisation that is of a checkpoint, where the weights have none."""
    registry = load(str(document.get("backend")), version_of(document))
    for key in (METHOD, f"engine_args.{METHOD}"):
        method = settings.get(key)
        if registry is not None and facts.quantised is False and method in registry.of_checkpoint:
            every = registry.arguments[METHOD].choices()
            known = [str(one) for one in every if one not in registry.of_checkpoint]
            reason = Reason(ModelConflict.NOT_QUANTISED, method=method, known=known)
            yield tuple(key.split(".")), reason


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


RULES: Mapping[str, tuple[Callable[[Settings, Settings, ModelFacts], Iterator[Conflict]], ...]] = {
    "vllm": (_experts, _shares, _drafting, _short, _length, _class, _method),
    "sglang": (_experts, _shares),
}


@frozen
class RecordedFacts:
    """The facts of a receipt, with the commit and the engine (name, version) that they were read for."""

    facts: ModelFacts
    revision: str | None
    engine: Mapping[str, object]

    def of(self, document: Mapping[str, object]) -> ModelFacts:
        """Return the facts that hold for a document; what is unknown of it is ``None``.

        None hold for another commit. For another version of the engine, those of the version are unknown.
        The context is unknown where the document overrides the model's config.
        """
        block, arguments = mapping(document.get("importer")), mapping(document.get(argument_check.KEY))
        if block.get("revision", self.revision) != self.revision:
            return ModelFacts()
        if block.get("engine", self.engine) != self.engine:
            return replace(self.facts, drafts=None, longest=None)  # decided by the version
        changed = arguments.get(OVERRIDES.removeprefix(f"{argument_check.KEY}."))
        return replace(self.facts, longest=None) if changed else self.facts


def to_json(facts: ModelFacts) -> dict[str, object]:
    """Return the facts as they stand in a receipt."""
    return asdict(facts)


def recorded(receipt: Receipt | None) -> RecordedFacts | None:
    """Return the facts of a receipt, if there is one."""
    if receipt is None:
        return None
    known = {f.name: receipt.model[f.name] for f in fields(ModelFacts) if f.name in receipt.model}
    listed = {name: tuple(value) for name, value in known.items() if isinstance(value, list | tuple)}
    return RecordedFacts(ModelFacts(**{**known, **listed}), receipt.revision, receipt.engine)


def faults(document: Document, model: RecordedFacts | None) -> Iterator[Conflict]:
    """Yield the values of a document that its engine refuses for the model; nothing where no facts are
    recorded.
    """
    if model is not None:
        whole = {**document, "engine_args": check.arguments_of(document)}
        yield from conflicts(whole, whole, model.of(whole))
