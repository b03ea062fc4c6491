"""From decisions to the document's data: LocalAI's keys, and our block under ``importer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.decide.decision import Decisions
from importer.document import options
from importer.document.comments import comment
from importer.document.places import FACTS, OPTIONS, SAMPLING, UNWRITTEN, path_of

SCHEMA = 1
USECASES = {"base": ["completion"]}


@dataclass(frozen=True, slots=True)
class Subject:
    """Which model the document is for.

    ``model`` is what the engine is told: a Hub id, or a directory.
    """

    name: str
    reference: str
    model: str
    model_id: str | None
    revision: str | None


@dataclass(frozen=True, slots=True)
class Built:
    """The document's data, and for each YAML path the comment that says why."""

    data: dict[str, Any]
    comments: Mapping[tuple[str | int, ...], str]


def build(
    subject: Subject, decisions: Decisions, engine: Mapping[str, Any], findings: Mapping[str, Any]
) -> Built:
    """Lay the decisions out as LocalAI reads them.

    ``engine`` is ``{"name", "version"}`` and more for our block; ``findings`` are further entries there.
    """
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    data: dict[str, Any] = {
        "name": subject.name,
        "description": f"Imported from {subject.model_id or subject.model}",
        "backend": engine["name"],
        "known_usecases": _usecases(decisions),
        "parameters": {"model": subject.model},
    }
    comments: dict[tuple[str | int, ...], str] = {}
    if kind != "base":
        data["template"] = {"use_tokenizer_template": True}
    entries: list[str] = []
    for key in OPTIONS:
        decision = decisions[key]
        if decision.value is not None:
            comments[options.KEY, len(entries)] = comment(decision)
            entries.append(options.write(key, decision.value))
    if entries:
        data[options.KEY] = entries
    for key in _ordered(decisions):
        path = path_of(key)
        decision = decisions[key]
        by_itself = key in UNWRITTEN and decision.status == "engine-default"
        if path is not None and decision.value is not None and not by_itself:
            put(data, path, decision.value)
            comments[_first(path, decision.value)] = comment(decision)
    if subject.model_id is not None and subject.revision is not None:
        source = {"type": "huggingface", "repo": subject.model_id, "revision": subject.revision}
        data["artifacts"] = [{"name": "model", "target": "model", "source": source}]
    data["importer"] = _block(subject, decisions, engine, findings)
    return Built(data, comments)


def _usecases(decisions: Decisions) -> list[str]:
    """As LocalAI names them: what sees has vision, what hears takes more than that."""
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    takes = decisions["modalities"].value if "modalities" in decisions else None
    found = [*USECASES.get(str(kind), ["chat"])]
    for usecase, needs in (("vision", {"image", "video"}), ("multimodal", {"audio"})):
        if needs & {*(takes or ())}:
            found.append(usecase)
    return found


def _first(path: tuple[str, ...], value: Any) -> tuple[str | int, ...]:
    """Where a comment can stand: at the value, or at the first inside it."""
    if isinstance(value, dict) and value:
        key = next(iter(value))
        return _first((*path, key), value[key])
    return (*path, 0) if isinstance(value, list) else path


def _ordered(decisions: Decisions) -> list[str]:
    """Sampling in LocalAI's order first, then the rest as decided."""
    sampling = [f"parameters.{k}" for k in SAMPLING if f"parameters.{k}" in decisions]
    return sampling + [k for k in decisions if k not in sampling]


def _block(
    subject: Subject, decisions: Decisions, engine: Mapping[str, Any], findings: Mapping[str, Any]
) -> dict[str, Any]:
    block: dict[str, Any] = {"schema": SCHEMA, "reference": subject.reference}
    if subject.model_id is not None:
        block |= {"model_id": subject.model_id, "revision": subject.revision}
    block |= {k: decisions[k].value for k in FACTS if k in decisions and decisions[k].value is not None}
    unset = [
        k
        for k in SAMPLING
        if f"parameters.{k}" in decisions and decisions[f"parameters.{k}"].status == "none"
    ]
    if unset:
        block["unset"] = unset
    unsaid = {k: decisions[k].status for k in OPTIONS if decisions[k].value is None}
    if unsaid:
        block["no_parser"] = unsaid
    block["engine"] = {k: v for k, v in engine.items() if v is not None}
    return block | dict(findings)


def put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a nested key, making the maps on the way."""
    for step in path[:-1]:
        inner = data.get(step)
        if not isinstance(inner, dict):
            inner = data[step] = {}
        data = inner
    data[path[-1]] = value
