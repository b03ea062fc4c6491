"""Upkeep: rechecks of documents as jobs, their findings, and what a person decides about those.

The duty of a process beside its jobs: the schedule of rechecks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from importer.app.import_ import Plan, merge_plan, write
from importer.app.recheck import RecheckFinding
from importer.config_file.document_keys import canonical, differences
from importer.config_file.merge import Take
from importer.config_file.review import change_json
from importer.config_file.store import receipt_path, write_all
from importer.config_file.template_file import place as template_path
from importer.errors import DocumentError, ImporterError, ServiceError
from importer.service import messages
from importer.service.domain.gallery import Change, Checkout, StoredFiles
from importer.service.domain.grants import Caller, admit_edit
from importer.service.settings import Settings
from importer.storage import documents, findings, jobs, processes
from importer.storage.actors import SCHEDULER
from importer.storage.database import Database, driver_message
from importer.storage.document_rows import Summary
from importer.storage.documents import Filters
from importer.storage.findings import Finding, Proposal
from importer.storage.jobs import Job

SCHEDULE = "recheck"  # the name of its schedule
SIDES: tuple[Take, ...] = ("mine", "theirs")
ANY = "any"  # the side of a proposal without conflicts


def ask(connection: Connection, names: Sequence[str], request: Mapping[str, object], by: str) -> Job:
    """Queue a recheck of documents; what it compares is chosen now."""
    job = jobs.create(connection, "recheck", {**request, "documents": len(names)}, by)
    findings.select_names(connection, job.id, names)
    return job


def summary_of(finding: RecheckFinding) -> dict[str, object]:
    """Return the finding as JSON, with refusals in the words of the service."""
    return finding.to_json(worded)


def worded(error: ImporterError) -> dict[str, object]:
    """Return a failure's kind, message and next step."""
    return {"kind": error.kind, "message": messages.detail(error), "hint": messages.hint(error)}


def fingerprint(summary: Mapping[str, Any]) -> str:
    """Return the hash of a change, apart from what a person edited: rejected, it is not shown again."""
    keys = ("path", "key", "before", "after")
    change = {
        "causes": summary["causes"],
        "refused": summary["refused"],
        **{
            part: [{key: one[key] for key in keys if key in one} for one in summary[part]]
            for part in ("decisions", "document")
        },
    }
    return hashlib.sha256(canonical(change).encode()).hexdigest()


def propose(plan: Plan, folder: Checkout, conflicts: bool) -> dict[str, Proposal]:
    """Return the files that an import would write, and their changes, by the side that settles conflicts.

    Raises DocumentError where the plan cannot be written.
    """
    sides: Sequence[Take | None] = SIDES if conflicts else (None,)
    return {side or ANY: _proposed(plan, folder, side) for side in sides}


def _proposed(plan: Plan, folder: Checkout, take: Take | None) -> Proposal:
    """Write the plan into a folder of its own, with the document as it was compared."""
    present = folder.fetched[plan.name]
    with tempfile.TemporaryDirectory(prefix="importer-recheck-") as place:
        trial = Checkout(Path(place), fetch=lambda name: present if name == plan.name else StoredFiles())
        before = trial.load(plan.name)
        write(merge_plan(plan, trial, take), trial)
        after, files = trial.load(plan.name), trial.now(plan.name)
        return {
            "text": files.text or "", "receipt": files.receipt or "", "template": files.template,
            "digest": after.digest,
            "changes": [change_json(change) for change in differences(before.data, after.data)],
        }  # fmt: skip


def need(connection: Connection, ident: str) -> Finding:
    """Return a finding; raises ServiceError("no-such-finding")."""
    found = findings.get(connection, ident)
    if found is None:
        raise ServiceError("no-such-finding", finding=ident)
    return found


