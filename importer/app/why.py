"""The reasons for a value of a document: the facts that decided, and the candidates that lost."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from importer.document.effective import OFFERERS, EffectiveValue, effective
from importer.document.receipt import Receipt
from importer.document.store import StoredDocument
from importer.engines.registries import sampling_defaults
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.sentences import value_text


def values(stored: StoredDocument) -> list[dict[str, object]]:
    """Return the effective values of a document as JSON; raises DocumentError("no-receipt")."""
    return [one.to_json() for one in _effective(stored)]


def _effective(stored: StoredDocument) -> list[EffectiveValue]:
    receipt = stored.need_receipt()
    return [*effective(stored.data, receipt, defaults=sampling_defaults(stored.data))]


@frozen
class Candidate:
    """A value that was not taken, and the reason."""

    value: Any
    source: str
    why: str

    def to_json(self) -> dict[str, object]:
        """Return the members as JSON."""
        return {"value": self.value, "source": self.source, "why": self.why}


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
    candidates: tuple[Candidate, ...]

    def explain(self, facts: int | None = None, candidates: int | None = None) -> tuple[str, ...]:
        """Return the lines of ``importer why``: the value, its first facts, and values that were not taken.

        ``None`` stands for all of them.
        """
        value = "none" if self.value is None else value_text(self.value).replace("\n", ", ")
        lost = (f"  not {value_text(one.value)}  {one.why}" for one in self.candidates[:candidates])
        because = (f"  because  {fact}" for fact in self.facts[:facts])
        return (f"{self.key}: {value}, {self.status}", *because, *lost)

    def to_json(self) -> dict[str, object]:
        """Return the members as JSON."""
        others = [one.to_json() for one in self.candidates]
        head = {"key": self.key, "value": self.value, "status": self.status, "source": self.source}
        return head | {"facts": list(self.facts), "candidates": others}


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
    lost = tuple(Candidate(each["value"], each["source"], each["why"]) for each in one.overruled)
    lost += tuple(_refuted(stored.need_receipt(), one.key, value)) + tuple(_offered(one, value))
    seen = {str(each.value): each for each in reversed(lost)}
    return Explanation(one.key, value, one.status, one.source, one.why, tuple(reversed(seen.values())))


def _offered(one: EffectiveValue, value: Any) -> Iterator[Candidate]:
    """Yield what vendor, table and engine offer otherwise."""
    for offerer in OFFERERS:
        offer = one.offers.get(offerer.replace("-", "_"))
        if offer is not None and offer["value"] != value:
            yield Candidate(offer["value"], offerer, f"{offerer}: {offer['source']}")


def _refuted(receipt: Receipt, key: str, value: Any) -> Iterator[Candidate]:
    """Yield the other parsers of the proof, the best first, each with the first case that it lost."""
    for one in receipt.verdicts(key):
        if one["parser"] != value:
            lost = one["lost"] or next((f"{case}: {why}" for case, why in one["failed"].items()), None)
            yield Candidate(
                one["parser"], receipt.proved_by, lost or f"reads all {len(one['passed'])} cases, too"
            )
