"""Values of one document that its engine refuses together, as the engine's own validators do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from importer.config_file.engine_arguments import ArgumentRegistry, Required, load, version_of
from importer.hub.snapshot import mapping
from importer.reasons import Fields, Reason, ReasonKind

LEAST = 1e-5  # vLLM takes a smaller min_p for none
DECODE = "decode_context_parallel_size"
DRAFTING = ("eagle", "eagle3", "dflash", "draft_model")  # methods with a second repository


def _requires(fields: Fields) -> str:
    """The argument that a value requires, with the first of its values, and others in its place."""
    values, others = fields["values"], fields["others"]
    value = "" if not values else ": true" if values[0] is True else f": {values[0]}"
    more = f" (or another of its {len(values)} values)" if len(values) > 1 else ""
    instead = f", or {', '.join(others)}" if others else ""
    return f"it requires {fields['key']}{value}{more}{instead}"


class ArgumentConflict(ReasonKind):
    """Why values do not go together."""

    SPECULATION_AND = (
        "speculation-and",
        "vLLM refuses every request with {key} while engine_args.speculative_config is set",
    )
    DRAFTER_MISSING = (
        "drafter-missing",
        "the method {method} needs a second repository under model, and its commit under revision",
    )
    REQUIRES = "requires", _requires
    DIVIDES = "divides", "it does not divide {key}, {value}"
    AT_LEAST = "at-least", "it is less than {key}, {value}, without chunked prefill"
    AT_MOST = "at-most", "it is more than {key}, {value}"
    LAYERS_OR_PARTS = (
        "layers-or-parts",
        "mlx-lm shares layers or their parts: it goes without tensor_parallel_size",
    )
    EXCLUSIVE = "exclusive", "the engine takes it or {key}, not both"


Conflict = tuple[tuple[str, ...], Reason]  # the path of a value, and why it does not go with another
Values = Mapping[str, object]


def conflicts(document: Values) -> Iterator[Conflict]:
    """Yield the conflicts of a document with its engine's rules."""
    arguments = document.get("engine_args")
    sampling = document.get("parameters")
    for rule in RULES.get(str(document.get("backend")), ()):
        yield from rule(document, mapping(arguments), mapping(sampling))


def _speculation(_document: Values, arguments: Values, sampling: Values) -> Iterator[Conflict]:
    """``SamplingParams._validate_spec_decode`` refuses every request with one of these values."""
    config = arguments.get("speculative_config")
    if not isinstance(config, Mapping):
        return
    least = sampling.get("min_p")
    if isinstance(least, int | float) and least > LEAST:
        yield ("parameters", "min_p"), Reason(ArgumentConflict.SPECULATION_AND, key="min_p")
    if sampling.get("logit_bias"):
        yield ("parameters", "logit_bias"), Reason(ArgumentConflict.SPECULATION_AND, key="logit_bias")
    if config.get("method") in DRAFTING and not config.get("model"):
        reason = Reason(ArgumentConflict.DRAFTER_MISSING, method=config["method"])
        yield ("engine_args", "speculative_config"), reason


# What a value requires beside it, by ``ParallelConfig``, the transfer configurations and the server's own
# check. The registry has the switches of the engine.
REQUIRED: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "numa_bind_nodes": ("numa_bind", (True,)),
    "numa_bind_cpus": ("numa_bind", (True,)),
    "enable_log_outputs": ("enable_log_requests", (True,)),
    "kv_transfer_config.kv_connector": ("kv_transfer_config.kv_role", ()),
    "ec_transfer_config.ec_connector": ("ec_transfer_config.ec_role", ()),
}
# A number and the one that it may not exceed, with its default; ``ParallelConfig`` and ``SchedulerConfig``.
AT_MOST = (
    ("data_parallel_size_local", "data_parallel_size", 1),
    ("max_num_seqs", "max_num_batched_tokens", None),
    ("max_num_active_seqs", "max_num_seqs", None),
    ("max_loras", "max_cpu_loras", None),
    ("speculative_config.prompt_lookup_min", "speculative_config.prompt_lookup_max", None),
    ("long_prefill_token_threshold", "max_model_len", None),
)


