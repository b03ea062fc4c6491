"""The check of a whole document against its engine's version: arguments, variables, values together.

``schema.faults`` calls it for every document, so that an edit, an import and a file by hand meet one check.

Settings that a model's own config rules out, as its engine does at its start.

The facts of a model beside its document: an import records them, and each check of the document uses them.

An edit has no snapshot. The facts in the receipt stand for it, so that an edit, a review and a file by hand
meet the check of the import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from importer import backends
from importer.document import argument_check, document_keys, engine_arguments
from importer.document.argument_check import known
from importer.document.document import Document, document_of
from importer.document.engine_arguments import load, names, version_of, versions, whole_number
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
    from importer.document.receipt import Receipt


WORD = re.compile(r"[A-Za-z0-9][\w.+:-]*")
NAMES = ("dtype", "load_format", "quantization")  # keys with the name of something of the engine
AT_WILL = -1  # vLLM's other spelling of auto
CONTEXT: Final = "max_model_len"
AUTO = "auto"  # vLLM measures its memory, and takes the longest context that fits
LIMITS: Final = "limit_mm_per_prompt"
MODALITIES = ("image", "video", "audio")
VARIABLES: Final = "chat_template_kwargs"
# Parameters of ``apply_chat_template`` and of the functions around it, in transformers, vLLM, SGLang, mlx-lm,
# mlx-vlm and vllm-mlx: an engine passes the variables to them. Functions of a template are none, either.
RESERVED = names(
    "add_default_bos_token add_generation_prompt add_special_tokens chat_history chat_template "
    "chat_template_content_format chat_template_kwargs config content content_format "
    "continue_final_message conversation conversations documents load_audio_from_video max_length "
    "may_reorder_tool_results messages model_config num_audios num_images num_videos padding params "
    "processor processor_kwargs prompt raise_exception reasoning_config reasoning_parser "
    "render_segments return_assistant_tokens_mask return_dict return_messages return_tensors "
    "sanitize_control_tokens self strftime_now supports_inline_system system template_kwargs tokenize "
    "tokenizer tokenizer_kwargs tool_call_parser tools truncation trust_request_chat_template "
    "trust_request_mm_kwargs value"
)
# Variables that an engine's parser or encoder reads, also where no template names them.
SWITCHES = ("enable_thinking", "thinking", "reasoning_effort")
UNKNOWN = (argument_check.ArgumentReason.UNKNOWN, argument_check.ArgumentReason.UNKNOWN_NEAR)


class ValueReason(ReasonKind):
    """Why an engine is not started with a value of the document's own keys."""

    NO_MODEL = "no-model", "it begins like an option, or holds characters that cannot be seen"
    NOT_A_NAME = "not-a-name", "{value!r} is not a name"
    FLAG_FOR_VLLM = (
        "flag-for-vllm",
        "{flag} is a flag of vLLM's, and {engine} takes its arguments from engine_args",
    )
    NO_AUTO = (
        "no-auto",
        "only vLLM measures its memory for the longest context; {engine} needs a number of tokens",
    )
    NO_LENGTH = "no-length", "{value!r} is no number of tokens; on vLLM auto is the longest context that fits"
    OTHER_ENGINE = "other-engine", "the document is for {engine}, by its backend"
    RESERVED = (
        "reserved",
        "{name} is an argument of the function that renders chat templates, and no variable of a template",
    )
    VARIABLE_LOST = "variable-lost", "mlx-vlm has an option for no variable of the chat template but {only}"


Fault = tuple[tuple[str | int, ...], Reason]


