"""Sentences about limits of the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "AnalysisReason": {
        "nothing": "it has no config, no tokenizer settings, no chat template and no weights",
    },
    "SandboxReason": {
        "time": "it takes more than {seconds:g} s of processor time",
        "memory": "it needs more than {size:,} MiB of memory",
        "output": "what is made of it is larger than {size:,} MiB",
        "depth": "it is nested too deep",
    },
}
