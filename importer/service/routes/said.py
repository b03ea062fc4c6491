"""What the routes say of themselves to OpenAPI: which problems each may answer with."""

from __future__ import annotations

from typing import Any

from importer.service import messages
from importer.service.problems import MEDIA_TYPE, explained

ALWAYS = (
    "no-key",
    "wrong-scope",
    "foreign-page",
    "foreign-host",
    "bad-request",
    "bad-json",
    "too-many",
    "body-too-large",
)


def accepted(failing: str = "") -> dict[int | str, dict[str, Any]]:
    """A job's 202; ``failing`` is a way in which it may end that whoever asked has to know."""
    says = "It was accepted as a job" + (f", which fails {failing}" if failing else "")
    header = {"description": "where the job is", "schema": {"type": "string"}}
    return {202: {"description": says, "headers": {"Location": header}}}


def problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that may fail with these kinds, an example for each."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*kinds, *ALWAYS):
        said = explained(kind) or {}
        media = found.setdefault(
            said["status"], {"description": "", "content": {MEDIA_TYPE: {"examples": {}}}}
        )
        media["description"] = ", ".join(filter(None, (media["description"], said["title"])))
        media["content"][MEDIA_TYPE]["examples"][kind] = {"value": _example(kind, said)}
    return found


def _example(kind: str, said: dict[str, Any]) -> dict[str, Any]:
    sentence = messages.detail_row(kind)
    told = {"type": f"/problems/{kind}", "title": said["title"], "status": said["status"], "kind": kind}
    return {**told, "detail": sentence, "hint": said["hint"]}
