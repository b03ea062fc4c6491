"""Grants of a document to an engine: what it sets beyond the free settings, and models of other places.

A setting is free by its effect (``effects``), which a person has read, and by the type of its value.
Everything else may run code, open ports or break a server, so an approver decides on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from importer import backends
from importer.document import argument_check, document_keys, environment
from importer.document.argument_check import DRAFTER
from importer.document.effects import DOCUMENT, FREE, Effect, table
from importer.document.engine_arguments import Argument, ArgumentRegistry, Kind, load, version_of
from importer.hub.reference import is_directory
from importer.hub.snapshot import mapping
from importer.reasons import Reason, ReasonKind

CODE = "trust_remote_code"
SPECULATION = "speculative_config"  # of ``engine_args``: its ``model`` is a second repository
OF_DRAFTER = (DRAFTER, f"{SPECULATION}.revision")
# Maps with names of the engine, each with its own rule.
OF_ENGINE = ("engine_args", environment.KEY, CODE)
# Names that stand for a key of the document's own; others alone are arguments of the engine.
PLACES = dict.fromkeys(document_keys.PARAMETERS, ("parameters",))
FREE_ALONE = frozenset((*document_keys.OPTIONS, *document_keys.FACTS))  # parsers and facts of the model
LONGEST = 200  # characters of a value in a sentence


class GrantReason(ReasonKind):
    """What is granted."""

    CODE = "Running code that comes with a model ({subject})"
    FOLDER = "Reading the folder {subject}"
    DRAFTER = "Drafting with the second model {subject}"
    SETTING = "{subject} ({effect})"


class Grant(NamedTuple):
    """One permission; ``subject`` is the model whose code runs, the folder, or the setting with its value."""

    kind: GrantReason
    subject: str
    effect: str = ""

    @property
    def key(self) -> str:
        """Return the key of the document that grants it."""
        own = {GrantReason.CODE: CODE, GrantReason.DRAFTER: f"engine_args.{SPECULATION}"}
        return own.get(self.kind) or self.subject.partition("=")[0]

    @property
    def reason(self) -> Reason:
        """Return what it allows, for sentences."""
        subject = self.subject if len(self.subject) <= LONGEST else f"{self.subject[:LONGEST]}…"
        fields = {"effect": Reason(Effect(self.effect))} if self.effect else {}
        return Reason(self.kind, subject=subject, **fields)


def grants(data: Mapping[str, object]) -> frozenset[Grant]:
    """Return what the data of a document grant; another model, commit or value is another grant."""
    return frozenset((*_code(data), *_folders(data), *_drafters(data), *_keys(data), *_settings(data)))


def set_values(values: Mapping[str, object], of: Mapping[str, object] | None = None) -> frozenset[Grant]:
    """Return what values grant that are to be set by their dotted paths, in a document or in any.

    Of the document count the engine and the model alone, so that none of its own grants is among them.
    """
    parameters = mapping((of or {}).get("parameters"))
    data = {key: value for key, value in (of or {}).items() if key in ("backend", "importer")}
    data |= {"parameters": {"model": parameters["model"]}} if "model" in parameters else {}
    for key, value in values.items():
        head, *steps = key.split(".")
        if head in FREE_ALONE:
            continue
        path = [*PLACES.get(head, () if head in document_keys.TOP_LEVEL else ("engine_args",)), head, *steps]
        place = data
        for step in path[:-1]:
            inner = place.get(step)
            place[step] = place = dict(inner) if isinstance(inner, Mapping) else {}
        place[path[-1]] = value
    return grants(data)


def runs(data: Mapping[str, object]) -> list[Grant]:
    """Return the grants that take effect in a run, in a fixed order: all but folders that are read."""
    return sorted(grant for grant in grants(data) if grant.kind is not GrantReason.FOLDER)


def _code(data: Mapping[str, object]) -> Iterator[Grant]:
    for key, value in _values(data):
        if key == CODE and value is not False:
            yield Grant(GrantReason.CODE, _subject(data))


def _settings(data: Mapping[str, object]) -> Iterator[Grant]:
    """Yield the arguments and variables of the engine that are not free; without an engine, of any."""
    arguments, variables = (mapping(data.get(key)) for key in ("engine_args", environment.KEY))
    if not (arguments or variables):
        return
    engine, version = data.get("backend"), version_of(data)
    found = [load(engine, version)] if isinstance(engine, str) else []
    registries = [*filter(None, found)] or _newest()
    for name, value in arguments.items():
        yield from _anywhere(registries, str(name), value)
    for name, value in variables.items():
        if value is not None and (why := _variable(registries, str(name), value)) is not None:
            yield _setting(f"env.{name}", value, why)


def _keys(data: Mapping[str, object]) -> Iterator[Grant]:
    """Yield the document's own keys that are not free, LocalAI's among them, at every level."""
    for key, value in data.items():
        if key == document_keys.KEY:
            yield from (grant for o in document_keys.of(data) for grant in _key(f"{key}.{o.key}", o.text))
        elif key not in OF_ENGINE:
            yield from _key(str(key), value)


def _key(path: str, value: Any) -> Iterator[Grant]:
    effects = table(DOCUMENT)
    if value is None or effects.named.get(path) in FREE:
        return
    if isinstance(value, Mapping) and not effects.has(path):
        for step, inner in value.items():
            yield from _key(f"{path}.{step}", inner)
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for one in value:
            yield from _key(path, one)
    elif (why := effects.withheld(path, value)) is not None:
        yield _setting(path, value, why)


def _newest() -> list[ArgumentRegistry]:
    """Return the newest registry of each engine."""
    return [registry for name in backends.NAMES if (registry := load(name)) is not None]


def _setting(name: str, value: Any, why: Effect) -> Grant:
    return Grant(GrantReason.SETTING, f"{name}={json.dumps(value, default=str, sort_keys=True)}", why)


def _variable(registries: list[ArgumentRegistry], name: str, value: Any) -> Effect | None:
    """Return why a variable is a grant: no engine of these reads it, or any engine has another effect."""
    withheld = {table(engine).withheld(name, value) for engine in backends.NAMES if table(engine).has(name)}
    if withheld - {None}:  # a run may name another engine
        return min(filter(None, withheld))
    kinds = [r.variables[name] for r in registries if name in r.variables]
    typed = all(k is not None and environment.typed(environment.text(value), k) is None for k in kinds)
    return None if kinds and typed and withheld else Effect.TEXT if kinds and withheld else Effect.UNREAD


def _anywhere(registries: list[ArgumentRegistry], name: str, value: Any) -> Iterator[Grant]:
    """Yield the grants of one argument: each that an engine with an argument of this name would make."""
    known = [(r, a) for r in registries if (a := argument_check.known(r.engine, r.version, name)) is not None]
    if not known and value is not None:
        yield _setting(f"engine_args.{name}", value, Effect.UNREAD)
    for registry, argument in known:
        if argument.name != CODE:
            yield from _Read(registry).beyond(argument, argument.name, (argument.name,), value)


class _Read:
    """The arguments of an engine's version with the effects that a person has read."""

    def __init__(self, registry: ArgumentRegistry) -> None:
        self._registry, self._effects = registry, table(registry.engine)

    def beyond(
        self,
        argument: Argument,
        name: str,
        path: tuple[str, ...],
        value: Any,
        kinds: list[Kind] | None = None,
    ) -> Iterator[Grant]:
        """Yield the parts of a value that are not free; ``name`` is that of the table of effects."""
        dotted, kinds = ".".join(path), kinds or [*_alternatives(argument.kind)]
        if value is None or dotted in OF_DRAFTER or _is_default(argument, value):
            return
        if isinstance(value, Mapping):
            yield from self._inside(path, kinds, value)
        elif isinstance(value, list):
            inner = [one for kind in kinds if isinstance(kind, Mapping) and "list" in kind
                     for one in _alternatives(kind["list"])]  # fmt: skip
            for one in value:
                yield from self.beyond(
                    argument, name, path, one, inner or (kinds if argument.many else ["any"])
                )
        elif (why := self._effects.withheld(name, value)) is not None:
            yield _setting(f"engine_args.{dotted}", value, why)
        elif isinstance(value, str) and not (
            self._effects.of_value(name, value) or any(_chosen(kind, value) for kind in kinds)
        ):
            yield _setting(f"engine_args.{dotted}", value, Effect.TEXT)

    def _inside(
        self, path: tuple[str, ...], kinds: list[Kind], value: Mapping[str, object]
    ) -> Iterator[Grant]:
        """Yield the grants of a map, whose known keys are declared or stand in the list of free maps."""
        tables = (self._registry.configs, self._registry.maps)
        named = [str(k["config"]) for k in kinds if isinstance(k, Mapping) and "config" in k] or [path[-1]]
        of, fields = next(((n, t[n]) for n in named for t in tables if n in t), ("", {}))
        for key, inner in value.items():
            place = (*path, str(key))
            if str(key) in fields:
                yield from self.beyond(fields[str(key)], f"{of}.{key}", place, inner)
            elif inner is not None:
                yield _setting(f"engine_args.{'.'.join(place)}", inner, Effect.UNREAD)


