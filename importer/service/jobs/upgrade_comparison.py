"""A document of the gallery beside itself for another version of its engine: what waits for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.app import upgrade_versions
from importer.app.recheck_upstream import CauseKind, ChangeCause
from importer.app.session import ImportSession
from importer.app.upgrade import Judged, Upgrade, Upgraded
from importer.config_file.diff import differences, digest
from importer.config_file.merge import Take
from importer.config_file.review import change_json
from importer.config_file.store import Store
from importer.errors import DocumentError, ImporterError, UsageError
from importer.hub.local import AllowedFolders
from importer.service.domain import upkeep
from importer.service.domain.gallery import Checkout


@dataclass(frozen=True, slots=True)
class FoundChange:
    """What a comparison found: the version of the working copy, the finding and its proposals."""

    version: int
    summary: Mapping[str, Any]
    kinds: Sequence[CauseKind]
    proposals: Mapping[str, Mapping[str, Any]]


class UpgradeComparison:
    """Comparisons of one job, for one version of an engine; equal documents are decided once."""

    def __init__(self, engine: str, bench: ImportSession, places: AllowedFolders) -> None:
        after = upgrade_versions.named(engine)
        self._upgrade = Upgrade(after, bench, Store(Path()), places)

    def compare(self, folder: Checkout, name: str) -> FoundChange | None:
        """Return what the version changes; ``None`` for a document of that version, or of another engine.

        Raises ImporterError.
        """
        upgraded = self._upgrade.judge(name, folder)
        found = upgraded.found
        if found.judged in (Judged.THERE, Judged.ELSEWHERE):
            return None
        summary, kinds = upkeep.summary_of(found.finding), [*found.kinds]
        proposals: dict[str, dict[str, Any]] = {}
        if found.left:
            summary["refused"] = upkeep.worded(_refusal(upgraded, found.left[0]))
        elif found.finding.refused is None:
            sides: Sequence[Take | None] = upkeep.SIDES if found.finding.conflicts else (None,)
            try:
                proposals = {side or upkeep.ANY: _proposal(upgraded, folder, side) for side in sides}
            except DocumentError as error:
                summary["refused"] = upkeep.worded(error)
        if summary["refused"] is not None and CauseKind.REFUSED not in kinds:
            kinds.append(CauseKind.REFUSED)
        return FoundChange(folder.fetched[name].number, summary, kinds, proposals)


def _refusal(upgraded: Upgraded, cause: ChangeCause) -> ImporterError:
    """Return why the document cannot be written for the version as it is."""
    if cause.why is not None:
        return DocumentError("invalid", path=upgraded.stored.path.name, problem=cause.why)
    moved = upgraded.moved
    version = "" if moved is None else moved.after.version
    field = ", ".join(cause.keys or ()).replace("_", " ")
    return UsageError(
        "unknown-parser", engine=upgraded.stored.backend, version=version, field=field, name=cause.before,
        near="",
    )  # fmt: skip


def _proposal(upgraded: Upgraded, folder: Checkout, take: Take | None) -> dict[str, Any]:
    """Return the files of the working copy for the version."""
    written = upgraded.write(take)
    changes = differences(upgraded.stored.data, written.data)
    return {
        "text": written.text, "receipt": written.receipt.to_text(),
        "template": folder.now(upgraded.stored.name).template, "digest": digest(written.data),
        "changes": [change_json(change) for change in changes],
    }  # fmt: skip
