"""Values of one document that its engine refuses together, by ``engines/NAME.toml`` and by its registry.

The registry has what the engine's own validators refused when it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.document import engine_data
from importer.document.engine_arguments import ArgumentRegistry, Required, load, version_of
from importer.document.engine_data import EngineData
from importer.hub.snapshot import mapping, whole
from importer.reasons import Fields, Reason, ReasonKind

LEAST = 1e-5  # vLLM takes a smaller min_p for none
DECODE = "decode_context_parallel_size"


def _requires(fields: Fields) -> str:
    """The argument that a value requires, with the first of its values, and others in its place."""
    values, others = fields["values"], fields["others"]
    value = "" if not values else ": true" if values[0] is True else f": {values[0]}"
    more = f" (or another of its {len(values)} values)" if len(values) > 1 else ""
    instead = f", or {', '.join(others)}" if others else ""
    return f"it requires {fields['key']}{value}{more}{instead}"


class ArgumentConflict(ReasonKind):
    """Why values do not go together."""

    SPECULATION_AND = "vLLM refuses every request with {key} while engine_args.speculative_config is set"
    DRAFTER_MISSING = (
        "the method {method} needs a second repository under model, and its commit under revision"
    )
    REQUIRES = (_requires,)
    DIVIDES = "it does not divide {key}, {value}"
    AT_LEAST = "it is less than {key}, {value}, without chunked prefill"
    AT_MOST = "it is more than {key}, {value}"
    LAYERS_OR_PARTS = "the engine shares layers or their parts: it goes without {key}"
    EXCLUSIVE = "the engine takes it or {key}, not both"


Conflict = tuple[tuple[str, ...], Reason]  # the path of a value, and why it does not go with another
Values = Mapping[str, object]


def conflicts(document: Values) -> Iterator[Conflict]:
    """Yield the conflicts of a document with its engine's rules."""
    engine, arguments = str(document.get("backend")), mapping(document.get("engine_args"))
    data = engine_data.load(engine)
    yield from _speculation(data, arguments, mapping(document.get("parameters")))
    yield from _required(data, document, arguments)
    registry = load(engine, version_of(document))
    if registry is not None:
        yield from _validators(registry, document, arguments)
    yield from _numbers(data, document, arguments)
    yield from _exclusive(data, document, arguments)


def _speculation(data: EngineData, arguments: Values, sampling: Values) -> Iterator[Conflict]:
    """``SamplingParams._validate_spec_decode`` refuses every request with one of these values."""
    config = arguments.get("speculative_config")
    if not isinstance(config, Mapping):
        return
    least = sampling.get("min_p")
    if isinstance(least, int | float) and least > LEAST:
        yield ("parameters", "min_p"), Reason(ArgumentConflict.SPECULATION_AND, key="min_p")
    if sampling.get("logit_bias"):
        yield ("parameters", "logit_bias"), Reason(ArgumentConflict.SPECULATION_AND, key="logit_bias")
    if config.get("method") in data.drafters and not config.get("model"):
        reason = Reason(ArgumentConflict.DRAFTER_MISSING, method=config["method"])
        yield ("engine_args", "speculative_config"), reason


def _required(data: EngineData, document: Values, arguments: Values) -> Iterator[Conflict]:
    values = {**document, **arguments}
    for key, (other, *enough) in data.requires.items():
        row = Required(key, _at(values, key), other, tuple(enough), ())
        if row.value not in (None, False) and not _met(row, values):
            fields = {"key": other, "values": enough, "others": []}
            yield ("engine_args", *key.split(".")), Reason(ArgumentConflict.REQUIRES, **fields)


def _at(values: Values, key: str) -> Any:
    head, _, inner = key.partition(".")
    return mapping(values.get(head)).get(inner) if inner else values.get(head)


def _validators(registry: ArgumentRegistry, document: Values, arguments: Values) -> Iterator[Conflict]:
    """Yield what the validators of the engine's version refused when its registry was made."""
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


def _exclusive(data: EngineData, document: Values, arguments: Values) -> Iterator[Conflict]:
    for key, other in data.exclusive:
        head, _, inner = other.partition(".")
        place = other if head in document and head not in arguments else f"engine_args.{other}"
        second = _at({**document, **arguments}, other)
        second = second if inner else second or None
        if (arguments.get(key) or None) is not None and second is not None:
            yield ("engine_args", key), Reason(ArgumentConflict.EXCLUSIVE, key=place)
    for key, other in data.alone:
        if min(whole(arguments.get(key)) or 0, whole(document.get(other)) or 0) > 1:
            yield ("engine_args", key), Reason(ArgumentConflict.LAYERS_OR_PARTS, key=other)


def _numbers(data: EngineData, document: Values, arguments: Values) -> Iterator[Conflict]:
    values = {**document, **arguments}
    for key, other, *default in data.at_most:
        value, most = whole(_at(values, key)), whole(_at({other: next(iter(default), None), **values}, other))
        if value is not None and most is not None and value > most:
            yield ("engine_args", *key.split(".")), Reason(ArgumentConflict.AT_MOST, key=other, value=most)
    context, batch = whole(document.get("max_model_len")), whole(arguments.get("max_num_batched_tokens"))
    in_chunks = arguments.get("enable_chunked_prefill") is not False
    if not in_chunks and context is not None and batch is not None and batch < context:
        reason = Reason(ArgumentConflict.AT_LEAST, key="max_model_len", value=context)
        yield ("engine_args", "max_num_batched_tokens"), reason
    yield from _context_cards(document, arguments)


def _context_cards(document: Values, arguments: Values) -> Iterator[Conflict]:
    tensor = whole(document.get("tensor_parallel_size")) or 1
    cards = whole(arguments.get(DECODE)) or 1
    if arguments.get("prefill_context_parallel_size", 1) == 1 and tensor % cards:
        reason = Reason(ArgumentConflict.DIVIDES, key="tensor_parallel_size", value=tensor)
        yield ("engine_args", DECODE), reason
