"""The report on another version of an engine: causes with their documents, and how each was judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from importer.app.recheck_upstream import CauseKind
from importer.app.upgrade import Judged, UpgradeFinding

EXAMPLES = 3  # documents that a group names
ALONE = (CauseKind.ENGINE,)  # causes of every document


@dataclass(slots=True)
class CauseGroup:
    """Documents with one cause: its kind, keys and values; ``names`` are the first."""

    what: str
    keys: tuple[str, ...]
    before: str | None
    after: str | None
    why: str | None = None
    total: int = 0
    left: int = 0
    names: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json`` and REST."""
        members: dict[str, Any] = {
            "what": self.what, "keys": [*self.keys], "before": self.before, "after": self.after,
            "documents": self.total, "left": self.left, "examples": [*self.names],
        }  # fmt: skip
        return members if self.why is None else members | {"why": self.why}


def identity(cause: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what causes of one group share."""
    return cause["what"], tuple(cause.get("keys") or ()), cause["before"], cause["after"]


@dataclass(slots=True)
class UpgradeReport:
    """Counts over documents; it grows by one finding or failure at a time."""

    changed: int = 0
    version_only: int = 0
    failed: int = 0
    unjudged: int = 0
    written: int = 0
    conflicts: int = 0
    left: int = 0
    refused: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    _groups: dict[tuple[Any, ...], CauseGroup] = field(default_factory=dict)

    def add(self, found: UpgradeFinding) -> None:
        """Count a finding."""
        self.judged[str(found.judged)] += 1
        if found.judged in (Judged.ELSEWHERE, Judged.THERE):
            return
        self.changed += found.changed
        self.version_only += not found.changed
        self.conflicts += bool(found.finding.conflicts)
        self.left += bool(found.left)
        self.refused += found.finding.refused is not None
        left = {identity(cause.to_json()) for cause in found.left}
        for cause in found.finding.causes:
            if cause.what not in ALONE:
                self._count(found.finding.name, cause.to_json(), left)
        if found.finding.refused is not None:
            refused = {"what": CauseKind.REFUSED.value, "before": None, "after": None}
            self._count(found.finding.name, refused | {"keys": [found.finding.refused.kind]}, left)

    def _count(self, name: str, cause: Mapping[str, Any], left: Iterable[tuple[Any, ...]]) -> None:
        key = identity(cause)
        group = self._groups.setdefault(key, CauseGroup(key[0], key[1], key[2], key[3], cause.get("why")))
        group.total += 1
        group.left += key in left
        if len(group.names) < EXAMPLES:
            group.names.append(name)

    @property
    def documents(self) -> int:
        """Return how many documents were looked at."""
        return self.judged.total() + self.failed + self.unjudged

    def groups(self) -> list[CauseGroup]:
        """Return the groups, those with the most documents first."""
        return sorted(self._groups.values(), key=lambda one: (-one.total, one.what, one.keys))

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json``."""
        counts = ("changed", "version_only", "conflicts", "left", "refused", "failed", "unjudged", "written")
        return {
            "documents": self.documents,
            **{name: getattr(self, name) for name in counts},
            "judged": dict(self.judged),
            "causes": [group.to_json() for group in self.groups()],
        }
