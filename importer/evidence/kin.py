"""Parsers that bear the name of the model type: lfm2 for lfm2, nemotron_v3 for nemotron_h."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from importer.evidence.architecture import model_types
from importer.evidence.fact import Evidence
from importer.evidence.rule import Rule
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason


class KinReason(StrEnum):
    """What a model type says of parsers."""

    NAMED = "named"


def evidence(snapshot: Snapshot, parsers: Mapping[str, Mapping[str, str]], *, thinks: bool) -> list[Evidence]:
    """A tool parser of exactly the type's name; a reasoning parser of its name or its line.

    ``parsers`` is the target engine's registry: field to names and their classes; ``thinks`` says that the
    template shows reasoning, without which a type says nothing of it: one type has thinking and other models.
    """
    facts = []
    tools = parsers.get("tool_parser", {})
    for model_type in model_types(snapshot):
        tool = exact(model_type, tools)
        thought = of_line(model_type, parsers.get("reasoning_parser", {})) if thinks else None
        for key, name, rule in (
            ("tool_parser", tool, Rule.TYPE_NAME),
            ("reasoning_parser", thought, Rule.TYPE_LINE),
        ):
            if name is not None:
                reason = Reason(KinReason.NAMED, model_type=model_type, parser=name)
                facts.append(Evidence(rule, key, name, "config.json", reason, f"model_type: {model_type}"))
    return facts


def exact(model_type: str, names: Iterable[str]) -> str | None:
    """The parser whose name is the type, punctuation aside."""
    return next((n for n in names if _plain(n) == _plain(model_type) != ""), None)


def of_line(model_type: str, names: Mapping[str, str]) -> str | None:
    """The only parser of the type's line, unless its version differs; where a line has several, none."""
    line = [n for n in names if _stem(n) == _stem(model_type) != ""]
    if len({names[n] for n in line}) != 1:
        return None
    one, other = _number(line[0]), _number(model_type)
    begins = _plain(model_type).startswith(_plain(line[0]))
    return line[0] if begins or not one or not other or one == other else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _stem(name: str) -> str:
    return re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]


def _number(name: str) -> str:
    found = re.search(r"[0-9]+", name)
    return found[0] if found else ""
