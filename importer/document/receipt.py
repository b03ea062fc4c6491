"""The receipt beside a document: what was decided on what evidence, who reviewed it, what a run showed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from importer.evidence.fact import Evidence

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Receipt:
    """Bound to the digest of the YAML's data: edit the YAML, and review and validation no longer count.

    ``review`` is ``{"state": pending|approved, "by", "at", "digest"}``; ``validation`` is a report of the
    validation room with the digest it ran on, or ``None``.
    """

    name: str
    reference: str
    model_id: str | None
    revision: str | None
    directory: str | None
    digest: str
    imported_at: str
    importer: str
    engine: Mapping[str, Any]
    decisions: Mapping[str, Any]
    evidence: Sequence[Mapping[str, Any]]
    unknown: Mapping[str, str]
    review: Mapping[str, Any]
    validation: Mapping[str, Any] | None = None
    proof: Mapping[str, Any] | None = None

    def to_text(self) -> str:
        """The file's text: indented JSON, keys in the order above."""
        data = {"schema": SCHEMA} | {f: getattr(self, f) for f in self.__dataclass_fields__}
        return json.dumps(data, indent=1, ensure_ascii=False, default=list) + "\n"

    def reviewed(self, digest: str) -> str:
        """``approved``, ``pending``, or ``stale`` when the data changed after the approval."""
        state = str(self.review["state"])
        return "stale" if state == "approved" and self.review.get("digest") != digest else state

    def validated(self, digest: str) -> str:
        """``passed``, ``failed``, ``never``, or ``stale`` when the data changed after the run."""
        if self.validation is None:
            return "never"
        if self.validation.get("digest") != digest:
            return "stale"
        return "passed" if self.validation["passed"] else "failed"

    def with_review(self, state: str, by: str, at: str, digest: str) -> Receipt:
        """The same receipt, reviewed."""
        return replace(self, review={"state": state, "by": by, "at": at, "digest": digest})

    def with_validation(self, report: Mapping[str, Any], digest: str) -> Receipt:
        """The same receipt with a run's report."""
        return replace(self, validation={"digest": digest, **report})


def parse(data: Mapping[str, Any]) -> Receipt:
    """The receipt in ``data``, which has been checked against its schema."""
    return Receipt(**{f: data[f] for f in Receipt.__dataclass_fields__ if f in data})


def evidence_json(evidence: Sequence[Evidence]) -> list[dict[str, Any]]:
    """Evidence as it stands in a receipt."""
    return [{f: getattr(e, f) for f in e.__dataclass_fields__} for e in evidence]
