"""What stands behind a URI, looked at before a job is made of it: LocalAI answers with that, not later."""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import Any

from pydantic import ValidationError

from importer.deciding import conclude, study_snapshot
from importer.document.naming import Names
from importer.errors import ImporterError, ServiceError
from importer.hub import parse, resolve
from importer.service.asked import Import, request_of
from importer.service.desk import Desk
from importer.service.jobs.importing import need_choice
from importer.service.localai.shapes import ImportUri

FILE = "file://"
COUNT = {"backend": "backend", "name": "name"}  # preferences that a request of ours has, too
UNITS = "KMGTPE"
_turns: dict[int, BoundedSemaphore] = {}


def asked(body: ImportUri) -> Import:
    """The same in our own words; raises ServiceError("bad-request")."""
    preferences = body.preferences or {}
    said = {ours: preferences[key] for key, ours in COUNT.items() if preferences.get(key) not in (None, "")}
    if preferences.get("description"):
        said["set"] = {"description": preferences["description"]}
    try:
        return Import(reference=body.uri.strip().removeprefix(FILE), **said)
    except ValidationError as error:
        found = error.errors()[0]
        problem = f"{'.'.join(map(str, found['loc'])) or 'it'}: {found['msg']}"
        raise ServiceError("bad-request", problem=problem) from None


def discover(said: Import, at: Desk) -> dict[str, Any]:
    """Estimates, where there are any; raises ImporterError for what cannot be imported."""
    request = request_of(said, at.settings)
    with _turns.setdefault(id(at.crew), BoundedSemaphore(at.settings.previews)):
        snapshot = resolve(parse(request.reference, request.revision))
        with at.gallery.checkout() as folder:
            request = request.after(Names(folder).known(snapshot, request.name))
            studied = study_snapshot(snapshot, request, at.crew.bench)
        need_choice(studied, at.settings)
        try:
            found = conclude(studied, None).fit
        except ImporterError:  # the job will tell it, with all that it knows then
            return {}
    memory = 0
    if found.placed is not None and found.fit is not None:
        memory = found.fit.total.likely * found.placed.split.cards
    weights = 0 if found.weights is None else found.weights.amount.likely
    return _told("vram", memory) | _told("size", weights)


def _told(what: str, size: int) -> dict[str, Any]:
    return {f"estimated_{what}_bytes": size, f"estimated_{what}_display": shown(size)} if size > 0 else {}


def shown(size: int) -> str:
    """Bytes as LocalAI shows them, by thousands: ``16.4 GB``."""
    if size < 1000:
        return f"{size} B"
    value, unit = float(size), -1
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {UNITS[unit]}B"
