"""The arguments and variables of each version of an engine's server: generated, read without the engine.

``python -m gen_defaults arguments`` writes them from the engine's parser, ``… settings`` from its sources.

Values of one document that its engine refuses together, as the engine's own validators do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.reasons import Fields, Reason, ReasonKind

SCHEMA = 1
FOLDER = Path(__file__).with_name("arguments_of")
SETTINGS = Path(__file__).with_name("settings_of")
Kind = str | Mapping[str, Any]  # a type as data: "int", {"list": "str"}, {"one_of": […]}, {"config": NAME}
LIMITS = ("ge", "gt", "le", "lt")


@frozen
class Argument:
    """One argument of a server, or one field of a configuration.

    ``flag``     the word that sets it; empty where only its absence does.
    ``off``      the word that sets a switch to false, where there is one.
    ``many``     whether its values follow the flag as words of their own.
    ``repeats``  whether the flag stands again before each value.
    ``commas``   whether its values are one word with commas.
    ``server``   whether it is of the server alone, beside the engine's own class of arguments.
    ``limits``   least and largest number, by ``ge``, ``gt``, ``le`` and ``lt``.
    ``default``  of the engine, where it is a number, a text or a switch; else ``None``.
    """

    name: str
    kind: Kind
    flag: str = ""
    off: str | None = None
    aliases: tuple[str, ...] = ()
    many: bool = False
    repeats: bool = False
    commas: bool = False
    server: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)
    default: Any = None

    def choices(self) -> tuple[Any, ...]:
        """Return the values that it is one of; none for a type without a list."""
        kinds = [self.kind, *(self.kind.get("any_of", ()) if isinstance(self.kind, Mapping) else ())]
        return tuple(one for kind in kinds if isinstance(kind, Mapping) for one in kind.get("one_of", ()))


@frozen
class Required:
    """A value that the engine refuses unless another argument is set.

    ``values``  of the other argument that are enough; empty: any.
    ``others``  arguments that may stand in its place.
    """

    name: str
    value: Any
    other: str
    values: tuple[Any, ...]
    others: tuple[str, ...]


@frozen
class ArgumentRegistry:
    """The arguments of one version of an engine, its configurations by name, its environment variables.

    ``requires``, ``exclusive``  what the engine's own validators refuse together: pairs of name and value.
    ``of_checkpoint``            quantisations that the engine does not make of plain weights.
    ``variables``                that the engine reads; the type is ``None`` for a text of any kind.
    ``maps``                     the keys of maps without declared types, each with its type.
    """

    engine: str
    version: str
    arguments: Mapping[str, Argument]
    configs: Mapping[str, Mapping[str, Argument]]
    requires: tuple[Required, ...] = ()
    exclusive: tuple[tuple[tuple[str, Any], tuple[str, Any]], ...] = ()
    of_checkpoint: frozenset[str] = frozenset()
    variables: Mapping[str, Kind | None] = field(default_factory=dict)
    maps: Mapping[str, Mapping[str, Argument]] = field(default_factory=dict)

    def get(self, name: str) -> Argument | None:
        """Return the argument with a name, or with an alias."""
        return self.arguments.get(name) or self.arguments.get(
            _aliases(self.engine, self.version).get(name, "")
        )


def names(text: str) -> frozenset[str]:
    """Return the words of a text, for the lists of the rules."""
    return frozenset(text.split())


def file_name(engine: str, version: str) -> str:
    """Return the name of the file of a version."""
    return f"{engine}-{version}.json"


@cache
def versions(engine: str) -> tuple[str, ...]:
    """Return the versions with known arguments, the oldest first."""
    names = (path.stem.removeprefix(f"{engine}-") for path in FOLDER.glob(f"{engine}-[0-9]*.json"))
    return tuple(sorted(names, key=order))


def load(engine: str, version: str | None = None) -> ArgumentRegistry | None:
    """Return the arguments of a version, else of the newest one before it, else of the oldest known.

    Without a version they are those of the newest. ``None`` for an engine without known arguments.
    """
    known = versions(engine)
    if not known:
        return None
    before = [v for v in known if version is None or order(v) <= order(version)]
    return _read(engine, (before or known[:1])[-1])


def version_of(document: Mapping[str, object]) -> str | None:
    """Return the version of the engine that a document names."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    version = engine.get("version") if isinstance(engine, Mapping) else None
    return version if isinstance(version, str) else None


