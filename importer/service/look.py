"""A look at a repository while somebody waits for the answer: so many at a time, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from importer.deciding import Studied, study_snapshot
from importer.document.naming import Names
from importer.errors import ServiceError
from importer.hub import parse, resolve
from importer.service.asked import Import
from importer.service.caller import Caller
from importer.service.desk import Desk
from importer.service.granting import admitted
from importer.service.jobs.importing import need_choice

PATIENCE = 1.0  # seconds that a look waits for its turn
SOON = 5  # seconds


@contextmanager
def turn(at: Desk) -> Iterator[None]:
    """One of the looks that there may be at a time; raises ServiceError("busy")."""
    if not at.looks.acquire(timeout=PATIENCE):  # whoever waits holds a thread that others need
        raise ServiceError("busy", seconds=SOON)
    try:
        yield
    finally:
        at.looks.release()


def look(body: Import, at: Desk, who: Caller) -> Studied:
    """What a repository says, on top of what was said of it before.

    Raises ImporterError for what cannot be imported, ServiceError: "ambiguous" for what has to be asked,
    "needs-approver" for what the caller may not grant.
    """
    request = admitted(body, who, at.settings)
    snapshot = resolve(parse(request.reference, request.revision), at.settings.places)
    with at.gallery.checkout() as folder:
        request = request.after(Names(folder).known(snapshot, request.name))
    studied = study_snapshot(snapshot, request, at.crew.bench)
    need_choice(studied, at.settings)
    return studied
