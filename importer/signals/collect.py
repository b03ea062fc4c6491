"""All evidence on a snapshot: one line for each reader."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from importer import backends
from importer.chat_template.study import TemplateAnalysis
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals import (
    caching,
    card,
    code,
    comparison,
    context,
    declared_parsers,
    family,
    loading,
    mistral_files,
    quantisation,
    quantised_variants,
    sampling,
    speculation,
    template_markers,
    thinking_signs,
)
from importer.signals.engine_capabilities import UNKNOWN, Abilities, Machine
from importer.signals.evidence import TASKS, Evidence, Rule
from importer.signals.family import own_name
from importer.signals.kind import KindFinding
from importer.signals.modalities import evidence
from importer.signals.reasons import GatherReason
from importer.signals.tasks import task_backend, task_evidence
from importer.signals.template_markers import translate

PARSERS = ("tool_parser", "reasoning_parser")
NAMED_FOR = backends.DEFAULT  # the engine with the parser names of the tables


def collect(
    snapshot: Snapshot,
    kind: KindFinding,
    analysis: TemplateAnalysis | None,
    platform: str,
    *,
    ignore_name: bool,
    machine: Machine | None = None,
    able: loading.Known = lambda _: UNKNOWN,
    template: str | None = None,
) -> list[Evidence]:
    """Return the facts that hold for every engine; parsers have their names in the tables.

    ``machine`` is the target device, ``platform`` its operating system. ``able`` returns the abilities of a
    backend. ``template`` names the source of the analyzed template, if it is not the model's own.
    """
    silent = kind.kind in TASKS
    unadvised = silent or kind.kind == "base"  # the advice of a family is for its chats
    named = family.evidence(snapshot, ignore_name)
    return [
        *kind.evidence,
        *(e for e in named if not (unadvised and e.rule is Rule.SAMPLING_TABLE)),
        *([] if silent else sampling.evidence(snapshot)),
        *([] if ignore_name or silent else card.evidence(snapshot)),
        *([] if ignore_name else quantised_variants.evidence(snapshot)),
        *([] if silent else sampling.stop_word_evidence(snapshot, None if kind.kind == "base" else analysis)),
        *task_backend(kind.kind),
        *quantisation.evidence(snapshot),
        *loading.backend_evidence(snapshot, platform, machine, able),
        *template_markers.evidence(analysis, template, "" if ignore_name else own_name(snapshot)),
        *thinking_signs.evidence(snapshot, analysis, ignore_name),
        *template_markers.coverage_evidence(analysis, template),
    ]


def for_engine(
    facts: Sequence[Evidence],
    snapshot: Snapshot,
    engine: str,
    parsers: Mapping[str, Mapping[str, str]],
    able: Abilities | None = None,
    machine: Machine = Machine("cpu"),  # noqa: B008 - it cannot change
    *,
    ignore_name: bool = False,
) -> list[Evidence]:
    """Return the same facts with the engine's own parser names, and the facts of this engine alone.

    ``parsers`` is the engine's registry: field to names and their classes. ``able`` holds the abilities of
    its version. ``ignore_name`` leaves out the repository's name.
    """
    able = able or Abilities(engine)
    name = "" if ignore_name else own_name(snapshot)
    calls, thinks = (
        declared_parsers.is_possible(key, facts, name) for key in ("tool_parser", "reasoning_parser")
    )
    kind = next((str(f.value) for f in facts if f.key == "kind"), "chat")
    named = [
        f if f.key not in PARSERS or engine == NAMED_FOR else _renamed(f, engine, parsers.get(f.key))
        for f in facts
    ]
    return [
        *(fact for fact in named if fact is not None),
        *declared_parsers.declared_parsers(snapshot, engine),
        *declared_parsers.model_type_match(snapshot, engine, parsers, calls=calls, thinks=thinks),
        *declared_parsers.name_match(snapshot, parsers, facts, ignore_name=ignore_name),
        *loading.evidence(snapshot, able, machine),
        *([] if kind in TASKS else loading.unnamed_class(snapshot, able)),
        *sampling.unread_evidence(snapshot, engine),
        *template_markers.template_fault_evidence(snapshot, able, kind, facts),
        *context.evidence(snapshot, able),
        *evidence(snapshot, able),
        *task_evidence(snapshot, kind, able),
        *([] if kind in TASKS else speculation.evidence(snapshot, able, machine)),
        *caching.evidence(snapshot, able),
        *mistral_files.evidence(snapshot, able),
        *comparison.evidence(snapshot, able.engine),
        *code.evidence(snapshot, able),
    ]


def _renamed(fact: Evidence, engine: str, known: Container[str] | None) -> Evidence | None:
    if fact.value is None or not fact.rule.names_parsers:
        return fact
    name = translate(fact.key, str(fact.value), NAMED_FOR, engine, known)
    if name is None:
        return None
    reason = Reason(GatherReason.RENAMED, reason=fact.reason, parser=name, engine=engine)
    return replace(fact, value=name, reason=reason)
