"""Two versions of an engine side by side: what moved between their tables, and what that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from importer import config
from importer.app.recheck import CauseKind, ChangeCause
from importer.config_file import argument_check, check, document_keys, engine_arguments
from importer.config_file.check import ModelConflict, RecordedFacts
from importer.config_file.document import Document, document_of
from importer.config_file.document_keys import KeyPath, dotted, shown
from importer.config_file.engine_arguments import ArgumentConflict, ArgumentRegistry
from importer.decisions.decision import RUST
from importer.engines import registries
from importer.engines.registries import Kind, Registry
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.signals.engine_capabilities import Abilities

KINDS: Mapping[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
# Abilities by the name of an architecture or a model type; all others are of every model.
BY_MODEL = (
    "architectures", "pooling", "transcribes", "removed", "model_types", "tokenizer_types", "remapped",
    "fp8_types", "lengths", "mtp_types", "mtp_architectures",
)  # fmt: skip
OF_VERSION = ("engine", "version")


class UpgradeFault(ReasonKind):
    """Why an engine's version cannot be compared with."""

    FORM = "form", "{text!r} has not the form ENGINE@VERSION, such as vllm@0.33.0"
    NO_ENGINE = "no-engine", "there is no engine {engine}; there are {known}"
    NO_VERSION = (
        "no-version",
        ("importer has no tables of {engine} {version}, only of {known}"),
    )


@frozen
class EngineVersion:
    """An engine's version with its tables; ``arguments`` is ``None`` for an engine without known ones."""

    engine: str
    version: str
    parsers: Registry
    arguments: ArgumentRegistry | None
    able: Abilities
    frontends: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return ``vllm@0.33.0``."""
        return f"{self.engine}@{self.version}"

    def registry(self, frontend: str | None) -> Registry | None:
        """Return the parsers of a frontend; ``None`` where the version lacks the frontend."""
        if frontend != RUST:
            return self.parsers
        return registries.load(self.engine, self.version, RUST) if RUST in self.frontends else None


@frozen
class ChangedDefault:
    """An argument whose default is another one now; ``None`` where the engine decides at its start."""

    name: str
    before: Any
    after: Any


@frozen
class VersionDifference:
    """What moved from one version to another.

    ``parsers``    by field, the names that only the new version has.
    ``defaults``   of arguments that both versions have.
    ``models``     architectures and model types of which the tables hold something else now.
    ``all_models`` whether an ability moved that is of every model.
    ``frontends``  that only the new version has.
    """

    before: EngineVersion
    after: EngineVersion
    parsers: Mapping[str, frozenset[str]]
    defaults: tuple[ChangedDefault, ...]
    models: frozenset[str]
    all_models: bool
    frontends: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the counts and names for ``--json``."""
        return {
            "before": self.before.version,
            "after": self.after.version,
            "new_parsers": {key: sorted(names) for key, names in self.parsers.items()},
            "defaults": {one.name: [one.before, one.after] for one in self.defaults},
            "models": len(self.models),
            "frontends": [*self.frontends],
        }


def named(text: str) -> EngineVersion:
    """Return the version that ``ENGINE@VERSION`` names; ``vllm@0.33`` is the newest known 0.33.

    Raises UsageError("bad-value") for another form, an unknown engine or an unknown version.
    """
    name, at, version = text.partition("@")
    if not (at and name and version):
        raise _refused(text, UpgradeFault.FORM)
    engine = registries.FAMILY.get(name, name)
    if engine not in config.NAMES:
        raise _refused(text, UpgradeFault.NO_ENGINE, engine=name, known=config.NAMES)
    known = registries.versions(engine)
    if not any(one == version or one.startswith(f"{version}.") for one in known):
        raise _refused(text, UpgradeFault.NO_VERSION, engine=engine, version=version, known=known)
    return load(engine, registries.load(engine, version).version)


def _refused(text: str, kind: UpgradeFault, **details: Any) -> UsageError:
    problem = Reason(kind, **({"text": text} if kind is UpgradeFault.FORM else details))
    return UsageError("bad-value", setting=Setting.ENGINE, value=text, problem=problem)


@cache
def load(engine: str, version: str) -> EngineVersion:
    """Return a known version with its tables."""
    return EngineVersion(
        engine,
        version,
        registries.load(engine, version),
        engine_arguments.load(engine, version),
        registries.load_capabilities(engine, version),
        registries.frontends(engine, version),
    )


def known_before(engine: str, version: str | None) -> str | None:
    """Return the version itself, else the newest known one before it, else the oldest known.

    ``None`` for an engine without known versions.
    """
    known = registries.versions(engine)
    order = engine_arguments.order
    before = [one for one in known if version is None or order(one) <= order(version)]
    return (before or known[:1] or (None,))[-1]