def faults(document: Document) -> Iterator[Fault]:
    """Yield what the engine of a document has against it, each with its path in the document.

    Nothing for a document without an engine that is known here, and for parts of another type: those are the
    schema's.
    """
    engine, version = document.get("backend"), version_of(document)
    if not isinstance(engine, str) or load(engine, version) is None:
        return
    if mapping(mapping(document.get("importer")).get("engine")).get("name", engine) != engine:
        yield ("importer", "engine", "name"), Reason(ValueReason.OTHER_ENGINE, engine=engine)
    written = document.get(argument_check.KEY)
    for path, reason in argument_check.faults(
        engine, version, written if isinstance(written, Mapping) else {}
    ):
        yield (argument_check.KEY, *path), reason
    yield from _values(document)
    flags = dict(_flags(document)) if backends.of(engine).takes_flags else {}
    for place, (name, value) in flags.items():
        for _, reason in argument_check.faults(engine, version, {name: value}):
            yield (document_keys.KEY, place), reason
    variables = document.get(argument_check.ENVIRONMENT_KEY)
    if isinstance(variables, Mapping):
        for path, reason in argument_check.environment_faults(engine, version, variables):
            yield (argument_check.ENVIRONMENT_KEY, *path), reason
    yield from engine_arguments.conflicts({**document, argument_check.KEY: arguments_of(document)})


def arguments_of(document: Document) -> dict[str, object]:
    """Return the engine's arguments of a document, with those that vLLM's flags among ``options`` set."""
    written = document.get(argument_check.KEY)
    flags = (pair for _, pair in _flags(document)) if backends.of(document.get("backend")).takes_flags else ()
    return {**combined(flags), **(written if isinstance(written, Mapping) else {})}


def _values(document: Document) -> Iterator[Fault]:
    """Yield values of the document's own keys that the engine's command line does not carry."""
    sampling, variables = document.get("parameters"), document.get(VARIABLES)
    model = sampling.get("model") if isinstance(sampling, Mapping) else None
    if isinstance(model, str) and model.startswith("-"):
        yield ("parameters", "model"), Reason(ValueReason.NO_MODEL)
    yield from _length(document)
    yield from _limits(document)
    for key in NAMES:
        value = document.get(key)
        if isinstance(value, str) and not WORD.fullmatch(value):
            yield (key,), Reason(ValueReason.NOT_A_NAME, value=value)
        elif isinstance(value, str):
            known = argument_check.of_value(str(document.get("backend")), version_of(document), key, value)
            yield from (((key,), reason) for _, reason in known)
    yield from _options(document)
    by_flag = backends.of(document.get("backend")).by_flag
    for place, option in enumerate(document_keys.of(document) if by_flag else ()):
        named = option.key in document_keys.OPTIONS and (option.value or "").lower() not in document_keys.NONE
        if named and not WORD.fullmatch(option.value or ""):
            yield (document_keys.KEY, place), Reason(ValueReason.NOT_A_NAME, value=option.value)
    chosen = {*variables} if isinstance(variables, Mapping) else set()
    for key in sorted(chosen & RESERVED):
        yield (VARIABLES, key), Reason(ValueReason.RESERVED, name=key)
    if (only := backends.of(document.get("backend")).variable) is not None:
        for key in sorted(chosen - {only} - RESERVED):
            yield (VARIABLES, key), Reason(ValueReason.VARIABLE_LOST, only=only)


def _limits(document: Document) -> Iterator[Fault]:
    """Yield a slip of a kind of input, and sizes for an engine that takes numbers alone."""
    limits = document.get(LIMITS)
    for kind, value in limits.items() if isinstance(limits, Mapping) else ():
        near = argument_check.near(str(kind).lower(), MODALITIES)
        if near and kind not in MODALITIES:
            yield (LIMITS, kind), Reason(argument_check.ArgumentReason.UNKNOWN_NEAR, of=LIMITS, near=near)
        if isinstance(value, Mapping) and not backends.of(document.get("backend")).limits_inputs:
            wrong = Reason(argument_check.ArgumentReason.WRONG_TYPE, value="a map", kind="a whole number")
            yield (LIMITS, kind), wrong


def _length(document: Document) -> Iterator[Fault]:
    """Yield a context that is neither a number of tokens nor, on vLLM, left to the engine's memory."""
    length = document.get(CONTEXT)
    if length == AUTO and not backends.of(document.get("backend")).auto_context:
        yield (CONTEXT,), Reason(ValueReason.NO_AUTO, engine=document.get("backend"))
    elif (isinstance(length, str) and length != AUTO) or length == AT_WILL:
        yield (CONTEXT,), Reason(ValueReason.NO_LENGTH, value=length)


