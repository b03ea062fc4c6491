"""Sentences about another version of an engine: why it cannot be compared with, and what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "UpgradeFault": {
        "form": "{text!r} has not the form ENGINE@VERSION, such as vllm@0.33.0",
        "no-engine": "there is no engine {engine}; there are {known}",
        "no-version": "no tables of {engine} {version} are known, only of {known}; docs/adding.md shows how "
        "a version is added",
    },
    "UpgradeNote": {
        "engine-decides": "no value is fixed any more: the engine decides at its start, perhaps as before",
    },
}
