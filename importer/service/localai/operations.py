"""An import job as LocalAI tells of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.gallery.jobs import Job

# Phase and progress at which a step begins; LocalAI's own downloads reach 90 and its commit 99.
STEPS: Mapping[str | None, tuple[str, float]] = {
    None: ("queued", 0.0), "resolve": ("resolving", 10.0), "decide": ("resolving", 40.0),
    "prove": ("verifying", 90.0), "store": ("committing", 99.0),
}  # fmt: skip


def status(job: Job) -> dict[str, Any]:
    """Its OpStatus; a success is processed, at 100, with the message "completed"."""
    name = job.config or job.request.get("name") or str(job.request.get("reference", ""))
    told: dict[str, Any] = {
        "deletion": False, "file_name": "", "processed": False, "message": "", "progress": 0.0,
        "file_size": "", "downloaded_size": "", "gallery_element_name": name,
        "cancelled": False, "cancellable": False,
    }  # fmt: skip
    return told | _state(job, name)


def _state(job: Job, name: str) -> dict[str, Any]:
    if job.state == "succeeded":
        return {"processed": True, "progress": 100.0, "message": "completed"}
    if job.state == "cancelled":
        return {"processed": True, "cancelled": True, "message": "cancelled"}
    if job.state == "failed":
        error = str((job.error or {}).get("detail", "it failed"))
        says = {"error": error, "message": f"error: {error}", "gallery_element_name": ""}
        return {"processed": True, **says}
    phase, progress = STEPS.get(job.step, STEPS[None])
    message = "queued" if phase == "queued" else job.says or f"processing model: {name}"
    return {"message": message, "phase": phase, "progress": progress, "cancellable": True}
