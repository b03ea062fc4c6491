"""A failure as jobs and lists keep it: its kind, its text, and the fields of a request that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from importer.document.merge import Conflict
from importer.errors import ImporterError, one_line
from importer.service import messages
from importer.storage.jobs import Failure

# The field of a request that a kind is about, where the kind itself knows.
FIELDS: Mapping[str, str] = {
    "bad-reference": "/reference", "traversal": "/reference", "no-directories": "/reference",
    "revision-conflict": "/revision", "unknown-device": "/device",
    "unknown-parser": "/set", "unknown-engine": "/engine", "ambiguous": "/backend",
    "digest-required": "/digest", "changed": "/digest",
    "other-backend": "/name", "other-device": "/name",
}  # fmt: skip


def failure(error: ImporterError, errors: Sequence[Mapping[str, object]] = ()) -> Failure:
    """Return a failure as JSON; ``errors`` are single mistakes with the field each is about."""
    members: Failure = {
        "kind": error.kind, "detail": messages.detail(error), "hint": messages.hint(error),
    }  # fmt: skip
    named = [dict(e) for e in errors or _listed(error) or _named(error)]
    if named:
        members["errors"] = named
    conflicts = error.details.get("conflicts")
    if isinstance(conflicts, list):
        members["conflicts"] = [c.to_json() if isinstance(c, Conflict) else c for c in conflicts]
    candidates = error.details.get("candidates")
    if isinstance(candidates, list):
        members["candidates"] = candidates
    return members


def _listed(error: ImporterError) -> Sequence[Mapping[str, object]]:
    errors = error.details.get("errors")
    return errors if isinstance(errors, list) else ()


def about(error: ImporterError) -> str:
    """Return the problem with the field that a failure is about."""
    problem = error.details.get("problem")
    return messages.detail(error) if problem is None else one_line(messages.text(problem))


def _named(error: ImporterError) -> list[dict[str, str]]:
    """Return the field that a failure is about, by its kind or by the setting that it names."""
    named = messages.field(error)
    pointer = FIELDS.get(error.kind) if named is None else f"/{named}"
    return [] if pointer is None else [{"pointer": pointer, "detail": about(error)}]
