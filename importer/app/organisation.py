"""An organisation's models: what the list alone refuses, the import of an entry, and the totals of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from importer.app.decide import Decided, ImportRequest, decide_snapshot
from importer.app.import_ import Settled
from importer.app.session import ImportSession
from importer.config_file.name_allocator import Names
from importer.decisions.decide import PARSERS
from importer.errors import HubError, ImporterError, RepositoryError
from importer.hub import client, endpoint, resolver
from importer.hub.organisation import Entry
from importer.hub.snapshot import Snapshot
from importer.progress import Progress, silent
from importer.reasons import Reason
from importer.signals.reasons import KindRemedy

# Kinds of failures that say what a repository is, or who may read it: it is skipped, and nothing went wrong.
SKIPPED = frozenset({
    "gated", "private", "forbidden", "not-found", "revision-not-found", "gguf-only", "gguf-file", "not-chat",
    "nothing-to-decide", "too-large",
})  # fmt: skip
EXAMPLES = 3  # names that totals keep of each kind of failure


def refusal(entry: Entry) -> ImporterError | None:
    """Return why an entry cannot be imported, by the list alone; ``None`` where its files decide."""
    if entry.gguf:
        return RepositoryError("gguf-only", repo=entry.repo, next=Reason(KindRemedy.ORIGINAL))
    if entry.gated and not client.has_token():
        url = f"{endpoint.plain(endpoint.endpoint())}/{entry.repo}"
        return HubError("gated", repo=entry.repo, url=url, said="")
    return HubError("not-found", repo=entry.repo) if entry.commit is None else None


def snapshot_of(entry: Entry) -> Snapshot:
    """Return the snapshot of an entry at its listed commit; raises its refusal, HubError, RepositoryError."""
    error = refusal(entry)
    if error is not None:
        raise error
    return resolver.resolve_listed(entry.repo, entry.repo, str(entry.commit))


def decide_entry(
    pattern: ImportRequest, entry: Entry, bench: ImportSession, names: Names, progress: Progress = silent
) -> Decided:
    """Return every decision on an entry; ``pattern`` is the request without a reference. For any thread.

    Raises ImporterError.
    """
    snapshot = snapshot_of(entry)
    request = replace(pattern, reference=entry.repo)
    request = request.after(names.known(snapshot, request.name, request.slot))
    return decide_snapshot(snapshot, request, bench, progress)


def facts(settled: Settled) -> dict[str, object]:
    """Return what the totals count of an import."""
    decisions = settled.plan.decisions
    found = {key: decisions[key].value for key in ("kind", "family", "backend", *PARSERS) if key in decisions}
    return found | {
        "findings": sorted({warning.kind.value for warning in settled.warnings}),
        "unknown": sorted(key for key, decision in decisions.items() if decision.status == "unknown"),
    }


@dataclass(slots=True)
class Totals:
    """Counts over the repositories of an organisation; their size does not grow with it."""

    listed: int = 0
    imported: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, found: Mapping[str, Any]) -> None:
        """Count an imported repository by its facts."""
        self.listed += 1
        self.imported += 1
        for key in ("kind", "family", "backend", *PARSERS):
            self._count(key, str(found.get(key) or "–"))
        for key in ("findings", "unknown"):
            for one in found.get(key) or ():
                self._count(key, str(one))

    def refuse(self, model: str, kind: str) -> None:
        """Count a repository without a document."""
        self.listed += 1
        self._count("skipped" if kind in SKIPPED else "failed", kind)
        shown = self.examples.setdefault(kind, [])
        if len(shown) < EXAMPLES:
            shown.append(model)

    def to_json(self) -> dict[str, Any]:
        """Return the totals, the most frequent values first."""
        counts = {key: dict(counted.most_common()) for key, counted in self.counts.items()}
        empty: dict[str, int] = {}
        names = ("kind", "family", "backend", *PARSERS, "findings", "unknown", "skipped", "failed")
        return {
            "listed": self.listed, "imported": self.imported,
            **{name: counts.get(name, empty) for name in names}, "examples": self.examples,
        }  # fmt: skip

    def _count(self, group: str, value: str) -> None:
        self.counts.setdefault(group, Counter())[value] += 1
