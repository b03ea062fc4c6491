"""Names given in a folder and in this run: never one for two models."""

from __future__ import annotations

from importer.document.names import choose
from importer.document.store import Store, Stored
from importer.errors import DocumentError
from importer.hub.snapshot import Snapshot


class Names:
    """Gives names; one that was given stays given, written or not. Not for several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._given: dict[str, str] = {}

    def give(self, snapshot: Snapshot) -> str:
        """The model's name: the one it has in the folder, else one that is free."""
        model = snapshot.model_id or str(snapshot.directory)
        folder = snapshot.directory.resolve().name if snapshot.directory else "model"
        name = choose(snapshot.model_id, folder, lambda name: self._taken(name, model))
        self.keep(name, model)
        return name

    def known(self, snapshot: Snapshot, name: str | None = None) -> Stored | None:
        """The model's document in the folder, under ``name`` or its own; gives no name. For any thread."""
        model = snapshot.model_id or str(snapshot.directory)
        folder = snapshot.directory.resolve().name if snapshot.directory else "model"
        name = name or choose(snapshot.model_id, folder, lambda name: self._foreign(name, model))
        return None if self._foreign(name, model) else self._store.find(name)

    def keep(self, name: str, model: str) -> None:
        """Remember that ``name`` is ``model``'s."""
        self._given[name] = model

    def _taken(self, name: str, model: str) -> bool:
        return self._given[name] != model if name in self._given else self._foreign(name, model)

    def _foreign(self, name: str, model: str) -> bool:
        """Whether a file of that name is not the model's."""
        try:
            stored = self._store.find(name)
        except DocumentError:  # somebody's broken file
            return True
        return stored is not None and stored.model != model
