"""What a reviewer is shown of a document beside its decisions: effective values, and losses of its entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from importer.config_file.diff import KeyPath, same
from importer.config_file.effective import Editor, effective, value_at
from importer.config_file.store import StoredDocument
from importer.engines.sampling_defaults import sampling_defaults
from importer.exports.base import loss_json
from importer.exports.localai import losses
from importer.service.domain.gallery import Gallery
from importer.storage import documents, releases


def losses_of(stored: StoredDocument) -> list[dict[str, str]] | None:
    """Return what LocalAI would drop, change, add or not pin; ``None`` where there is no entry."""
    found = losses(stored.data, stored.receipt)
    return None if found is None else [loss_json(loss) for loss in found]


def values_of(gallery: Gallery, stored: StoredDocument) -> list[dict[str, Any]]:
    """Return each key as it is now, in the import, and in the release that is served, with its editor."""
    with gallery.database.reading() as connection:
        served = releases.served(connection, stored.name)
        history = _History(lambda: documents.makers(connection, stored.name))
        data = None if served is None else json.loads(served.data)
        return [
            value.to_json()
            for value in effective(stored, data, history.editor, sampling_defaults(stored.data))
        ]


class _History:
    """Who made which version of a document; read once, and only where a value was edited."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._makers: list[tuple[Mapping[str, Any], Editor]] | None = None

    def editor(self, path: KeyPath) -> Editor | None:
        """Return who made the oldest of the newest versions with one value at a path."""
        if self._makers is None:
            self._makers = [(json.loads(data), Editor(by, at)) for data, by, at in self._read()]
        found = None
        for data, maker in self._makers:
            if not _same(value_at(data, path), value_at(self._makers[0][0], path)):
                return found
            found = maker
        return found


def _same(one: Any, other: Any) -> bool:
    return one is other or same(one, other)
