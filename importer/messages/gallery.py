"""Sentences about the gallery: its database, its keys, and why a document is not published."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "DatabaseReason": {"form": "it has the form sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"},
    "StandingReason": {
        "no-receipt": "it has no receipt",
        "rejected": "rejected by {by}, {at}: {note}",
        "not-approved": "nobody has approved it as it is now",
        "edited": "it was edited since it was approved by {by}, {at}",
        "outdated": "its validation does not hold: {why}",
        "never-validated": "it was never validated",
        "failed": "{why}",
        "no-entry": "{problem}",
        "not-for-localai": "LocalAI cannot be given it: {problem}",
    },
    "KeyNameReason": {"line": "it is a line of at most {most} characters"},
}