def _options(document: Document) -> Iterator[Fault]:
    """Yield entries that no engine here reads as they are meant: a slip of a key, a flag for another engine.

    Other entries are LocalAI's.
    """
    engine, entries = document.get("backend"), document.get(document_keys.KEY)
    for place, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if not isinstance(entry, str):
            continue  # the schema's
        option = document_keys.parse(entry)
        near = argument_check.near(option.key.replace("-", "_").lower(), document_keys.OPTIONS)
        if option.key.startswith("--") and not backends.of(engine).takes_flags:
            reason = Reason(ValueReason.FLAG_FOR_VLLM, flag=option.key, engine=engine)
            yield (document_keys.KEY, place), reason
        elif near and option.key not in document_keys.OPTIONS and not option.key.startswith("--"):
            reason = Reason(argument_check.ArgumentReason.UNKNOWN_NEAR, of=document_keys.KEY, near=near)
            yield (document_keys.KEY, place), reason


def of_settings(values: Mapping[str, object], backend: str | None = None) -> Fault | None:
    """Return what is wrong with settings by dotted paths; ``None`` where a version of the engine takes them.

    Without a backend one engine that takes them is enough; where none knows a name, the near names are those
    of all of them.
    """
    if not values:
        return None
    document: dict[str, object] = {}
    for key, value in values.items():
        place, *steps = (document, *key.split("."))
        for step in steps[:-1]:
            inner = place.get(step)
            place[step] = place = dict(inner) if isinstance(inner, Mapping) else {}
        place[steps[-1]] = value
    first: Fault | None = None
    unknown: list[Fault] = []
    for engine in (backend,) if backend in backends.NAMES else backends.NAMES:
        for version in reversed(versions(str(engine))):
            named = {"backend": engine, "importer": {"engine": {"version": version}}}
            found = next(faults(document_of({**document, **named})), None)
            if found is None:
                return None
            if first is None or first[1].kind in UNKNOWN:
                unknown = [*unknown, found] if found[1].kind in UNKNOWN else unknown
                first = found
    if first is None or first[1].kind not in UNKNOWN:
        return first
    return _nearest(unknown)


def _nearest(found: list[Fault]) -> Fault:
    """Return one fault for a name that no engine has, with the nearest names of all engines."""
    path, reason = found[-1]
    names = [name for p, r in found if p == path for name in _texts(r.fields.get("near"))]
    near = argument_check.near(str(path[-1]), names)
    if not near:
        return path, reason
    return path, Reason(argument_check.ArgumentReason.UNKNOWN_NEAR, of=reason.fields["of"], near=near)


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def _flags(document: Document) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Yield the flags among ``options``: the place of each, its name and its value."""
    for place, option in enumerate(document_keys.of(document)):
        if option.key.startswith("--"):
            yield place, flag(option)


def flag(option: document_keys.Option) -> tuple[str, Any]:
    """Return the argument that an option with a leading ``--`` sets, and its value.

    ``--speculative-config.method:mtp`` sets a key inside of one, as on vLLM's command line.
    """
    name, *steps = option.key.removeprefix("--").replace("-", "_").split(".")
    if steps:
        value = _value(option)
        for step in reversed(steps):
            value = {step: value}
        return name, value
    if name.startswith("no_") and option.value is None:
        return name.removeprefix("no_"), False
    opposite = name.replace("disable_", "enable_", 1)
    registry = load(backends.DEFAULT)
    if registry is not None and registry.get(name) is None and registry.get(opposite) is not None:
        return opposite, option.value is not None and option.typed is False
    return name, _value(option)


def combined(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return arguments by name; of several with keys inside of one, all keys, and else the last value."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        earlier = found.get(name)
        merges = isinstance(earlier, Mapping) and isinstance(value, Mapping)
        found[name] = combined([*dict(earlier or {}).items(), *value.items()]) if merges else value
    return found


def _value(option: document_keys.Option) -> Any:
    if option.value is not None and option.value.startswith(("{", "[")):
        try:
            return json.loads(option.value)
        except (ValueError, RecursionError):
            return option.value
    return option.typed


TENSOR, DTYPE = "tensor_parallel_size", "dtype"
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
    NO_VARIABLE = "no-variable", "the chat template names no variable {name}"
    NO_VARIABLE_NEAR = "no-variable-near", "the chat template names no variable {name} (did you mean {near}?)"
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
    ``variables``  that the chat template names; ``None`` also where the engine renders without it.
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
    variables: tuple[str, ...] | None = None


def read_model_facts(
    snapshot: Snapshot,
    able: Abilities,
    settings: Mapping[str, object] | None = None,
    variables: tuple[str, ...] | None = None,
) -> ModelFacts:
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
        variables=variables,
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


def model_conflicts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield the settings, by dotted paths, that the engine of the document refuses for this model."""
    for rule in (_variables, *RULES.get(str(document.get("backend")), ())):
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


