"""Grants of a document to an engine: what it sets beyond the positive list, and models of other places.

The list is data: arguments that are numbers, switches or choices, and the variables and keys of
``settings_of``. Everything else may be text that another program interprets, so an approver decides on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from importer import config
from importer.config_file import argument_check, check, document_keys
from importer.config_file.argument_check import CHOICES, DRAFTER, WITHHELD
from importer.config_file.engine_arguments import Argument, ArgumentRegistry, Kind, load, version_of
from importer.hub.reference import is_directory
from importer.reasons import Reason, ReasonKind

CODE = "trust_remote_code"
SPECULATION = "speculative_config"  # of ``engine_args``: its ``model`` is a second repository
OF_DRAFTER = (DRAFTER, f"{SPECULATION}.revision")
OF_OTHERS = ("draft_model", "lora_adapter", "mmproj")  # LocalAI's keys with files and addresses
SUBJECT = ("backend", "importer", "parameters")  # what a grant depends on beside its own key
# Names that stand for a key of the document's own; others alone are arguments of the engine.
ALONE = frozenset((
    *document_keys.TOP_LEVEL, *document_keys.PARAMETERS, *document_keys.OPTIONS, *document_keys.FACTS,
))  # fmt: skip
LONGEST = 200  # characters of a value in a sentence


class GrantReason(ReasonKind):
    """What is granted."""

    CODE = "code", "Running code that comes with a model ({subject})"
    FOLDER = "folder", "Reading the folder {subject}"
    DRAFTER = "drafter", "Drafting with the second model {subject}"
    SETTING = "setting", "{subject} ({effect})"


class Effect(ReasonKind):
    """What a setting beyond the list does, as far as anyone has read its source."""

    CODE = "code", "it loads code"
    FILE = "file", "it writes, reads or removes files of the engine's machine"
    PLACE = "place", "it names a port, a host or a download site"
    PROTECTION = "protection", "it switches a protection off"
    TEXT = "text", "a text that the engine interprets: it may run code, open files or name hosts"
    UNREVIEWED = "unreviewed", "importer does not know its effect: it may run code, open files or name hosts"


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
    flags = check.combined(check.flag(o) for o in document_keys.of(data) if o.key.startswith("--"))
    moved = {**data, "flags": flags}  # they set what ``engine_args`` sets
    return frozenset((*_code(moved), *_folders(data), *_drafters(moved), *_settings(moved)))


def set_values(values: Mapping[str, object], of: Mapping[str, object] | None = None) -> frozenset[Grant]:
    """Return what values grant that are to be set by their dotted paths, in a document or in any."""
    data = {key: value for key, value in (of or {}).items() if key in SUBJECT}
    for key, value in values.items():
        head, *steps = key.split(".")
        path = [head, *steps] if head in ALONE else ["engine_args", head, *steps]
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
    """Yield what the positive list of the engine does not hold; without an engine, of any engine."""
    engine, version = data.get("backend"), version_of(data)
    found = [load(engine, version)] if isinstance(engine, str) else []
    registries = [*filter(None, found)] or _newest()
    for part in ("engine_args", "flags"):
        arguments = data.get(part)
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            yield from _anywhere(registries, str(name), value)
    variables = data.get(argument_check.ENVIRONMENT_KEY)
    for name, value in variables.items() if isinstance(variables, Mapping) else ():
        if value is not None and (why := _variable(registries, str(name), value)) is not None:
            yield _setting(f"env.{name}", value, why)
    for name in OF_OTHERS:
        if data.get(name):
            yield _setting(name, data[name], Effect.FILE)


def _newest() -> list[ArgumentRegistry]:
    """Return the newest registry of each engine."""
    return [registry for name in config.NAMES if (registry := load(name)) is not None]


def _setting(name: str, value: Any, why: Effect) -> Grant:
    return Grant(GrantReason.SETTING, f"{name}={json.dumps(value, default=str, sort_keys=True)}", why)


def _variable(registries: list[ArgumentRegistry], name: str, value: Any) -> Effect | None:
    """Return why a variable is a grant: it is on no list of the engines, or any engine withholds it."""
    others = _newest()  # a run may name another engine
    withheld = [registry.granted[name] for registry in (*registries, *others) if name in registry.granted]
    if withheld:
        return Effect(withheld[0])
    kinds = [registry.free[name] for registry in registries if name in registry.free]
    typed = all(argument_check.typed(argument_check.text(value), kind) is None for kind in kinds)
    return None if kinds and typed else Effect.UNREVIEWED


def _anywhere(registries: list[ArgumentRegistry], name: str, value: Any) -> Iterator[Grant]:
    """Yield the grants of one argument: each that an engine with an argument of this name would make."""
    known = [(r, a) for r in registries if (a := argument_check.known(r.engine, r.version, name)) is not None]
    if not known and value is not None:
        yield _setting(f"engine_args.{name}", value, Effect.UNREVIEWED)
    for registry, argument in known:
        yield from _Listed(registry, argument.name).beyond(argument, (argument.name,), value)


class _Listed:
    """The positive list for one argument of an engine's version."""

    def __init__(self, registry: ArgumentRegistry, name: str) -> None:
        self._registry, self._name = registry, name

    def beyond(self, argument: Argument, path: tuple[str, ...], value: Any) -> Iterator[Grant]:
        """Yield the parts of a value that are no number, switch or choice under a known name."""
        dotted, kinds = ".".join(path), [*_alternatives(argument.kind)]
        choices = CHOICES.get(f"{self._registry.engine}.{dotted}")
        kinds = kinds if choices is None else [{"one_of": [*choices]}]
        if value is None or dotted in OF_DRAFTER:
            return
        why = WITHHELD.get(path[-1])
        if why is not None and value is not False:
            yield _setting(f"engine_args.{dotted}", value, Effect(why))
        elif isinstance(value, Mapping):
            yield from self._inside(path, kinds, value)
        elif isinstance(value, list):
            inner = [one for kind in kinds if isinstance(kind, Mapping) and "list" in kind
                     for one in _alternatives(kind["list"])]  # fmt: skip
            of = Argument(argument.name, {"any_of": inner or (kinds if argument.many else ["any"])})
            for one in value:
                yield from self.beyond(of, path, one)
        elif isinstance(value, str) and not any(_chosen(kind, value) for kind in kinds):
            yield _setting(f"engine_args.{dotted}", value, Effect.TEXT)

    def _inside(
        self, path: tuple[str, ...], kinds: list[Kind], value: Mapping[str, object]
    ) -> Iterator[Grant]:
        """Yield the grants of a map, whose known keys are declared or stand in the list of free maps."""
        named = [kind["config"] for kind in kinds if isinstance(kind, Mapping) and "config" in kind]
        tables = (self._registry.configs, self._registry.maps)
        fields: Mapping[str, Argument] = next((t[n] for n in named for t in tables if n in t), {})
        fields = fields or self._registry.maps.get(path[-1], {})
        for key, inner in value.items():
            place = (*path, str(key))
            if str(key) in fields:
                yield from self.beyond(fields[str(key)], place, inner)
            elif inner is not None:
                yield _setting(f"engine_args.{'.'.join(place)}", inner, Effect.UNREVIEWED)


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
