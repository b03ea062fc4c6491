"""The reasons for a value of a document: the facts that decided, and the candidates that lost."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from importer.document.effective import OFFERERS, EffectiveValue, effective
from importer.document.receipt import Receipt, proved_by
from importer.document.records import Overruled
from importer.document.store import StoredDocument
from importer.engines.registries import sampling_defaults
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.sentences import value_text


def values(stored: StoredDocument) -> list[dict[str, object]]:
    """Return the effective values of a document as JSON; raises DocumentError("no-receipt")."""
    return [one.to_json() for one in _effective(stored)]


def _effective(stored: StoredDocument) -> list[EffectiveValue]:
    receipt = stored.need_receipt()
    return [*effective(stored.data, receipt, defaults=sampling_defaults(stored.data))]


@frozen
class Explanation:
    """One value of a document.

    ``facts``       sentences, those that decided first.
    ``candidates``  the values that were not taken, the nearest first.
    """

    key: str
    value: Any
    status: str
    source: str
    facts: tuple[str, ...]
    candidates: tuple[Overruled, ...]

    def explain(self, facts: int | None = None, candidates: int | None = None) -> tuple[str, ...]:
        """Return the lines of ``importer why``: the value, its first facts, and values that were not taken.

        ``None`` stands for all of them.
        """
        value = "none" if self.value is None else value_text(self.value).replace("\n", ", ")
        lost = (f"  not {value_text(one['value'])}  {one['why']}" for one in self.candidates[:candidates])
        because = (f"  because  {fact}" for fact in self.facts[:facts])
        return (f"{self.key}: {value}, {self.status}", *because, *lost)

    def to_json(self) -> dict[str, object]:
        """Return the members as JSON."""
        head = {"key": self.key, "value": self.value, "status": self.status, "source": self.source}
        return head | {"facts": list(self.facts), "candidates": [*self.candidates]}


def explanations(stored: StoredDocument, key: str | None = None) -> list[Explanation]:
    """Return the explanation of one key, or of every value of the document.

    A key may leave out its first part: ``temperature``. Raises DocumentError: "no-receipt", or "no-value"
    for a key without a value.
    """
    values = _effective(stored)
    wanted = [one for one in values if key is None or key in (one.key, one.key.rpartition(".")[2])]
    if not wanted:
        near = get_close_matches(str(key), [one.key for one in values], 3, 0.4)
        raise DocumentError("no-value", name=stored.name, key=key, near=near or [one.key for one in values])
    return [_explanation(stored, one) for one in wanted]


def _explanation(stored: StoredDocument, one: EffectiveValue) -> Explanation:
    """Return facts and candidates of the value that the document has now, which an edit may have set."""
    value = one.decision["value"]
    lost = (*one.overruled, *_refuted(stored.need_receipt(), one.key, value), *_offered(one, value))
    seen = {str(each["value"]): each for each in reversed(lost)}
    return Explanation(one.key, value, one.status, one.source, one.why, tuple(reversed(seen.values())))


def _offered(one: EffectiveValue, value: Any) -> Iterator[Overruled]:
    """Yield what vendor, table and engine offer otherwise."""
    for offerer in OFFERERS:
        offer = one.offers.get(offerer.replace("-", "_"))
        if offer is not None and offer["value"] != value:
            why = f"{offerer}: {offer['source']}"
            yield {"value": offer["value"], "source": offerer, "why": why}


def _refuted(receipt: Receipt, key: str, value: Any) -> Iterator[Overruled]:
    """Yield the other parsers of the proof, the best first, each with the first case that it lost."""
    for one in receipt.verdicts(key):
        if one["parser"] != value:
            lost = one["lost"] or next((f"{case}: {why}" for case, why in one["failed"].items()), None)
            why = lost or f"reads all {len(one['passed'])} cases, too"
            yield {"value": one["parser"], "source": proved_by(mapping(receipt.proof)), "why": why}
