"""What the gallery gives out: a document in a list, and one of its versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.config_file.receipt import parse as parse_receipt
from importer.config_file.store import StoredDocument
from importer.config_file.template_file import ChatTemplate, ChatTemplateReason, meant, named, place
from importer.errors import DocumentError
from importer.reasons import Reason


@dataclass(frozen=True, slots=True)
class Summary:
    """A document in a list; ``reason`` says why it is not published."""

    name: str
    version: int
    digest: str
    model: str | None
    revision: str | None
    backend: str | None
    family: str | None
    kind: str | None
    state: str
    review: str
    validation: str
    reason: str | None
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Version:
    """One version's files, the text's ``data`` as JSON, and who made it when, by which action and why."""

    name: str
    number: int
    action: str
    text: str
    data: str
    receipt: str | None
    template: str | None
    digest: str
    state: str
    by: str
    at: str
    why: str | None

    @property
    def stored(self) -> StoredDocument:
        """The document as other rooms know it; its path is a name, and nothing lies there."""
        path = Path(f"{self.name}.yaml")
        data = json.loads(self.data)
        receipt = None if self.receipt is None else parse_receipt(json.loads(self.receipt))
        return StoredDocument(path, self.text, data, self.digest, receipt)

    def chat_template(self, data: Mapping[str, Any]) -> ChatTemplate | None:
        """The template that its data name; raises DocumentError("chat-template") where it is another."""
        if not named(data):
            return None
        path = Path(f"{self.name}.yaml")
        if meant(data, self.template) is None or self.template is None:
            raise DocumentError(
                "chat-template", path=path, problem=Reason(ChatTemplateReason.CHANGED, file=place(path).name)
            )
        return ChatTemplate(place(path), self.template)
