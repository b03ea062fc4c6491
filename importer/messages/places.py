"""Sentences about what a document or a request lets this machine do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "GrantReason": {
        "code": "Running code that comes with a model ({subject})",
        "folder": "Reading the folder {subject}",
        "hosts": "Starting processes on the hosts in {subject}",
    },
}
