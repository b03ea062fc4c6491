"""Two versions of an engine side by side: what moved between their tables; no document is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from importer import config
from importer.config_file import engine_arguments
from importer.config_file.engine_arguments import ArgumentRegistry
from importer.decisions.decision import RUST
from importer.engines import capabilities, registries
from importer.engines.registries import Kind, Registry
from importer.errors import Setting, UsageError
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
        (
            "no tables of {engine} {version} are known, only of {known}; docs/adding.md shows how a version "
            "is added"
        ),
    )


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ChangedDefault:
    """An argument whose default is another one now; ``None`` where the engine decides at its start."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
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

    def to_json(self) -> dict[str, Any]:
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
        capabilities.load(engine, version),
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
