"""The input of a run at the far end: document, template, the facts of its receipt, and options. No secret."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from importer.config_file import template_file
from importer.config_file.receipt import Receipt
from importer.config_file.store import StoredDocument, load, receipt_path, write_all
from importer.errors import LauncherError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Bundle:
    """A document to validate elsewhere. ``receipt`` is its receipt without the exchanges of its runs.

    ``task``  the id of the run. ``probes``  only these, and the report is partial.
    """

    task: str
    name: str
    digest: str
    engine: str
    text: str
    receipt: str | None
    template: str | None
    fetch: bool = True
    score: int = 0
    time_limit: float | None = None
    probes: Sequence[str] | None = None

    @classmethod
    def of(cls, task: str, stored: StoredDocument, engine: str, **options: Any) -> Bundle:
        """Return the bundle of a document; raises LauncherError("folder-beside") and DocumentError.

        A model in a folder beside the document would be another folder at the far end.
        """
        model = str((stored.data.get("parameters") or {}).get("model", ""))
        if Path(stored.reference).is_absolute() and not Path(model).is_absolute():
            raise LauncherError("folder-beside", name=stored.name, model=model)
        template = stored.chat_template()
        receipt = None if stored.receipt is None else _light(stored.receipt).to_text()
        text = None if template is None else template.text
        return cls(task, stored.name, stored.digest, engine, stored.text, receipt, text, **options)

    def to_bytes(self) -> bytes:
        """Return the JSON in UTF-8."""
        data = {"schema": SCHEMA} | {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(data, ensure_ascii=False).encode()

    def unpack(self, folder: Path) -> StoredDocument:
        """Write the files into an empty folder and return the document.

        Raises LauncherError("bad-bundle") where its digest is not that of the bundle, and DocumentError.
        """
        path = folder / f"{Path(self.name).name}.yaml"
        contents = {path: self.text}
        if self.receipt is not None:
            contents[receipt_path(path)] = self.receipt
        if self.template is not None:
            contents[template_file.place(path)] = self.template
        write_all(contents)
        stored = load(path)
        if stored.digest != self.digest:
            raise LauncherError("bad-bundle", problem=f"{stored.digest} ≠ {self.digest}")
        return stored


def read(data: bytes) -> Bundle:
    """Return the bundle of its bytes; raises LauncherError("bad-bundle")."""
    try:
        fields = json.loads(data)
        if fields.pop("schema") != SCHEMA:
            raise LauncherError("bad-bundle", problem="schema")
        return Bundle(**fields)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise LauncherError("bad-bundle", problem=type(error).__name__) from None


def _light(receipt: Receipt) -> Receipt:
    """Return the receipt without what is large and not needed for a run."""
    runs = [_without_exchanges(run) for run in receipt.runs]
    own = runs[0] if receipt.validation is not None else None
    earlier = runs[1:] if receipt.validation is not None else runs
    return replace(receipt, validation=own, earlier=earlier, partial=None, score=None)


def _without_exchanges(run: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**run, "outcomes": []}
