"""A plan becomes the document and its receipt; a person's edits stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from importer import backends
from importer.document import chat_template, merge, schema
from importer.document.build import Built
from importer.document.diff import Change, differences
from importer.document.digest import digest
from importer.document.merge import Merge, Take
from importer.document.receipt import Receipt, Word
from importer.document.store import Store, Stored
from importer.document.text import to_text
from importer.errors import DocumentError
from importer.pipeline import Plan


@dataclass(frozen=True, slots=True)
class Settled:
    """A plan, and what becomes of it on the file that is there.

    ``plan`` has the data as they will be; ``text`` is the file's. ``old`` is the file as it was, ``base``
    what the importer wrote into it last.
    """

    planned: Plan
    take: Take | None
    plan: Plan
    text: str
    old: Stored | None = None
    base: Mapping[str, Any] | None = None

    @property
    def edits(self) -> tuple[Change, ...]:
        """From what this import says to what a person's word in the file makes of it."""
        return differences(self.planned.built.data, self.plan.built.data)

    @property
    def changes(self) -> tuple[Change, ...]:
        """From the file as it is to the file as it will be; none for a new one."""
        return () if self.old is None else differences(self.old.data, self.plan.built.data)


def settle(planned: Plan, store: Store, take: Take | None = None) -> Settled:
    """Bring a plan and the file of its name together; writes nothing.

    Raises DocumentError: "exists" for a file of another model, or one whose receipt does not tell what was
    written; "conflict" where a person and the import changed one value, and ``take`` does not say whose
    counts; "cannot-edit".
    """
    path = store.path(planned.name)
    schema.check("document", planned.built.data, path)
    theirs, old = to_text(planned.built), store.find(planned.name)
    if old is None:
        return Settled(planned, take, planned, theirs)
    base = _base(old)
    if old.model != planned.model or (base is None and old.digest != planned.digest):
        raise DocumentError("exists", path=path)
    wrote = old.receipt.base if old.receipt is not None else None
    if base is None or wrote == theirs:
        return _settled(planned, take, old.data, old.text, old, base)
    merged = Merge(base, old.data, planned.built.data, take)
    if merged.conflicts and take is None:
        first, count = merged.conflicts[0].reason, len(merged.conflicts)
        raise DocumentError("conflict", path=path, count=count, first=first, conflicts=merged.conflicts)
    data = _derived(merged.data)
    return _settled(planned, take, data, merge.write(old.text, data, wrote, theirs, path), old, base)


def _settled(
    planned: Plan,
    take: Take | None,
    data: dict[str, Any],
    text: str,
    old: Stored,
    base: Mapping[str, Any] | None,
) -> Settled:
    return Settled(planned, take, replace(planned, built=Built(data, {})), text, old, base)


def _base(old: Stored) -> Mapping[str, Any] | None:
    """The data that the importer wrote last; where the receipt lacks them, data that nobody edited."""
    if old.receipt is None:
        return None
    if old.receipt.base is None:
        return old.data if old.digest == old.receipt.digest else None
    return old.receipt.wrote


def _derived(data: dict[str, Any]) -> dict[str, Any]:
    """The data with what follows from a person's values: which of them clients have to send."""
    from importer.engines import get, runs

    block = data.get("importer")
    if not isinstance(block, dict) or not isinstance(data.get("parameters"), dict):
        return data
    backend = data.get("backend")
    sent = get(backend).client_sampling(data) if backend in backends.NAMES and runs(backend) else {}
    ours = {k: v for k, v in block.items() if k != "client_sampling"}
    return {**data, "importer": {**ours, **({"client_sampling": sent} if sent else {})}}


def write(settled: Settled, store: Store, review: Word | None = None) -> Receipt:
    """Write what changed of document and receipt; data that stay keep their review and their validation.

    ``review`` approves, but takes back no person's rejection of the very same data. The caller holds the
    store's lock. Raises what ``settle`` raises, and DocumentError: "changed" where the file is no longer the
    one that was settled, "exists" where a chat template lies there that a person has changed.
    """
    found = settle(settled.planned, store, settled.take)
    plan, old = found.plan, found.old
    if plan.digest != settled.plan.digest:
        path = store.path(plan.name)
        raise DocumentError("changed", path=path, name=plan.name, now=plan.digest, seen=settled.plan.digest)
    receipt = _receipt(found)
    if review is not None and receipt.state(plan.digest) in ("draft", "stale"):
        receipt = receipt.with_review(review, plan.built.data)
    path, template = store.path(plan.name), chat_template.meant(plan.built.data, plan.chat_template)
    if template is not None:
        chat_template.check_free(None if old is None else old.data, path, template)
    whole = template is None or chat_template.holds(path, template)
    if old is None or old.receipt is None or old.text != found.text or not whole:
        store.write(found.text, receipt, template)
        if old is not None and not chat_template.named(plan.built.data):
            chat_template.forget(old.data, path)
    elif old.receipt.to_text() != receipt.to_text():
        store.write_receipt(plan.name, receipt)
    return receipt


def _receipt(settled: Settled) -> Receipt:
    """The plan's receipt with what the last one says and still holds."""
    receipt, old = settled.planned.receipt(), settled.old
    kept = None if old is None else old.receipt
    if old is None or kept is None:
        return replace(receipt, digest=settled.plan.digest)
    receipt = replace(receipt.with_past(kept), digest=settled.plan.digest)
    if settled.plan.digest == old.digest:
        receipt = replace(receipt, digest=kept.digest, imported_at=kept.imported_at)
        return receipt.with_standing(kept)
    edited = settled.base is not None and old.digest != digest(settled.base)
    return receipt.with_standing(kept) if edited else receipt
