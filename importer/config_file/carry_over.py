"""A validation that holds for a new commit, too: the files that an engine reads are the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from importer.config_file.diff import canonical
from importer.config_file.receipt import KEPT, Receipt
from importer.config_file.store import StoredDocument
from importer.config_file.validation_status import validation


def carry_over(receipt: Receipt, data: Mapping[str, Any], digest: str, old: StoredDocument) -> Receipt:
    """Return a new import's receipt with the validation of ``old``, if that holds for the new commit.

    It does where both commits have one digest of content, and the documents differ in the commit alone. The
    run keeps the commit and the digest that it ran on (``carried``).
    """
    last = old.receipt
    if last is None or None in (last.content, last.revision, receipt.revision):
        return receipt
    if last.content != receipt.content or last.revision == receipt.revision or digest == old.digest:
        return receipt
    if canonical(old.data).replace(str(last.revision), str(receipt.revision)) != canonical(data):
        return receipt
    held = validation(last, old.data, old.digest)
    if held.run is None or held.state not in ("passed", "failed"):
        return receipt
    ran = held.run.get("carried") or {"revision": last.revision, "digest": old.digest}
    others = [run for run in last.runs if run["engine"] != held.run["engine"]]
    return replace(receipt, validation={**held.run, "digest": digest, "carried": ran}, earlier=others[:KEPT])


def carried(stored: StoredDocument) -> dict[str, str] | None:
    """Return the earlier commit and digest that a document's validation ran on; ``None`` for its own."""
    if stored.receipt is None:
        return None
    found = validation(stored.receipt, stored.data, stored.digest).carried
    return None if found is None else {key: str(found[key]) for key in ("revision", "digest")}
