"""Sentences about places to run, and runs that failed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "PlaceReason": {
        "no-scheme": "it has no scheme; schemes are {schemes}",
        "unknown-scheme": "{scheme!r} is no scheme; schemes are {schemes}",
        "bad-address": "its address is not one of {scheme}, such as {example}",
        "unknown-option": "{scheme} has no option {name!r}; near names: {near}",
        "bad-option": "{value!r} is no value of the option {name}",
        "twice": "the option {name} stands twice",
        "unprintable": "it is too long, or has characters that cannot be printed",
        "no-image": "its pod needs an image with the engine and the importer, as in {example}",
        "no-launcher": "this importer has no launcher for it",
    },
    "AnswerReason": {
        "nothing": "it is empty",
        "too-large": "it has more than {megabytes} MiB",
    },
    "FailureKind": {
        "environment": "since its environment could not be made ready",
        "command": "since the importer there ended without a result",
        "memory": "since it took more memory than it had",
        "time": "since it took more time than it had",
        "unschedulable": "since the cluster has no place for it",
        "other": "for a reason of the cluster",
    },
}
