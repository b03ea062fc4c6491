"""What the engine of a document runs with: one request for imports, judgements, measurements and runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from importer.decisions.decision import Chosen, Decision
from importer.memory.engine_keys import FitRequest

if TYPE_CHECKING:
    from importer.document.receipt import Receipt

ENGINE_DEFAULT = "engine-default"


def decided_defaults(decisions: Mapping[str, Decision]) -> dict[str, object]:
    """Return the engine's own values that an import read and does not write."""
    known = ((k, d) for k, d in decisions.items() if isinstance(d, Chosen))
    return {key: chosen.value for key, chosen in known if chosen.status == ENGINE_DEFAULT}


def recorded_defaults(receipt: Receipt | None) -> dict[str, object]:
    """Return the same from a receipt."""
    decisions = {} if receipt is None else receipt.decisions
    return {key: one.get("value") for key, one in decisions.items() if one.get("status") == ENGINE_DEFAULT}


def engine_request(
    data: Mapping[str, Any],
    defaults: Mapping[str, object],
    *,
    without: Container[str] = (),
    fixed: Container[str] | None = None,
    version: str | None = None,
) -> FitRequest:
    """Return a document's values but for the keys in ``without``; ``fixed`` are all of them by default."""
    values = {key: _without(key, value, without) for key, value in data.items() if key not in without}
    present = FitRequest(values)
    values |= {
        key: value for key, value in defaults.items() if present.get(key) is None and key not in without
    }
    return FitRequest(values, document_keys(data) if fixed is None else fixed, version)


def document_keys(data: Mapping[str, Any]) -> set[str]:
    """Return the keys that a document has, those of the engine's arguments apart."""
    return {*data} - {"engine_args"} | {f"engine_args.{key}" for key in data.get("engine_args") or ()}


def _without(head: str, value: Any, dropped: Container[str]) -> Any:
    return (
        {k: v for k, v in value.items() if f"{head}.{k}" not in dropped} if isinstance(value, dict) else value
    )
