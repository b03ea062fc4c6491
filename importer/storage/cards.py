"""Cards: what an overview shows of a document, in columns that are computed when a version is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select, update

from importer.storage import marks
from importer.storage.tables import configs, findings

T, F = configs.c, findings.c
FINDING = "finding"  # the reason that an open finding of a recheck is
# Kinds of what needs attention, the gravest first. Those of an import are the kinds of its warnings.
KINDS = (
    "will-not-start", "does-not-fit", "validation-failed", "validation-stale", "review-stale", FINDING,
    "needs-code", "foreign-code", "prompts", "parser", "limited-tools", "no-tools", "way-in", "conflict",
    "other-device", "other",
)  # fmt: skip
# Parameters of a model below each bound.
SIZES: Mapping[str, float] = {
    "under-1b": 1e9, "1b-4b": 4e9, "4b-10b": 10e9, "10b-35b": 35e9, "35b-100b": 100e9,
    "over-100b": float("inf"),
}  # fmt: skip
PASSED, FAILED = ("pass",), ("fail", "inconclusive")
LONGEST = 500  # characters of a description that a card has
NO_PARSER = ("", "none", "null")
LARGEST = 2**62
Json = Mapping[str, Any]


def card(data: Json, receipt: Json | None, review: str, validation: str) -> dict[str, Any]:
    """Return the columns of a document with these data and this receipt; both may be of any form.

    ``review`` and ``validation`` are their states. An unknown figure is ``None``.
    """
    known = receipt or {}
    run = _mapping(known.get("validation"))
    values = _about(data) | _sizes(data, _mapping(known.get("fit"))) | _run(run)
    times = [at for at in (known.get("imported_at"), run.get("started")) if isinstance(at, str)]
    kinds = {*_warned(known), *_states(review, validation)}
    return values | {"checked_at": max(times, default=None), "attention": words(kinds)}


def words(names: set[str]) -> str | None:
    """Return names as a column has them, between spaces; ``None`` for none."""
    return f" {' '.join(sorted(names))} " if names else None


def search(name: str, model: str | None, family: str | None, made: Json) -> str:
    """Return the text that a search looks through: name, model, family, description, tags, license."""
    parts = (name, model, family, made["description"], (made["tags"] or "").strip(), made["license"])
    return "\n".join(part for part in parts if part).lower()


def urgency(kinds: str | None) -> int:
    """Return the rank of the gravest kind, the gravest the highest; 0 for none."""
    present = (kinds or "").split()
    return max((len(KINDS) - KINDS.index(kind) for kind in present if kind in KINDS), default=0)


def attend(connection: Connection, name: str) -> None:
    """Count a document's open findings anew, and rank its attention."""
    number = connection.execute(select(func.count()).where(F.name == name, F.state == "open")).scalar_one()
    kinds = {*(connection.execute(select(T.attention).where(T.name == name)).scalar() or "").split()}
    named = words(kinds | {FINDING} if number else kinds - {FINDING})
    row = {"findings": number, "attention": named, "urgency": urgency(named)}
    connection.execute(update(configs).where(T.name == name).values(row))
    marks.changed(connection)


def checked(connection: Connection, name: str, at: str) -> None:
    """Record that a document was compared with an import."""
    connection.execute(update(configs).where(T.name == name).values(checked_at=at))


def size_of(parameters: int | None) -> str | None:
    """Return the class of a model by the number of its parameters."""
    if parameters is None:
        return None
    return next(name for name, bound in SIZES.items() if parameters < bound)


def _about(data: Json) -> dict[str, Any]:
    block = _mapping(data.get("importer"))
    modalities = {"text", *_texts(block.get("modalities"))}
    scheme = _text(block.get("quantization_scheme")) or _text(block.get("quantization"))
    tags = {tag.lower() for tag in _texts(data.get("tags")) or _texts(block.get("tags"))}
    description = _text(data.get("description"))
    return {
        "description": None if description is None else description[:LONGEST],
        "icon": _text(data.get("icon")) or _text(block.get("icon")),
        "license": _text(block.get("license")) or _text(data.get("license")),
        "tags": words({tag.replace(" ", "-") for tag in tags}),
        "quantization": scheme or _text(data.get("quantization")),
        "modalities": words({one for one in modalities if " " not in one}),
        "tool_parser": _parser(data, "tool_parser"),
        "reasoning_parser": _parser(data, "reasoning_parser"),
    }  # fmt: skip


def _sizes(data: Json, fit: Json) -> dict[str, Any]:
    weights, device, estimate = (_mapping(fit.get(key)) for key in ("weights", "device", "estimate"))
    load, parameters = _mapping(estimate.get("load")), _number(weights.get("parameters"))
    contexts = (data.get("max_model_len"), data.get("context_size"), load.get("context"))
    count = _number(device.get("count")) or 1
    name = _text(device.get("name"))
    return {
        "context": next((n for n in map(_number, contexts) if n), None),
        "parameters": parameters, "size": size_of(parameters), "weights": _number(weights.get("likely")),
        "memory": _number(_mapping(estimate.get("total")).get("likely")),
        "device": name if count == 1 or name is None else f"{count}x{name}", "devices": count,
    }  # fmt: skip


def _run(run: Json) -> dict[str, Any]:
    engine, outcomes = _mapping(run.get("engine")), run.get("outcomes")
    ended = [_mapping(one).get("outcome") for one in outcomes] if isinstance(outcomes, list) else []
    spent = [n for n in _mapping(run.get("seconds")).values() if isinstance(n, int | float)]
    return {
        "run_engine": _text(engine.get("name")), "run_version": _text(engine.get("version")),
        "run_at": _text(run.get("started")),
        "run_passed": sum(one in PASSED for one in ended) if run else None,
        "run_failed": sum(one in FAILED for one in ended) if run else None,
        "run_total": len(ended) if run else None, "run_seconds": sum(spent) if run else None,
    }  # fmt: skip


def _warned(receipt: Json) -> Iterator[str]:
    for warning in _items(receipt.get("warnings")):
        kind = _mapping(warning).get("kind")
        yield kind if kind in KINDS else "other"


def _states(review: str, validation: str) -> Iterator[str]:
    if validation == "failed":
        yield "validation-failed"
    if validation == "stale":
        yield "validation-stale"
    if review == "stale":
        yield "review-stale"


def _parser(data: Json, key: str) -> str | None:
    """Return the last parser that the options name."""
    pairs = (one.partition(":") for one in _texts(data.get("options")))
    named = [value.strip() for name, _, value in pairs if name.strip() == key]
    return named[-1] if named and named[-1].lower() not in NO_PARSER else None


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: object) -> list[str]:
    return [one for one in _items(value) if isinstance(one, str) and one]


def _number(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= LARGEST else None  # type: ignore[operator,return-value]