@cache
def difference(engine: str, before: str, after: str) -> VersionDifference:
    """Return what moved between two known versions of an engine."""
    old, new = load(engine, before), load(engine, after)
    models, all_models = _moved_abilities(old.able, new.able)
    return VersionDifference(
        old,
        new,
        {key: frozenset(new.parsers.names(kind)) - {*old.parsers.names(kind)} for key, kind in KINDS.items()},
        _defaults(old.arguments, new.arguments),
        models,
        all_models,
        tuple(one for one in new.frontends if one not in old.frontends and one == RUST),
    )


def _defaults(old: ArgumentRegistry | None, new: ArgumentRegistry | None) -> tuple[ChangedDefault, ...]:
    if old is None or new is None:
        return ()
    both = [name for name in old.arguments if name in new.arguments]
    pairs = ((name, old.arguments[name].default, new.arguments[name].default) for name in both)
    return tuple(ChangedDefault(*pair) for pair in pairs if repr(pair[1]) != repr(pair[2]))


def _moved_abilities(old: Abilities, new: Abilities) -> tuple[frozenset[str], bool]:
    """Return the names of models of which an ability moved, and whether one of all models did."""
    names: set[str] = set()
    every = False
    for one in fields(Abilities):
        before, after = getattr(old, one.name), getattr(new, one.name)
        if one.name in OF_VERSION or before == after or not (before and after):
            continue  # an empty table is not known
        if one.name in BY_MODEL:
            names |= _unequal(before, after)
        else:
            every = True
    return frozenset(names), every


