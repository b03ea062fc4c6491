"""What another version of the engine changes for one document, by its tables: names, types, defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.app.recheck_upstream import CauseKind, ChangeCause
from importer.app.upgrade_versions import KINDS, VersionDifference
from importer.config_file import argument_check, check, document_keys, environment, model_facts
from importer.config_file.argument_conflicts import ArgumentConflict
from importer.config_file.diff import KeyPath, dotted, shown
from importer.config_file.model_conflicts import ModelConflict
from importer.config_file.model_facts import RecordedFacts
from importer.engines.registries import Registry
from importer.reasons import Reason, ReasonKind

Data = Mapping[str, Any]
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
        "no value is fixed any more: the engine decides at its start, perhaps as before",
    )


@dataclass(frozen=True, slots=True)
class Renamed:
    """A name in a document that the new version spells otherwise: ``path`` is an argument's or a parser's."""

    path: KeyPath
    before: str
    after: str


def at_version(data: Data, version: str, frontend: str | None) -> dict[str, Any]:
    """Return a document's data for another version of its engine."""
    block = data.get("importer")
    own = dict(block) if isinstance(block, Mapping) else {}
    engine = own.get("engine")
    named = {**(engine if isinstance(engine, Mapping) else {}), "version": version}
    if "frontend" in named or frontend is not None:
        named["frontend"] = named.get("frontend") or frontend
    return {**data, "importer": {**own, "engine": named}}


def renames(data: Data, moved: VersionDifference) -> tuple[Renamed, ...]:
    """Return the names in a document that the new version spells otherwise."""
    return (*_parser_renames(data, moved), *_argument_renames(data, moved))


def _parser_renames(data: Data, moved: VersionDifference) -> Iterator[Renamed]:
    old, new = _registries(data, moved)
    for key, kind in KINDS.items():
        name = document_keys.parser(data, key)
        if name is None or old is None or new is None or not old.has(kind, name) or new.has(kind, name):
            continue
        cls = old.class_of(kind, name)
        twins = [one for one, its in new.classes(kind).items() if its == cls]
        if twins:
            yield Renamed((document_keys.KEY, key), name, twins[0])


def _argument_renames(data: Data, moved: VersionDifference) -> Iterator[Renamed]:
    old, new = moved.before.arguments, moved.after.arguments
    written = data.get(argument_check.KEY)
    if old is None or new is None or not isinstance(written, Mapping):
        return
    for name in map(str, written):
        now = new.get(name)
        if name in old.arguments and now is not None and now.name != name and now.name not in written:
            yield Renamed((argument_check.KEY, name), name, now.name)


def renamed(data: Data, names: Sequence[Renamed]) -> dict[str, Any]:
    """Return the data under the new names; values and their order stay."""
    result = dict(data)
    for one in names:
        if one.path[0] == argument_check.KEY and isinstance(result.get(argument_check.KEY), Mapping):
            written = result[argument_check.KEY]
            result[argument_check.KEY] = {
                one.after if key == one.before else key: value for key, value in written.items()
            }
        elif one.path[0] == document_keys.KEY and isinstance(result.get(document_keys.KEY), list):
            result[document_keys.KEY] = [_option(entry, one) for entry in result[document_keys.KEY]]
    return result


def _option(entry: Any, one: Renamed) -> Any:
    option = document_keys.parse(str(entry))
    same = (option.key, option.value) == (one.path[1], one.before)
    return document_keys.write(option.key, one.after) if same else entry


def causes(data: Data, facts: RecordedFacts | None, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield what moved of the names, values and defaults that a document has or relies on."""
    yield from _frontend(data, moved)
    yield from _parsers(data, moved)
    for one in _argument_renames(data, moved):
        yield ChangeCause(CauseKind.ARGUMENT_RENAMED, one.before, one.after, keys=[dotted(one.path)])
    yield from _faults(data, facts, moved)
    yield from _variables(data, moved)
    yield from _defaults(data, facts, moved)


def _registries(data: Data, moved: VersionDifference) -> tuple[Registry | None, Registry | None]:
    frontend = document_keys.frontend_of(data)
    return moved.before.registry(frontend), moved.after.registry(frontend)


def _frontend(data: Data, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield the frontend of the document where the new version lacks it."""
    named = document_keys.frontend_of(data)
    if named in moved.before.frontends and moved.after.registry(named) is None:
        yield ChangeCause(CauseKind.FRONTEND, named, None, keys=["frontend"])


def _parsers(data: Data, moved: VersionDifference) -> Iterator[ChangeCause]:
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


def _faults(data: Data, facts: RecordedFacts | None, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield what the new version has against the document, and the version before had not."""
    known = {_identity(fault) for fault in _against(data, facts, moved.before.version)}
    for path, reason in _against(data, facts, moved.after.version):
        if _identity((path, reason)) not in known:
            value = _shown_at(data, path)
            yield ChangeCause(_kind(reason), value, None, keys=[dotted(path)], why=reason)


def _against(
    data: Data, facts: RecordedFacts | None, version: str
) -> list[tuple[tuple[str | int, ...], Reason]]:
    there = at_version(data, version, None)
    return [*check.faults(there), *model_facts.faults(there, facts)]


def _identity(fault: tuple[tuple[str | int, ...], Reason]) -> tuple[object, ...]:
    path, reason = fault
    own = isinstance(reason.kind, ArgumentConflict)
    return (path, reason.kind, repr(sorted(reason.fields.items())) if own else "")


def _kind(reason: Reason) -> CauseKind:
    if reason.kind in check.UNKNOWN:
        return CauseKind.ARGUMENT_GONE
    pair = isinstance(reason.kind, ArgumentConflict | ModelConflict)
    return CauseKind.TOGETHER if pair else CauseKind.ARGUMENT_CHANGED


def _shown_at(data: Data, path: Sequence[str | int]) -> str | None:
    value: Any = data
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return shown(value)


def _variables(data: Data, moved: VersionDifference) -> Iterator[ChangeCause]:
    """Yield variables that the version before reads and the new one does not."""
    old, new = moved.before.arguments, moved.after.arguments
    if old is None or new is None:
        return
    for name, value in environment.of(data).items():
        if name in old.variables and name not in new.variables:
            yield ChangeCause(CauseKind.VARIABLE_GONE, value, None, keys=[f"{environment.KEY}.{name}"])


def _has_tools(data: Data, _: tuple[str, ...]) -> bool:
    return document_keys.parser(data, "tool_parser") is not None


def _has_reasoning(data: Data, _: tuple[str, ...]) -> bool:
    return document_keys.parser(data, "reasoning_parser") is not None


def _is_hybrid(_: Data, traits: tuple[str, ...]) -> bool:
    return HYBRID in traits


def _drafts(data: Data, _: tuple[str, ...]) -> bool:
    return "speculative_config" in check.arguments_of(data)


def _adapts(data: Data, _: tuple[str, ...]) -> bool:
    return bool(check.arguments_of(data).get("enable_lora"))


# Which documents rely on the default of an argument, by the first word of its name; else all of the engine.
RELYING: Mapping[str, Callable[[Data, tuple[str, ...]], bool]] = {
    "tool": _has_tools, "reasoning": _has_reasoning, "mamba": _is_hybrid, "gdn": _is_hybrid,
    "spec": _drafts, "lora": _adapts,
}  # fmt: skip


def _defaults(data: Data, facts: RecordedFacts | None, moved: VersionDifference) -> Iterator[ChangeCause]:
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