def _required(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    values = {**document, **arguments}
    for key, (other, enough) in REQUIRED.items():
        row = Required(key, _at(values, key), other, enough, ())
        if row.value not in (None, False) and not _met(row, values):
            fields = {"key": other, "values": [*enough], "others": []}
            yield ("engine_args", *key.split(".")), Reason(ArgumentConflict.REQUIRES, **fields)


def _at(values: Values, key: str) -> Any:
    head, _, inner = key.partition(".")
    return mapping(values.get(head)).get(inner) if inner else values.get(head)


def _validators(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    """Yield what the validators of the engine's version refused when its registry was made."""
    registry: ArgumentRegistry | None = load(str(document.get("backend")), version_of(document))
    if registry is None:
        return
    values = {**document, **{_name(registry, key): value for key, value in arguments.items()}}
    for row in registry.requires:
        if _same(values.get(row.name), row.value) and not _met(row, values):
            fields = {"key": row.other, "values": [*row.values], "others": [*row.others]}
            yield _place(row.name, arguments), Reason(ArgumentConflict.REQUIRES, **fields)
    for (one, first), (other, second) in registry.exclusive:
        if _same(values.get(one), first) and _same(values.get(other), second):
            named = other if second is True else f"{other}: {second}"
            yield _place(one, arguments), Reason(ArgumentConflict.EXCLUSIVE, key=f"engine_args.{named}")


def _name(registry: ArgumentRegistry, key: str) -> str:
    argument = registry.get(key)
    return key if argument is None else argument.name


def _place(name: str, arguments: Values) -> tuple[str, ...]:
    return ("engine_args", name) if name in arguments else (name,)


def _met(row: Required, values: Values) -> bool:
    value = _at(values, row.other)
    enough = any(_same(value, one) for one in row.values) if row.values else value is not None
    return enough or any(values.get(other) not in (None, False) for other in row.others)


def _same(value: Any, other: Any) -> bool:
    texts = isinstance(value, str) and isinstance(other, str)
    return value.casefold() == other.casefold() if texts else type(value) is type(other) and value == other


# Arguments of which vLLM takes one, and those with a second place; ``EngineArgs.create_engine_config``.
EXCLUSIVE = (
    ("data_parallel_hybrid_lb", "data_parallel_external_lb"),
    ("cudagraph_capture_sizes", "compilation_config.cudagraph_capture_sizes"),
    ("max_cudagraph_capture_size", "compilation_config.max_cudagraph_capture_size"),
    ("attention_backend", "attention_config.backend"),
    ("enable_flashinfer_autotune", "kernel_config.enable_flashinfer_autotune"),
    ("enable_per_request_metrics", "disable_log_stats"),
)


def _exclusive(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    for key, other in EXCLUSIVE:
        head, _, inner = other.partition(".")
        place = other if head in document and head not in arguments else f"engine_args.{other}"
        second = _at({**document, **arguments}, other)
        second = second if inner else second or None
        if (arguments.get(key) or None) is not None and second is not None:
            yield ("engine_args", key), Reason(ArgumentConflict.EXCLUSIVE, key=place)


def _numbers(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    values = {**document, **arguments}
    for key, other, default in AT_MOST:
        value, most = _whole(_at(values, key)), _whole(_at({other: default, **values}, other))
        if value is not None and most is not None and value > most:
            yield ("engine_args", *key.split(".")), Reason(ArgumentConflict.AT_MOST, key=other, value=most)
    context, batch = _whole(document.get("max_model_len")), _whole(arguments.get("max_num_batched_tokens"))
    in_chunks = arguments.get("enable_chunked_prefill") is not False
    if not in_chunks and context is not None and batch is not None and batch < context:
        reason = Reason(ArgumentConflict.AT_LEAST, key="max_model_len", value=context)
        yield ("engine_args", "max_num_batched_tokens"), reason
    yield from _context_cards(document, arguments)


def _context_cards(document: Values, arguments: Values) -> Iterator[Conflict]:
    tensor = _whole(document.get("tensor_parallel_size")) or 1
    cards = _whole(arguments.get(DECODE)) or 1
    if arguments.get("prefill_context_parallel_size", 1) == 1 and cards > 0 and tensor % cards:
        reason = Reason(ArgumentConflict.DIVIDES, key="tensor_parallel_size", value=tensor)
        yield ("engine_args", DECODE), reason


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _layers_or_parts(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    tensor, pipeline = document.get("tensor_parallel_size"), arguments.get("pipeline_parallel_size")
    if isinstance(tensor, int) and isinstance(pipeline, int) and min(tensor, pipeline) > 1:
        yield ("engine_args", "pipeline_parallel_size"), Reason(ArgumentConflict.LAYERS_OR_PARTS)


RULES: Mapping[str, tuple[Callable[[Values, Values, Values], Iterator[Conflict]], ...]] = {
    "vllm": (_speculation, _required, _validators, _numbers, _exclusive),
    "mlx": (_layers_or_parts,),
}