def _variables(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield variables that the chat template does not name."""
    dotted = (key.partition(".")[2] for key in settings if key.startswith(f"{VARIABLES}."))
    if facts.variables is None:
        return
    for name in (*mapping(settings.get(VARIABLES)), *dotted):
        if name not in (*facts.variables, *SWITCHES, *RESERVED):
            near = argument_check.near(name, facts.variables)
            kind = ModelConflict.NO_VARIABLE_NEAR if near else ModelConflict.NO_VARIABLE
            yield (VARIABLES, name), Reason(kind, name=name, **({"near": near} if near else {}))


def _experts(_document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    for name in OF_EXPERTS:
        value = settings.get(f"engine_args.{name}")
        if facts.experts is False and (value is True or (whole_number(value) or 0) > 1):
            yield ("engine_args", name), Reason(ModelConflict.NO_EXPERTS)


def _shares(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    cards = whole_number(settings.get(TENSOR))
    if cards and facts.heads and facts.heads % cards:
        yield (TENSOR,), Reason(ModelConflict.HEADS, value=facts.heads)
    for name in STAGES:
        stages = whole_number(settings.get(f"engine_args.{name}"))
        if stages and facts.layers and stages > facts.layers:
            yield ("engine_args", name), Reason(ModelConflict.STAGES, value=facts.layers)
    yield from _parts(document, settings, facts)


def _parts(document: Settings, settings: Settings, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield a number of cards that cannot each keep a part of a sequence: ``verify_with_parallel_config``."""
    parts = whole_number(settings.get(PARTED))
    cards = whole_number(settings.get(TENSOR, document.get(TENSOR))) or 1
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
    length, variables = whole_number(settings.get(CONTEXT)), document.get("env")
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


RULES: Mapping[str, tuple[Callable[[Settings, Settings, ModelFacts], Iterator[Conflict]], ...]] = {
    "vllm": (_experts, _shares, _drafting, _short, _model_length, _class, _method),
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


def facts_json(facts: ModelFacts) -> dict[str, object]:
    """Return the facts as they stand in a receipt."""
    return asdict(facts)


def recorded_facts(receipt: Receipt | None) -> RecordedFacts | None:
    """Return the facts of a receipt, if there is one."""
    if receipt is None:
        return None
    known = {f.name: receipt.model[f.name] for f in fields(ModelFacts) if f.name in receipt.model}
    listed = {name: tuple(value) for name, value in known.items() if isinstance(value, list | tuple)}
    return RecordedFacts(ModelFacts(**{**known, **listed}), receipt.revision, receipt.engine)


def model_faults(document: Document, model: RecordedFacts | None) -> Iterator[Conflict]:
    """Yield the values of a document that its engine refuses for the model; nothing where no facts are
    recorded.
    """
    if model is not None:
        whole = {**document, "engine_args": arguments_of(document)}
        yield from model_conflicts(whole, whole, model.of(whole))
