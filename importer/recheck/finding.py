"""What a recheck found: what is another one now, what that would alter, what of it a person has written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from importer.document.diff import ABSENT, Change
from importer.document.merge import Conflict
from importer.document.review import change_json
from importer.errors import ImporterError
from importer.messages import render
from importer.reasons import Reason


@dataclass(frozen=True, slots=True)
class Cause:
    """What is another one now: model, commit, backend, engine's version, device or importer's version."""

    what: str
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {"what": self.what, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Yours:
    """What a person has written over what the importer wrote; an import keeps it or tells a conflict."""

    value: Any

    def to_json(self) -> dict[str, Any]:
        """``yours`` is left out where they took the key away."""
        return {"covered": True} | ({} if self.value is ABSENT else {"yours": self.value})


@dataclass(frozen=True, slots=True)
class Altered:
    """A decision with another value, or with the same one and a warning that was not there."""

    key: str
    before: Any
    after: Any
    why: tuple[Reason, ...]
    yours: Yours | None = None

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        said = {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "why": [render(reason) for reason in self.why],
        }
        return said | ({"covered": False} if self.yours is None else self.yours.to_json())


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of the document's data that is no decision: a commit, a version, a finding."""

    change: Change
    yours: Yours | None = None

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return change_json(self.change) | ({"covered": False} if self.yours is None else self.yours.to_json())


@dataclass(frozen=True, slots=True)
class Finding:
    """One document. ``request`` is its receipt's; ``refused`` says why it could not be imported again.

    ``conflicts`` are values that a person and an import now have changed, each to another.
    """

    name: str
    model: str | None
    request: Mapping[str, Any]
    causes: tuple[Cause, ...] = ()
    decisions: tuple[Altered, ...] = ()
    moved: tuple[Moved, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    refused: ImporterError | None = None

    @property
    def changed(self) -> bool:
        """Whether an import now would write anything else, warn of anything new, or be refused."""
        return bool(self.decisions or self.moved or self.refused)

    def to_json(self, worded: Callable[[ImporterError], Mapping[str, Any]]) -> dict[str, Any]:
        """As JSON; ``worded`` gives a failure's kind, message and next step."""
        no = self.refused
        return {
            "schema": 1,
            "name": self.name,
            "model": self.model,
            "changed": self.changed,
            "causes": [c.to_json() for c in self.causes],
            "decisions": [d.to_json() for d in self.decisions],
            "document": [m.to_json() for m in self.moved],
            "conflicts": [c.to_json() for c in self.conflicts],
            "refused": None if no is None else worded(no),
        }
