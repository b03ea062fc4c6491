"""The facts of a model beside its document: an import records them, and each check of the document uses them.

An edit has no snapshot. The facts in the receipt stand for it, so that an edit, a review and a file by hand
meet the check of the import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from importer.config_file import argument_check, check, model_conflicts
from importer.config_file.model_conflicts import OVERRIDES, Conflict, ModelFacts

if TYPE_CHECKING:
    from importer.config_file.receipt import Receipt

OF_VERSIONS: Mapping[str, Any] = {"drafts": None, "longest": None}  # facts that an engine's version decides


@dataclass(frozen=True, slots=True)
class RecordedFacts:
    """The facts of a receipt, with the commit and the engine (name, version) that they were read for."""

    facts: ModelFacts
    revision: str | None
    engine: Mapping[str, Any]

    def of(self, document: Mapping[str, Any]) -> ModelFacts:
        """Return the facts that hold for a document; what is unknown of it is ``None``.

        None hold for another commit. For another version of the engine, those of the version are unknown.
        The context is unknown where the document overrides the model's config.
        """
        block, arguments = _map(document.get("importer")), _map(document.get(argument_check.KEY))
        if block.get("revision", self.revision) != self.revision:
            return ModelFacts()
        if block.get("engine", self.engine) != self.engine:
            return replace(self.facts, **OF_VERSIONS)
        changed = arguments.get(OVERRIDES.removeprefix(f"{argument_check.KEY}."))
        return replace(self.facts, longest=None) if changed else self.facts


def to_json(facts: ModelFacts) -> dict[str, Any]:
    """Return the facts as they stand in a receipt."""
    return asdict(facts)


def recorded(receipt: Receipt | None) -> RecordedFacts | None:
    """Return the facts of a receipt, if there is one."""
    if receipt is None:
        return None
    known = {f.name: receipt.model[f.name] for f in fields(ModelFacts) if f.name in receipt.model}
    listed = {name: tuple(value) for name, value in known.items() if isinstance(value, list | tuple)}
    return RecordedFacts(ModelFacts(**{**known, **listed}), receipt.revision, receipt.engine)


def faults(document: Mapping[str, Any], model: RecordedFacts | None) -> Iterator[Conflict]:
    """Yield the values of a document that its engine refuses for the model; nothing where no facts are
    recorded.
    """
    if model is not None:
        whole = {**document, argument_check.KEY: check.arguments_of(document)}
        yield from model_conflicts.conflicts(whole, whole, model.of(whole))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
