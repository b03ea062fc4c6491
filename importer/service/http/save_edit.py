"""An edit of a document as one more version, and the analysis of a model for a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from importer.app.decide import Studied, study_snapshot
from importer.app.parser_choice import check_edited
from importer.config import now
from importer.config_file.edit_comments import renewed
from importer.config_file.effective import Editor
from importer.config_file.name_allocator import Names
from importer.config_file.store import StoredDocument, write_all
from importer.errors import ServiceError
from importer.hub import parse, resolve
from importer.service.desk import Desk
from importer.service.domain.document_text import checked
from importer.service.domain.edits import admit_edit
from importer.service.domain.gallery import DocumentVersion, check_version
from importer.service.domain.grants import Caller, admitted
from importer.service.domain.import_request import Import
from importer.service.jobs.import_steps import need_choice
from importer.storage.audit import AuditContext
from importer.storage.documents import Summary

# Returns the new text of a document, by the present one.
Edit = Callable[[StoredDocument], str]
TRIES = 20  # of an edit that any version will do for, while others are quicker


def edit(
    name: str, at: Desk, who: Caller, act: AuditContext, expected: list[int] | None, text: Edit
) -> tuple[Summary, DocumentVersion]:
    """Write another text of a document; return its row and its new version.

    The text must match the schema, its references must be those of an import, and ``who`` must have the scope
    for every grant. ``expected`` are the
    versions that the edit may be of; ``None`` allows any, and the edit is made again where another one came
    first. Raises DocumentError and ServiceError: "precondition-failed", "needs-approver".
    """
    left = TRIES if expected is None else 1
    while True:
        left -= 1
        try:
            return _edit(name, at, who, act, expected, text)
        except ServiceError as error:
            if not left or error.kind != "precondition-failed":
                raise


def _edit(
    name: str, at: Desk, who: Caller, act: AuditContext, expected: list[int] | None, text: Edit
) -> tuple[Summary, DocumentVersion]:
    """Check the text before the transaction, which it would hold up; raise for an edit of an old version."""
    last = at.gallery.get(name)[1]
    check_version(name, last.number, expected)
    new = text(last.stored)
    data = checked(new, name, last.stored.facts)
    check_edited(last.stored.data, data)
    admit_edit(last.stored.data, data, who, at.settings)
    new = renewed(last.stored, new, Editor(act.who, now()))
    with at.gallery.change(act) as change:
        change.expect(name, [last.number])
        write_all({change.checkout.path(name): new})
        summary = change.save(name)
    return summary, at.gallery.version(name, summary.version)


PATIENCE = 1.0  # seconds that a look waits for its turn
SOON = 5  # seconds


@contextmanager
def turn(at: Desk) -> Iterator[None]:
    """Hold one of the previews that may run at a time; raises ServiceError("busy")."""
    if not at.looks.acquire(timeout=PATIENCE):  # a longer wait would hold a thread that others need
        raise ServiceError("busy", seconds=SOON)
    try:
        yield
    finally:
        at.looks.release()


def look(body: Import, at: Desk, who: Caller) -> Studied:
    """Return the analysis of a repository, on top of the settings of the document's earlier imports.

    Raises ImporterError for a model that cannot be imported, ServiceError: "ambiguous" for a choice of
    backend, "needs-approver" for a grant that the caller may not make.
    """
    request = admitted(body, who, at.settings)
    snapshot = resolve(parse(request.reference, request.revision), at.settings.places)
    with at.gallery.checkout() as folder:
        request = request.after(Names(folder).known(snapshot, request.name, request.slot))
    studied = study_snapshot(snapshot, request, at.runner.bench)
    need_choice(studied, at.settings)
    return studied
