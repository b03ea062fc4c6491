"""Sentences about rechecks: why a decision is another one now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from importer.messages.evidence import FIELDS

if TYPE_CHECKING:
    from importer.messages import Text


TEXTS: dict[str, dict[str, Text]] = {
    "RecheckReason": {
        "backend": "it is decided for {backend} now",
        "no-such-parser": lambda told: (
            f"{told['engine']} has no {FIELDS[told['field']]} named {told['parser']}"
        ),
        "new-parser": lambda told: (
            f"{told['engine']} has the {FIELDS[told['field']]} {told['parser']}, "
            f"which {told['before']} has not"
        ),
        "not-proved": "not proved now",
        "not-read": "{engine} does not read the template with {parser}: {problem}",
        "read-otherwise": "{says}",
        "new": "new: {says}",
        "changed": "{source} now says {now}; it said {then}",
        "gone": "no longer: {says}",
        "other-importer": "importer {now} weighs the same evidence otherwise than {then} did",
        "weighed-otherwise": "the same evidence is weighed otherwise now",
    },
}
