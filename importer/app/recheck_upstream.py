"""What moved since a document was imported, as typed causes: files, weights, tables, parsers, versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from importer.config_file.receipt import Receipt
from importer.errors import HubError, ImporterError, RepositoryError
from importer.hub import digests
from importer.hub.content import content_digest, weight_files
from importer.hub.resolver import files_at
from importer.hub.snapshot import RepoFile, Snapshot
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Rule

MOST_FILES = 100  # that a cause names
SHORT = 12  # digits of a digest that a cause shows


class CauseKind(StrEnum):
    """What is another one now. ``REFUSED`` and ``RULES`` are of findings, without values of their own.

    Those from ``PARSER_RENAMED`` on are what another version of the engine changes.
    """

    MODEL = "model"
    COMMIT = "commit"
    WEIGHTS = "weights"
    BACKEND = "backend"
    ENGINE = "engine"
    PARSERS = "parsers"
    TABLES = "tables"
    DEVICE = "device"
    IMPORTER = "importer"
    REFUSED = "refused"
    RULES = "rules"
    PARSER_RENAMED = "parser-renamed"
    PARSER_GONE = "parser-gone"
    PARSER_REFUTED = "parser-refuted"
    PARSER_BETTER = "parser-better"
    ARGUMENT_RENAMED = "argument-renamed"
    ARGUMENT_GONE = "argument-gone"
    ARGUMENT_CHANGED = "argument-changed"
    DEFAULT = "default"
    VARIABLE_GONE = "variable-gone"
    TOGETHER = "together"
    PROMPT = "prompt"
    MEMORY = "memory"
    SUPPORT = "support"
    FRONTEND = "frontend"


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """What is another one now, before and after. ``None`` on both sides: ``keys`` alone say what changed.

    ``files``  the paths that a new commit added, changed or removed, where both listings are known.
    ``keys``   the decisions that rest on it.
    ``why``    a reason beside the values.
    """

    what: CauseKind
    before: str | None
    after: str | None
    files: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    why: Reason | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json``; ``files``, ``keys`` and ``why`` where they are known."""
        members: dict[str, Any] = {"what": str(self.what), "before": self.before, "after": self.after}
        beside = {"files": self.files, "keys": self.keys}
        members |= {name: list(value) for name, value in beside.items() if value is not None}
        return members if self.why is None else members | {"why": render(self.why)}


def upstream(receipt: Receipt, now: Snapshot, *, offline: bool = False) -> Iterator[ChangeCause]:
    """Yield the commit that moved with its changed files, and weights with other hashes.

    Of a commit that the Hub no longer lists the receipt has some files: those beside the weights.
    """
    moved = receipt.revision != now.revision
    before = _files_before(receipt, now, offline=offline) if moved else None
    if moved:
        changed = _of_receipt(receipt, now) if before is None else differing(before, now.files)
        yield ChangeCause(CauseKind.COMMIT, receipt.revision, now.revision, files=changed[:MOST_FILES])
    weights = _weights(receipt, before, now)
    if weights:
        yield ChangeCause(CauseKind.WEIGHTS, receipt.revision, now.revision, files=weights[:MOST_FILES])
    if None in (receipt.revision, now.revision):
        yield from _in_folder(receipt.weights, digests.imported(now))


def _in_folder(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[ChangeCause]:
    """Yield weights of a folder with other digests, or that only one side has."""
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        was, now_is = (_shown([side[path] for path in changed if path in side]) for side in (before, now))
        yield ChangeCause(CauseKind.WEIGHTS, was, now_is, files=changed[:MOST_FILES])


def _shown(values: Sequence[str]) -> str | None:
    """Return one digest, shortened, that stands for all of these."""
    both = values[0] if len(values) == 1 else hashlib.sha256("\n".join(values).encode()).hexdigest()
    return both[:SHORT] if values else None


def tables(keys: Mapping[str, Iterable[Rule]]) -> ChangeCause | None:
    """Return the cause of decisions whose evidence from a table changed; ``keys`` have its rules."""
    found = [key for key, rules in keys.items() if any(rule.status == "table" for rule in rules)]
    return ChangeCause(CauseKind.TABLES, None, None, keys=found) if found else None


def of_refusal(error: ImporterError) -> tuple[ChangeCause, ...]:
    """Return the parser that the engine's version lacks, where that refuses an import."""
    if error.kind != "unknown-parser":
        return ()
    field, name = str(error.details["field"]), str(error.details["name"])
    return (ChangeCause(CauseKind.PARSERS, name, None, keys=[field.replace(" ", "_")]),)


def differing(before: Iterable[RepoFile], after: Iterable[RepoFile]) -> list[str]:
    """Return the paths that only one listing has, or whose hash, else size, is another one."""
    old, new = ({file.path: file.hash or file.size for file in side} for side in (before, after))
    both = {*old, *new}
    return sorted(p for p in both if (p in old, old.get(p)) != (p in new, new.get(p)))


def _files_before(receipt: Receipt, now: Snapshot, *, offline: bool) -> Sequence[RepoFile] | None:
    if now.model_id is None or receipt.revision is None:
        return None
    try:
        return files_at(receipt.model_id or now.model_id, receipt.revision, offline=offline)
    except (HubError, RepositoryError):
        return None


def _of_receipt(receipt: Receipt, now: Snapshot) -> list[str]:
    old, new = receipt.files, now.settings
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def _weights(receipt: Receipt, before: Sequence[RepoFile] | None, now: Snapshot) -> list[str]:
    """Return weights with other hashes; those of one commit differ where only its content does."""
    if before is not None:
        return differing(weight_files(tuple(before)), weight_files(now.files))
    content = content_digest(now)
    if None in (receipt.content, content) or receipt.content == content or receipt.revision != now.revision:
        return []
    return [] if _of_receipt(receipt, now) else [file.path for file in weight_files(now.files)]
