"""Imports by URI: the request, the estimates and the states that LocalAI's clients read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import ValidationError

from importer.app.decide import Studied, finalize
from importer.config_file import name_allocator
from importer.errors import ImporterError, ServiceError
from importer.service import messages
from importer.service.domain.import_request import Import
from importer.service.localai.models import ImportUri
from importer.storage.jobs import Job

FILE = "file://"
COUNT = {"backend": "backend", "name": "name"}  # LocalAI's preferences, and the fields of an import request
UNITS = "KMGTPE"


def import_request(body: ImportUri) -> Import:
    """Return the import request of a URI; raises ServiceError("bad-request")."""
    preferences = body.preferences or {}
    fields = {
        field: preferences[key] for key, field in COUNT.items() if preferences.get(key) not in (None, "")
    }
    if isinstance(fields.get("name"), str):
        fields["name"] = fitting(str(fields["name"]))
    if preferences.get("description"):
        fields["set"] = {"description": preferences["description"]}
    try:
        return Import.model_validate({"reference": body.uri.strip().removeprefix(FILE), **fields})
    except ValidationError as error:
        mistake = error.errors()[0]
        problem = f"{'.'.join(map(str, mistake['loc'])) or 'it'}: {messages.mistake(mistake)}"
        raise ServiceError("bad-request", problem=problem) from None


def fitting(name: str) -> str:
    """Return a name as documents have them: LocalAI allows capitals and spaces (``Qwen3-8B``).

    A name without any of a-z and 0-9, or with control characters, stays and is refused as such.
    """
    usable = name.isprintable() and re.search(r"[a-z0-9]", name.lower())
    return name_allocator.slug(name) if usable and not name_allocator.ALLOWED.fullmatch(name) else name


def estimates(studied: Studied) -> dict[str, object]:
    """Return memory and size in LocalAI's members; empty where they are unknown."""
    try:
        sizing = finalize(studied, None).fit
    except ImporterError:  # the job fails with the same error and all its details
        return {}
    memory = 0
    if sizing.fit is not None:
        memory = sizing.fit.total.likely * (1 if sizing.placed is None else sizing.placed.split.cards)
    weights = 0 if sizing.weights is None else sizing.weights.amount.likely
    return _size_members("vram", memory) | _size_members("size", weights)


def _size_members(what: str, size: int) -> dict[str, object]:
    return {f"estimated_{what}_bytes": size, f"estimated_{what}_display": shown(size)} if size > 0 else {}


def shown(size: int) -> str:
    """Return bytes in LocalAI's form, by thousands: ``16.4 GB``."""
    if size < 1000:
        return f"{size} B"
    value, unit = float(size), -1
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {UNITS[unit]}B"


# Phase and progress at which a step begins; LocalAI's own downloads reach 90 and its commit 99.
STEPS: Mapping[str | None, tuple[str, float]] = {
    None: ("queued", 0.0), "resolve": ("resolving", 10.0), "decide": ("resolving", 40.0),
    "prove": ("verifying", 90.0), "store": ("committing", 99.0),
}  # fmt: skip


def status(job: Job) -> dict[str, object]:
    """Return a job as OpStatus; a success is processed, at 100, with the message "completed"."""
    name = job.config or job.request.get("name") or str(job.request.get("reference", ""))
    idle: dict[str, object] = {
        "deletion": False, "file_name": "", "processed": False, "message": "", "progress": 0.0,
        "file_size": "", "downloaded_size": "", "gallery_element_name": name,
        "cancelled": False, "cancellable": False,
    }  # fmt: skip
    return idle | _state(job, name)


def _state(job: Job, name: str) -> dict[str, object]:
    if job.state == "succeeded":
        return {"processed": True, "progress": 100.0, "message": "completed"}
    if job.state == "cancelled":
        return {"processed": True, "cancelled": True, "message": "cancelled"}
    if job.state in ("failed", "waiting"):
        error = "it failed" if job.error is None else job.error["detail"]
        failure = {"error": error, "message": f"error: {error}", "gallery_element_name": ""}
        return {"processed": True, **failure}
    phase, progress = STEPS.get(job.step, STEPS[None])
    message = "queued" if phase == "queued" else job.says or f"processing model: {name}"
    return {"message": message, "phase": phase, "progress": progress, "cancellable": True}


# The maps among the fields of LocalAI's ModelConfig (82c191a): an edit sends a whole map.
MAPS = frozenset(
    (
        "chat_template_kwargs", "engine_args", "feature_flags", "parameters.logit_bias",
        "pii_detection.entity_actions", "roles",
    )
)  # fmt: skip


def merge(data: Mapping[str, object], patch: Mapping[str, object], place: str = "") -> dict[str, object]:
    """Return data with a patch: scalars and lists replace, maps of known keys are merged.

    An empty map of free keys removes the key.
    """
    result = dict(data)
    for key, value in patch.items():
        path, old = f"{place}{key}", result.get(key)
        if path in MAPS and value == {}:
            result.pop(key, None)
        elif path not in MAPS and isinstance(value, Mapping) and isinstance(old, Mapping):
            result[key] = merge(old, value, f"{path}.")
        else:
            result[key] = value
    return result