def accept(
    change: Change, ident: str, take: Take | None, who: Caller, settings: Settings
) -> tuple[Summary, Finding]:
    """Write a finding's proposal into the working copy, exactly as it was shown.

    Raises DocumentError: "no-such-document", "conflict" where a side has to be chosen, "cannot-edit" where an
    import is refused; ServiceError: "no-such-finding", "finding-settled", "finding-outdated",
    "needs-approver".
    """
    connection = change.connection
    found = need(connection, ident)
    if found.state != "open":
        raise ServiceError("finding-settled", finding=ident, state=found.state)
    stored = change.checkout.load(found.name)
    version = change.checkout.fetched[found.name].number
    if version != found.version:
        raise ServiceError("finding-outdated", name=found.name, compared=found.version, version=version)
    proposal = _chosen(found, findings.proposals(connection, ident), take, stored.path)
    path = change.checkout.path(found.name)
    texts = {path: proposal["text"], receipt_path(path): proposal["receipt"]}
    template = template_path(path)
    if proposal["template"] is not None:
        texts[template] = proposal["template"]
    else:
        template.unlink(missing_ok=True)
    write_all(texts)
    admit_edit(stored.data, change.checkout.load(found.name).data, who, settings)
    row = change.save(found.name)
    findings.decide(connection, ident, "accepted", change.context.who, change.context.why)
    return row, need(connection, ident)


def _chosen(found: Finding, proposals: Mapping[str, Proposal], take: Take | None, path: Path) -> Proposal:
    conflicts = found.summary["conflicts"]
    proposal = proposals.get(take or ANY) or proposals.get(ANY)
    if proposal is not None:
        return proposal
    if conflicts and proposals:
        first = json.dumps(conflicts[0]["path"])
        raise DocumentError("conflict", path=path, count=len(conflicts), first=first, conflicts=conflicts)
    refused = found.summary["refused"] or {}
    raise DocumentError("cannot-edit", path=path, problem=refused.get("message", "an import is refused"))


def reject(connection: Connection, ident: str, by: str, why: str | None) -> Finding:
    """Reject a finding: it is not shown again until something else changes.

    Raises ServiceError: "no-such-finding", "finding-settled".
    """
    found = need(connection, ident)
    if not findings.decide(connection, ident, "rejected", by, why):
        raise ServiceError("finding-settled", finding=ident, state=found.state)
    return need(connection, ident)


LOG = logging.getLogger(__name__)
LOOK = 10.0  # seconds between two looks at the schedule
HOUR = 3600


class Duties:
    """The schedule, as one thread of a process; a look that was cut off is made by another process.

    ``hurry``  starts jobs at once.
    """

    def __init__(self, database: Database, settings: Settings, hurry: Callable[[], object]) -> None:
        self._database, self._hurry = database, hurry
        self._every = settings.recheck_every * HOUR
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duties", daemon=True)

    def __enter__(self) -> Duties:
        if self._every:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._every:
            self._thread.join(1.0)

    def _run(self) -> None:
        while True:
            try:
                if begin_due(self._database, self._every):
                    self._hurry()
            except OperationalError as error:  # the next look tries again
                LOG.warning("the database does not answer: %s", driver_message(error))
            except Exception:
                if not self._ending.is_set():
                    LOG.exception("the schedule")
            if self._ending.wait(LOOK):
                return


def begin_due(database: Database, every: int) -> bool:
    """Begin the recheck of all documents if it is due; true in one of all processes that look.

    A recheck of the schedule that has not ended is not begun twice. ``every`` is in seconds.
    """
    with database.reading() as connection:
        if not processes.due(connection, SCHEDULE, every):
            return False
    with database.writing() as connection:
        database.alone(connection)
        if not processes.take(connection, SCHEDULE, every):
            return False
        last = processes.last(connection, SCHEDULE)
        names = documents.names(connection, Filters())
        if not names or (last is not None and last["job"] and _is_open(connection, str(last["job"]))):
            return False
        job = ask(connection, names, {}, SCHEDULER)
        processes.began(connection, SCHEDULE, job.id)
    return True


def _is_open(connection: Connection, ident: str) -> bool:
    try:
        return jobs.get(connection, ident).state in jobs.OPEN
    except ServiceError:  # a retention has deleted it
        return False