def _unequal(before: Any, after: Any) -> set[str]:
    """Return the keys or members that only one side has, or that have another value."""
    if isinstance(before, Mapping):
        return {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return {*before} ^ {*after}


HYBRID = "hybrid"  # the trait of architectures with layers of state
# Kinds of causes that a person has to settle, for the engine would refuse the document.
BLOCKING = frozenset(
    (
        CauseKind.PARSER_GONE, CauseKind.ARGUMENT_GONE, CauseKind.ARGUMENT_CHANGED, CauseKind.TOGETHER,
        CauseKind.FRONTEND,
    )
)  # fmt: skip


class UpgradeNote(ReasonKind):
    """What is known of a cause beside its values."""

    ENGINE_DECIDES = (
        "engine-decides",
        "the new version has no fixed default: the engine decides at its start",
    )


@frozen
class Renamed:
    """A name in a document that the new version spells otherwise: ``path`` is an argument's or a parser's."""

    path: KeyPath
    before: str
    after: str


def at_version(data: Document, version: str, frontend: str | None) -> Document:
    """Return a document's data for another version of its engine."""
    block = data.get("importer")
    own = dict(block) if isinstance(block, Mapping) else {}
    engine = own.get("engine")
    named = {**(engine if isinstance(engine, Mapping) else {}), "version": version}
    if "frontend" in named or frontend is not None:
        named["frontend"] = named.get("frontend") or frontend
    return document_of({**data, "importer": {**own, "engine": named}})


def renames(data: Document, moved: VersionDifference) -> tuple[Renamed, ...]:
    """Return the names in a document that the new version spells otherwise."""
    return (*_parser_renames(data, moved), *_argument_renames(data, moved))


def _parser_renames(data: Document, moved: VersionDifference) -> Iterator[Renamed]:
    old, new = _registries(data, moved)
    for key, kind in KINDS.items():
        name = document_keys.parser(data, key)
        if name is None or old is None or new is None or not old.has(kind, name) or new.has(kind, name):
            continue
        cls = old.class_of(kind, name)
        twins = [one for one, its in new.classes(kind).items() if its == cls]
        if twins:
            yield Renamed((document_keys.KEY, key), name, twins[0])


def _argument_renames(data: Document, moved: VersionDifference) -> Iterator[Renamed]:
    old, new = moved.before.arguments, moved.after.arguments
    written = data.get(argument_check.KEY)
    if old is None or new is None or not isinstance(written, Mapping):
        return
    for name in map(str, written):
        now = new.get(name)
        if name in old.arguments and now is not None and now.name != name and now.name not in written:
            yield Renamed((argument_check.KEY, name), name, now.name)


def renamed(data: Document, names: Sequence[Renamed]) -> Document:
    """Return the data under the new names; values and their order stay."""
    result = data.copy()
    for one in names:
        if one.path[0] == argument_check.KEY and isinstance(written := result.get("engine_args"), Mapping):
            result["engine_args"] = {
                one.after if key == one.before else key: value for key, value in written.items()
            }
        elif one.path[0] == document_keys.KEY and isinstance(entries := result.get("options"), list):
            result["options"] = [_option(entry, one) for entry in entries]
    return result


def _option(entry: Any, one: Renamed) -> Any:
    option = document_keys.parse(str(entry))
    same = (option.key, option.value) == (one.path[1], one.before)
    return document_keys.write(option.key, one.after) if same else entry


def causes(data: Document, facts: RecordedFacts | None, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield what moved of the names, values and defaults that a document has or relies on."""
    yield from _frontend(data, moved)
    yield from _parsers(data, moved)
    for one in _argument_renames(data, moved):
        yield ChangeCause(CauseKind.ARGUMENT_RENAMED, one.before, one.after, keys=[dotted(one.path)])
    yield from _faults(data, facts, moved)
    yield from _variables(data, moved)
    yield from _changed_defaults(data, facts, moved)


def _registries(data: Document, moved: VersionDifference) -> tuple[Registry | None, Registry | None]:
    frontend = document_keys.frontend_of(data)
    return moved.before.registry(frontend), moved.after.registry(frontend)


def _frontend(data: Document, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield the frontend of the document where the new version lacks it."""
    named = document_keys.frontend_of(data)
    if named in moved.before.frontends and moved.after.registry(named) is None:
        yield ChangeCause(CauseKind.FRONTEND, named, None, keys=["frontend"])


def _parsers(data: Document, moved: VersionDifference) -> Iterator[ChangeCause]:
    old, new = _registries(data, moved)
    spelled = {str(one.path[1]): one.after for one in _parser_renames(data, moved)}
    for key, kind in KINDS.items():
        name = document_keys.parser(data, key)
        if name is None or old is None or new is None or not old.has(kind, name) or new.has(kind, name):
            continue
        if key in spelled:
            yield ChangeCause(CauseKind.PARSER_RENAMED, name, spelled[key], keys=[key])
        else:
            yield ChangeCause(CauseKind.PARSER_GONE, name, None, keys=[key])


def _faults(data: Document, facts: RecordedFacts | None, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield what the new version has against the document, and the version before had not."""
    known = {_identity(fault) for fault in _against(data, facts, moved.before.version)}
    for path, reason in _against(data, facts, moved.after.version):
        if _identity((path, reason)) not in known:
            value = _shown_at(data, path)
            yield ChangeCause(_kind(reason), value, None, keys=[dotted(path)], why=reason)


def _against(
    data: Document, facts: RecordedFacts | None, version: str
) -> list[tuple[tuple[str | int, ...], Reason]]:
    there = at_version(data, version, None)
    return [*check.faults(there), *check.model_faults(there, facts)]


def _identity(fault: tuple[tuple[str | int, ...], Reason]) -> tuple[object, ...]:
    path, reason = fault
    own = isinstance(reason.kind, ArgumentConflict)
    return (path, reason.kind, repr(sorted(reason.fields.items())) if own else "")


def _kind(reason: Reason) -> CauseKind:
    if reason.kind in check.UNKNOWN:
        return CauseKind.ARGUMENT_GONE
    pair = isinstance(reason.kind, ArgumentConflict | ModelConflict)
    return CauseKind.TOGETHER if pair else CauseKind.ARGUMENT_CHANGED


def _shown_at(data: Document, path: Sequence[str | int]) -> str | None:
    value: Any = data
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return shown(value)


def _variables(data: Document, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield variables that the version before reads and the new one does not."""
    old, new = moved.before.arguments, moved.after.arguments
    if old is None or new is None:
        return
    for name, value in argument_check.variable_of(data).items():
        if name in old.variables and name not in new.variables:
            yield ChangeCause(
                CauseKind.VARIABLE_GONE, value, None, keys=[f"{argument_check.ENVIRONMENT_KEY}.{name}"]
            )


def _has_tools(data: Document, _: tuple[str, ...]) -> bool:
    return document_keys.parser(data, "tool_parser") is not None


def _has_reasoning(data: Document, _: tuple[str, ...]) -> bool:
    return document_keys.parser(data, "reasoning_parser") is not None


def _is_hybrid(_: Document, traits: tuple[str, ...]) -> bool:
    return HYBRID in traits


def _drafts(data: Document, _: tuple[str, ...]) -> bool:
    return "speculative_config" in check.arguments_of(data)


def _adapts(data: Document, _: tuple[str, ...]) -> bool:
    return bool(check.arguments_of(data).get("enable_lora"))


# Which documents rely on the default of an argument, by the first word of its name; else all of the engine.
RELYING: Mapping[str, Callable[[Document, tuple[str, ...]], bool]] = {
    "tool": _has_tools, "reasoning": _has_reasoning, "mamba": _is_hybrid, "gdn": _is_hybrid,
    "spec": _drafts, "lora": _adapts,
}  # fmt: skip


def _changed_defaults(
    data: Document, facts: RecordedFacts | None, moved: VersionDifference
) -> Iterator[ChangeCause]:
    """Yield defaults of arguments that the document does not set, where its model or parsers use them."""
    if not moved.defaults:
        return
    written = {*check.arguments_of(data), *data}
    architectures = () if facts is None else facts.facts.architectures
    traits = moved.after.able.traits(architectures) or moved.before.able.traits(architectures)
    for one in moved.defaults:
        relies = RELYING.get(one.name.partition("_")[0])
        if one.name not in written and (relies is None or relies(data, traits)):
            before, after = (None if side is None else shown(side) for side in (one.before, one.after))
            why = Reason(UpgradeNote.ENGINE_DECIDES) if one.after is None else None
            place = f"{argument_check.KEY}.{one.name}"
            yield ChangeCause(CauseKind.DEFAULT, before, after, keys=[place], why=why)
