"""Allocate names of documents in a folder and in this run: never one for two models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count, takewhile

from importer.document.attention import NO_DEVICE
from importer.document.store import Store, StoredDocument
from importer.errors import DocumentError, Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory.devices import short_name
from importer.reasons import Reason, ReasonKind

ALLOWED = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
RESERVED = ("index",)  # a gallery's list lies beside its entries
LONGEST = 120  # characters, so that a number fits behind


class NameReason(ReasonKind):
    """Why a name is not one of a document."""

    CHARACTERS = (
        "{name!r} is not made of at most 128 of a-z, 0-9, '.', '_' and '-', with a letter or digit at both "
        "ends and without '..'"
    )
    RESERVED = "a gallery's list of its entries has the name {name!r}"


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


@frozen
class Slot:
    """The place of a document among those of its model: one for each backend, and device where asked.

    ``backend``     ``None`` where a request leaves it open.
    ``device``      the full name of the device, where the request names one.
    ``per_device``  whether the document is for this device alone.
    """

    backend: str | None = None
    device: str | None = None
    per_device: bool = False

    @property
    def own_device(self) -> str | None:
        """Return the device of a document for this device alone."""
        return self.device if self.per_device else None

    def has(self, stored: StoredDocument) -> bool:
        """Return whether a document of the model stands in this place."""
        return self.backend in (None, stored.backend) and self.own_device == stored.own_device


OPEN = Slot()


def bases(model_id: str | None, folder_name: str) -> Iterator[str]:
    """Yield the repository's name, then that with its owner in front, then numbered ones, without an end."""
    owner, _, name = (model_id or folder_name).rpartition("/")
    short = slug(name)
    yield short
    long = f"{slug(owner)}--{short}"[:LONGEST].rstrip("-.") if owner else short
    if long != short:
        yield long
    yield from (f"{long}-{number}" for number in count(2))


def choose(model_id: str | None, folder_name: str, taken_by_other: Callable[[str], bool]) -> str:
    """Return the repository's name, with its owner in front where another repository has taken it."""
    names = bases(model_id, folder_name)
    return next(name for name in names if not (name in RESERVED or taken_by_other(name)))


class Names:
    """Allocates names: one document for each model and backend, and device where asked. Not for several
    threads.

    The first document has the model's name, another backend's ends with the backend, and one for a device
    alone ends with the device. An allocated name stays with its model, written or not.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, str] = {}

    def give(self, snapshot: Snapshot, slot: Slot = OPEN) -> str:
        """Return the name of the model's document in a place: the present one, else one that is free."""
        model = _model(snapshot)
        present = self._present(snapshot, slot)
        name = self._free(snapshot, slot) if present is None else present.name
        self.keep(name, model)
        return name

    def known(self, snapshot: Snapshot, name: str | None, slot: Slot) -> StoredDocument | None:
        """Return the model's document in a place, under ``name`` or its own; allocates no name. For any
        thread.

        Raises what ``check`` raises.
        """
        if name is None:
            return self._present(snapshot, slot)
        self.check(name, _model(snapshot), slot)
        return self._own(name, _model(snapshot))

    def check(self, name: str, model: str, slot: Slot) -> None:
        """Raise DocumentError where ``name`` is the model's document in another place.

        "other-backend" is one for another backend. "other-device" is one for a device alone, or one that is
        not for the device of a request for a device alone.
        """
        stored = self._own(name, model)
        if stored is None:
            return
        if slot.backend not in (None, stored.backend):
            raise DocumentError("other-backend", name=name, has=stored.backend, backend=slot.backend)
        alone = slot.per_device or stored.own_device is not None
        if alone and slot.device not in (None, stored.device):
            has = stored.device or NO_DEVICE
            raise DocumentError("other-device", name=name, has=has, device=slot.device)

    def keep(self, name: str, model: str) -> None:
        """Remember that ``name`` is ``model``'s."""
        self._models[name] = model

    def _base(self, snapshot: Snapshot, taken: Callable[[str, str], bool]) -> str:
        model = _model(snapshot)
        return choose(snapshot.model_id, _folder(snapshot), lambda name: taken(name, model))

    def _present(self, snapshot: Snapshot, slot: Slot) -> StoredDocument | None:
        """Return the model's document in a place.

        Another repository may have the model's own name by now, so all names up to a free one count.
        """
        last = self._base(snapshot, self._foreign)
        names = bases(snapshot.model_id, _folder(snapshot))
        found = (
            self._variant(base, _model(snapshot), slot) for base in (*takewhile(last.__ne__, names), last)
        )
        return next((stored for stored in found if stored is not None), None)

    def _variant(self, base: str, model: str, slot: Slot) -> StoredDocument | None:
        """Return the document in a place under the names that a base gives, up to a gap behind the second."""
        for number, name in enumerate(variant_names(base, slot)):
            stored = self._own(name, model)
            if stored is not None and slot.has(stored):
                return stored
            if stored is None and number and not self._foreign(name, model):
                break
        return None

    def _free(self, snapshot: Snapshot, slot: Slot) -> str:
        """Return the first name of a place that no document has."""
        model, base = _model(snapshot), self._base(snapshot, self._taken)
        names = variant_names(base, slot)
        return next((n for n in names if not self._taken(n, model) and self._store.find(n) is None), base)

    def _own(self, name: str, model: str) -> StoredDocument | None:
        """Return the model's document of that name."""
        return None if self._foreign(name, model) else self._store.find(name)

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


def variant_names(base: str, slot: Slot) -> Iterator[str]:
    """Yield the names of a place: the model's name, with the device where it is the document's own; then
    that with the backend; then numbered ones, without an end.

    Without a backend there is only the first.
    """
    own = "" if slot.own_device is None else f"-{ending(slot.own_device)}"
    yield _ended(base, own)
    if slot.backend is None:
        return
    long = _ended(base, f"-{slug(slot.backend)}{own}")
    yield long
    yield from (f"{long}-{number}" for number in count(2))


def ending(device: str) -> str:
    """Return the end of the name of a document for a device alone: ``8xh100`` for ``8xh100-80g``."""
    return slug(short_name(device))


def _ended(base: str, end: str) -> str:
    return base[: LONGEST - len(end)].rstrip("-.") + end if end else base


def _model(snapshot: Snapshot) -> str:
    return snapshot.model_id or str(snapshot.directory)


def _folder(snapshot: Snapshot) -> str:
    return snapshot.directory.resolve().name if snapshot.directory else "model"