def _is_default(argument: Argument, value: Any) -> bool:
    """Return whether a value is the engine's own, so that it changes nothing."""
    return type(value) is type(argument.default) and value == argument.default


def _alternatives(kind: Kind) -> Iterator[Kind]:
    """Yield a type, or those that it may be."""
    if isinstance(kind, Mapping) and "any_of" in kind:
        for one in kind["any_of"]:
            yield from _alternatives(one)
    else:
        yield kind


def _chosen(kind: Kind, value: str) -> bool:
    """Return whether a text is one of the listed words, or a size such as 8K."""
    if isinstance(kind, str):
        return kind == "size" and argument_check.READABLE.fullmatch(value) is not None
    return "one_of" in kind and argument_check.chosen(kind, value)


def _inside(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the map that a value is, or the maps of its lists."""
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _inside(item)


def _drafters(data: Mapping[str, object]) -> Iterator[Grant]:
    """Yield second models that draft, with their commits: under ``speculative_config`` at any place."""
    for key, value in data.items():
        last = str(key).rpartition(".")[2]
        if last == SPECULATION and isinstance(value, Mapping) and value.get("model") is not None:
            named = (str(value[k]) for k in ("model", "revision") if value.get(k) is not None)
            yield Grant(_kind_of(str(value["model"])), ", ".join(named))
        yield from (grant for inner in _inside(value) for grant in _drafters(inner))
        if str(key).endswith(f"{SPECULATION}.model") and value is not None:
            yield Grant(_kind_of(str(value)), str(value))


def _kind_of(model: str) -> GrantReason:
    return GrantReason.FOLDER if is_directory(model) else GrantReason.DRAFTER


def _subject(data: Mapping[str, object]) -> str:
    """Return the model and its commit, by all their names."""
    block = data.get("importer")
    revision = block.get("revision") if isinstance(block, Mapping) else None
    return ", ".join(dict.fromkeys([*_model(data), *([str(revision)] if revision else [])])) or "any"


def _values(data: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
    """Yield every value by the last step of its key, at any place: no engine has these two elsewhere."""
    for key, value in data.items():
        yield from (pair for inner in _inside(value) for pair in _values(inner))
        if value is not None and not isinstance(value, Mapping):
            yield key.rpartition(".")[2].replace("-", "_"), value


def _folders(data: Mapping[str, object]) -> Iterator[Grant]:
    """Yield the folders of this disk that the data name; a name without a slash is one for
    ``parameters.model``.
    """
    for name in _model(data):
        if is_directory(name) or "/" not in name:
            yield Grant(GrantReason.FOLDER, name)


def _model(data: Mapping[str, object]) -> Iterator[str]:
    """Yield what names the model."""
    block, parameters = data.get("importer"), data.get("parameters")
    named = [parameters.get("model")] if isinstance(parameters, Mapping) else []
    named += [block.get(key) for key in ("model_id", "reference")] if isinstance(block, Mapping) else []
    yield from (str(name) for name in named if name)
