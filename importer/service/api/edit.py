"""An edit of a document: one more version with another text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from importer.app.decide import Studied, study_snapshot
from importer.config_file.grants import grants
from importer.config_file.name_allocator import Names
from importer.config_file.store import write_all
from importer.errors import ServiceError
from importer.hub import parse, resolve
from importer.service.api.dependencies import Desk
from importer.service.api.request_models import Import, checked
from importer.service.gallery import DocumentVersion, check_version
from importer.service.jobs.import_steps import need_choice
from importer.service.security.grants import Caller, admitted, need_approver
from importer.storage.audit import AuditContext
from importer.storage.documents import Summary

Edit = Callable[[str], str]
TRIES = 20  # of an edit that any version will do for, while others are quicker


def edit(
    name: str, at: Desk, who: Caller, act: AuditContext, expected: list[int] | None, text: Edit
) -> tuple[Summary, DocumentVersion]:
    """Return what the document is then; the schema has to allow it, and ``who`` has to be allowed what it
    grants.

    ``wanted`` are the versions that it may be of; of any it is made anew where somebody was quicker. Raises
    DocumentError and ServiceError: "precondition-failed", "needs-approver".
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
    """Return a text takes its time to be read: nobody waits for that, and an edit of an old version is
    refused.
    """
    last = at.gallery.get(name)[1]
    check_version(name, last.number, expected)
    new = text(last.text)
    need_approver(who, grants(checked(new, name)), grants(last.stored.data))
    with at.gallery.change(act) as change:
        change.expect(name, [last.number])
        write_all({change.checkout.path(name): new})
        summary = change.save(name)
    return summary, at.gallery.version(name, summary.version)


PATIENCE = 1.0  # seconds that a look waits for its turn
SOON = 5  # seconds


@contextmanager
def turn(at: Desk) -> Iterator[None]:
    """Return one of the looks that there may be at a time; raises ServiceError("busy")."""
    if not at.looks.acquire(timeout=PATIENCE):  # whoever waits holds a thread that others need
        raise ServiceError("busy", seconds=SOON)
    try:
        yield
    finally:
        at.looks.release()


def look(body: Import, at: Desk, who: Caller) -> Studied:
    """Return what a repository says, on top of what was said of it before.

    Raises ImporterError for what cannot be imported, ServiceError: "ambiguous" for what has to be asked,
    "needs-approver" for what the caller may not grant.
    """
    request = admitted(body, who, at.settings)
    snapshot = resolve(parse(request.reference, request.revision), at.settings.places)
    with at.gallery.checkout() as folder:
        request = request.after(Names(folder).known(snapshot, request.name))
    studied = study_snapshot(snapshot, request, at.runner.bench)
    need_choice(studied, at.settings)
    return studied
