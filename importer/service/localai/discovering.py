"""An import by its URI in our own words, and what a look at it tells LocalAI at once."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from importer.deciding import Studied, conclude
from importer.errors import ImporterError, ServiceError
from importer.service import messages
from importer.service.asked import Import
from importer.service.localai.shapes import ImportUri

FILE = "file://"
COUNT = {"backend": "backend", "name": "name"}  # preferences that a request of ours has, too
UNITS = "KMGTPE"


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
        problem = f"{'.'.join(map(str, found['loc'])) or 'it'}: {messages.mistake(found)}"
        raise ServiceError("bad-request", problem=problem) from None


def estimates(studied: Studied) -> dict[str, Any]:
    """Memory and size as LocalAI tells them; nothing where neither is known."""
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
