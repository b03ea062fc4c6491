"""What a contestant gets of a model, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gen_defaults.truth import folder_of, of_hub
from importer.chat_template import find
from importer.chat_template.vocabulary import read_vocabulary
from importer.errors import ImporterError
from importer.hub.snapshot import Snapshot

MARKER = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z_]{2,40}\]")


@dataclass(frozen=True)
class Model:
    """A model's id, and the folder of all models' small files; ``None`` for its name alone."""

    model_id: str
    repositories: Path | None = None

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The files as a snapshot; ``None`` where there are none that can be read."""
        folder = self.repositories and self.repositories / folder_of(self.model_id)
        try:
            return of_hub(self.model_id, folder) if folder and folder.is_dir() else None
        except ImporterError:
            return None

    @cached_property
    def template(self) -> str | None:
        """The text of the chat template that vLLM takes."""
        try:
            template = find.find(self.snapshot) if self.snapshot else None
        except ImporterError:
            return None
        return template.text if template else None

    @cached_property
    def tokens(self) -> Sequence[str]:
        """The tokens that the small files declare; where they list none, the markers in the template."""
        declared = read_vocabulary(self.snapshot) if self.snapshot else None
        markers = () if declared and declared.declared else MARKER.findall(self.template or "")
        return [*{*markers, *(token.content for token in (declared.tokens if declared else ()))}]


Answer = Mapping[str, Any]  # tool_parser, reasoning_parser: a name, None for "has none", absent for "unknown"


@dataclass(frozen=True)
class Entry:
    """``version`` of what was asked, its ``answers`` by model id, and whose names of parsers these are."""

    version: str
    answers: Mapping[str, Answer]
    engine: str = "vllm"
    notes: Sequence[str] = field(default=())
