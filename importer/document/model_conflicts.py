"""Settings that a model's own config rules out: its engine refuses them at its start.

``engines/NAME.toml`` names the rules of each engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from importer.document import argument_check, engine_data
from importer.document.argument_check import known
from importer.document.check import CONTEXT, VARIABLES
from importer.document.document import Document
from importer.document.engine_arguments import load, version_of
from importer.document.model_facts import DSPARK, ModelFacts, RecordedFacts
from importer.hub.snapshot import mapping, whole
from importer.memory.choose import OVERFLOWS
from importer.memory.engine_keys import PARTED
from importer.memory.parallelism import copies_divided
from importer.reasons import Reason, ReasonKind
from importer.signals.overrides import KEY as OVERRIDES

TENSOR, DTYPE = "tensor_parallel_size", "dtype"
ANY_LENGTH = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
STAGES = ("pipeline_parallel_size", "pp_size")
OF_EXPERTS = ("enable_expert_parallel", "enable_eplb", "ep_size", "moe_dp_size")  # of vLLM and SGLang
SHORT = ("float16", "half")
METHOD = "quantization"
TERRATORCH = "terratorch"  # vLLM asserts the architecture of that name
# Variables that an engine's parser or encoder reads, also where no template names them.
SWITCHES = ("enable_thinking", "thinking", "reasoning_effort")


class ModelConflict(ReasonKind):
    """Why a value does not go with the model."""

    NO_EXPERTS = "the model has no experts"
    HEADS = "it does not divide the model's {value} attention heads"
    STAGES = "it is more than the model's {value} layers"
    PARTS = (
        "vLLM divides a sequence between copies of a head of keys: {keys} heads on {cards} cards allow "
        "{choices:or}"
    )
    NOT_DRAFTING = "the checkpoint has no layers that {method} drafts with, and no model is named for it"
    FLOAT16 = "vLLM does not compute {model_type} in float16; use bfloat16 or float32"
    TOO_LONG = "the model's context is {value} tokens; a longer one needs {overrides}"
    NO_VARIABLE = "the chat template names no variable {name}{near:?}"
    OTHER_CLASS = "it is for models of the architecture {name}"
    NOT_QUANTISED = (
        "the weights have no quantisation {method}; for plain weights there are {known}, or leave it out"
    )


Conflict = tuple[tuple[str, ...], Reason]
Settings = Mapping[str, object]


def model_faults(document: Document, model: RecordedFacts | None) -> Iterator[Conflict]:
    """Yield the values of a document that its engine refuses for the model; nothing where no facts are
    recorded.
    """
    if model is not None:
        yield from model_conflicts(document, document, model.of(document))


def model_conflicts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield the settings, by dotted paths, that the engine of the document refuses for this model."""
    named = engine_data.load(str(document.get("backend"))).rules
    for rule in (_variables, *(RULES[name] for name in named)):
        yield from rule(document, dict(_settings(document, settings)), facts)


def _settings(document: Settings, settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the settings with the arguments of a map apart, each by the engine's own name."""
    arguments = settings.get("engine_args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    apart = {**settings, **{f"engine_args.{name}": value for name, value in arguments.items()}}
    for key, value in apart.items():
        head, _, name = key.partition(".")
        argument = known(str(document.get("backend")), None, name) if head == "engine_args" else None
        yield key if argument is None else f"{head}.{argument.name}", value


def _variables(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield variables that the chat template does not name."""
    dotted = (key.partition(".")[2] for key in settings if key.startswith(f"{VARIABLES}."))
    if facts.variables is None:
        return
    for name in (*mapping(settings.get(VARIABLES)), *dotted):
        if name not in (*facts.variables, *SWITCHES, *engine_data.every().renderer):
            near = argument_check.near(name, facts.variables)
            yield (VARIABLES, name), Reason(ModelConflict.NO_VARIABLE, name=name, near=near)


def _experts(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    for name in OF_EXPERTS:
        value = settings.get(f"engine_args.{name}")
        if facts.experts is False and (value is True or (whole(value) or 0) > 1):
            yield ("engine_args", name), Reason(ModelConflict.NO_EXPERTS)


def _shares(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    cards = whole(settings.get(TENSOR))
    if cards and facts.heads and facts.heads % cards:
        yield (TENSOR,), Reason(ModelConflict.HEADS, value=facts.heads)
    for name in STAGES:
        stages = whole(settings.get(f"engine_args.{name}"))
        if stages and facts.layers and stages > facts.layers:
            yield ("engine_args", name), Reason(ModelConflict.STAGES, value=facts.layers)
    yield from _parts(document, settings, facts)


def _parts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a number of cards that cannot each keep a part of a sequence: ``verify_with_parallel_config``."""
    parts = whole(settings.get(PARTED))
    cards = whole(settings.get(TENSOR, document.get(TENSOR))) or 1
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


def _model_length(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a context above the model's, unless its config is overridden or vLLM is told to take any."""
    length, variables = whole(settings.get(CONTEXT)), document.get("env")
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


RULES: Mapping[str, Callable[[Settings, Settings, ModelFacts], Iterator[Conflict]]] = {
    "experts": _experts,
    "shares": _shares,
    "drafting": _drafting,
    "float16": _short,
    "context": _model_length,
    "class": _class,
    "quantisation": _method,
}
