"""Allocate names of documents in a folder and in this run: never one for two models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import count

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
    """Allocates names: one document for each model and backend. Not for several threads.

    The first document has the model's name, another backend's ends with the backend. An allocated name stays
    with its model, written or not. ``backend`` is ``None`` where a request leaves it open.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, str] = {}

    def give(self, snapshot: Snapshot, backend: str | None = None) -> str:
        """Return the name of the model's document for the backend: the present one, else one that is free."""
        model = _model(snapshot)
        base = choose(snapshot.model_id, _folder(snapshot), lambda name: self._taken(name, model))
        name = base if backend is None else self._variant(base, model, backend)
        self.keep(name, model)
        return name

    def known(
        self, snapshot: Snapshot, name: str | None = None, backend: str | None = None
    ) -> StoredDocument | None:
        """Return the model's document for the backend, under ``name`` or its own; allocates no name. For
        any thread.

        Raises DocumentError("other-backend") where ``name`` is the model's document for another backend.
        """
        model = _model(snapshot)
        if name is None:
            name = choose(snapshot.model_id, _folder(snapshot), lambda name: self._foreign(name, model))
            name = name if backend is None else self._variant(name, model, backend)
        elif backend is not None:
            self.check(name, model, backend)
        return None if self._foreign(name, model) else self._store.find(name)

    def check(self, name: str, model: str, backend: str) -> None:
        """Raise DocumentError("other-backend") where ``name`` is the model's document for another backend."""
        stored = None if self._foreign(name, model) else self._store.find(name)
        if stored is not None and stored.backend != backend:
            raise DocumentError("other-backend", name=name, has=stored.backend, backend=backend)

    def first(self, snapshot: Snapshot, name: str) -> StoredDocument | None:
        """Return the model's document under its own name, where ``name`` is that of another backend's."""
        stored = self.known(snapshot)
        return None if stored is None or stored.name == name else stored

    def keep(self, name: str, model: str) -> None:
        """Remember that ``name`` is ``model``'s."""
        self._models[name] = model

    def _variant(self, base: str, model: str, backend: str) -> str:
        """Return the name with this backend's document, else the first that no other document has."""
        free = None
        for name in variant_names(base, backend):
            stored = None if self._foreign(name, model) else self._store.find(name)
            if stored is not None and stored.backend == backend:
                return name
            if stored is None and not self._taken(name, model):
                free = free or name
                if name != base:
                    break
        return free or base

    def _taken(self, name: str, model: str) -> bool:
        return self._models[name] != model if name in self._models else self._foreign(name, model)

    def _foreign(self, name: str, model: str) -> bool:
        """Return whether a file of that name is not the model's."""
        try:
            stored = self._store.find(name)
        except DocumentError as error:
            if error.kind == "newer-receipt":
                raise
            return True  # a broken file of another document
        return stored is not None and stored.model != model


def variant_names(base: str, backend: str) -> Iterator[str]:
    """Yield the model's name, then that with the backend, then numbered ones, without an end."""
    yield base
    ending = f"-{slug(backend)}"
    long = base[: LONGEST - len(ending)].rstrip("-.") + ending
    yield long
    yield from (f"{long}-{number}" for number in count(2))


def _model(snapshot: Snapshot) -> str:
    return snapshot.model_id or str(snapshot.directory)


def _folder(snapshot: Snapshot) -> str:
    return snapshot.directory.resolve().name if snapshot.directory else "model"