def order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@cache
def _read(engine: str, version: str) -> ArgumentRegistry:
    data = json.loads((FOLDER / file_name(engine, version)).read_text(encoding="utf-8"))
    settings = json.loads((SETTINGS / file_name(engine, version)).read_text(encoding="utf-8"))
    return ArgumentRegistry(
        engine=engine,
        version=version,
        arguments={name: _argument(name, row) for name, row in data["arguments"].items()},
        configs={
            name: {key: _argument(key, row) for key, row in rows.items()}
            for name, rows in data["configs"].items()
        },
        requires=tuple(
            Required(name, value, other, tuple(values or ()), tuple(others))
            for name, value, other, values, others in data.get("requires", ())
        ),
        exclusive=tuple(((a, one), (b, two)) for a, one, b, two in data.get("exclusive", ())),
        of_checkpoint=frozenset(data.get("of_checkpoint", ())),
        variables={name: row["type"] for name, row in settings["variables"].items()},
        maps={
            name: {key: _argument(key, row) for key, row in rows.items()}
            for name, rows in settings["maps"].items()
        },
    )


@cache
def _aliases(engine: str, version: str) -> Mapping[str, str]:
    arguments = _read(engine, version).arguments
    return {alias: name for name, one in arguments.items() for alias in one.aliases if alias not in arguments}


def _argument(name: str, row: Mapping[str, Any]) -> Argument:
    flag = row["flag"] if "flag" in row else f"--{name.replace('_', '-')}"
    limits = {key: row[key] for key in LIMITS if key in row}
    # In the order of the fields: a registry has 500, and names would cost half of the time to read it.
    return Argument(
        name, row["type"], flag, row.get("off"), tuple(row.get("aliases", ())), "many" in row,
        "repeats" in row, "commas" in row, "server" in row, limits, row.get("default"),
    )  # fmt: skip


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
        value, most = whole_number(_at(values, key)), whole_number(_at({other: default, **values}, other))
        if value is not None and most is not None and value > most:
            yield ("engine_args", *key.split(".")), Reason(ArgumentConflict.AT_MOST, key=other, value=most)
    context, batch = (
        whole_number(document.get("max_model_len")),
        whole_number(arguments.get("max_num_batched_tokens")),
    )
    in_chunks = arguments.get("enable_chunked_prefill") is not False
    if not in_chunks and context is not None and batch is not None and batch < context:
        reason = Reason(ArgumentConflict.AT_LEAST, key="max_model_len", value=context)
        yield ("engine_args", "max_num_batched_tokens"), reason
    yield from _context_cards(document, arguments)


def _context_cards(document: Values, arguments: Values) -> Iterator[Conflict]:
    tensor = whole_number(document.get("tensor_parallel_size")) or 1
    cards = whole_number(arguments.get(DECODE)) or 1
    if arguments.get("prefill_context_parallel_size", 1) == 1 and cards > 0 and tensor % cards:
        reason = Reason(ArgumentConflict.DIVIDES, key="tensor_parallel_size", value=tensor)
        yield ("engine_args", DECODE), reason


def whole_number(value: object) -> int | None:
    """Return the value if it is a whole number; JSON's true is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _layers_or_parts(document: Values, arguments: Values, _sampling: Values) -> Iterator[Conflict]:
    tensor, pipeline = document.get("tensor_parallel_size"), arguments.get("pipeline_parallel_size")
    if isinstance(tensor, int) and isinstance(pipeline, int) and min(tensor, pipeline) > 1:
        yield ("engine_args", "pipeline_parallel_size"), Reason(ArgumentConflict.LAYERS_OR_PARTS)


RULES: Mapping[str, tuple[Callable[[Values, Values, Values], Iterator[Conflict]], ...]] = {
    "vllm": (_speculation, _required, _validators, _numbers, _exclusive),
    "mlx": (_layers_or_parts,),
}
