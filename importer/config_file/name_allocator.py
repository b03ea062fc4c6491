"""Allocate names of documents in a folder and in this run: never one for two models."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from importer.config_file.store import Store, StoredDocument
from importer.errors import DocumentError, Setting, UsageError
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason

ALLOWED = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
RESERVED = ("index",)  # a gallery's list lies beside its entries
LONGEST = 120  # characters, so that a number fits behind


class NameReason(StrEnum):
    """Why a name is not one of a document."""

    CHARACTERS = "characters"
    RESERVED = "reserved"


def slug(text: str) -> str:
    """Return a name of lower-case letters, digits, dots and hyphens: ``qwen3-8b`` for ``Qwen3-8B``."""
    word = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
    return re.sub(r"-{2,}", "-", word)[:96].rstrip("-.") or "model"


def check(name: str) -> str:
    """Return a name the user chose; raises UsageError where it is not safe as a file name."""
    if not ALLOWED.fullmatch(name) or len(name) > 128 or ".." in name:
        raise _refused(name, NameReason.CHARACTERS)
    if name in RESERVED:
        raise _refused(name, NameReason.RESERVED)
    return name


def _refused(name: str, reason: NameReason) -> UsageError:
    return UsageError("bad-value", setting=Setting.NAME, value=name, problem=Reason(reason, name=name))


def choose(model_id: str | None, folder_name: str, taken_by_other: Callable[[str], bool]) -> str:
    """Return the repository's name, with its owner in front where another repository has taken it."""
    owner, _, name = (model_id or folder_name).rpartition("/")
    short = slug(name)
    if not (short in RESERVED or taken_by_other(short)):
        return short
    long = f"{slug(owner)}--{short}"[:LONGEST].rstrip("-.") if owner else short
    if not (long in RESERVED or taken_by_other(long)):
        return long
    number = 2
    while taken_by_other(f"{long}-{number}"):
        number += 1
    return f"{long}-{number}"


class Names:
    """Allocates names; an allocated name stays with its model, written or not. Not for several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, str] = {}

    def give(self, snapshot: Snapshot) -> str:
        """Return the model's name: the one it has in the folder, else one that is free."""
        model = snapshot.model_id or str(snapshot.directory)
        folder = snapshot.directory.resolve().name if snapshot.directory else "model"
        name = choose(snapshot.model_id, folder, lambda name: self._taken(name, model))
        self.keep(name, model)
        return name

    def known(self, snapshot: Snapshot, name: str | None = None) -> StoredDocument | None:
        """Return the model's document in the folder, under ``name`` or its own; allocates no name. For
        any thread.
        """
        model = snapshot.model_id or str(snapshot.directory)
        folder = snapshot.directory.resolve().name if snapshot.directory else "model"
        name = name or choose(snapshot.model_id, folder, lambda name: self._foreign(name, model))
        return None if self._foreign(name, model) else self._store.find(name)

    def keep(self, name: str, model: str) -> None:
        """Remember that ``name`` is ``model``'s."""
        self._models[name] = model

    def _taken(self, name: str, model: str) -> bool:
        return self._models[name] != model if name in self._models else self._foreign(name, model)

    def _foreign(self, name: str, model: str) -> bool:
        """Return whether a file of that name is not the model's."""
        try:
            stored = self._store.find(name)
        except DocumentError:  # a broken file of another document
            return True
        return stored is not None and stored.model != model
