"""The fields that a body may have where it has an unknown one, by the schema of its route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

UNKNOWN = "extra_forbidden"  # pydantic's type of error for a field that a model does not have


def near_fields(route: object, mistake: Mapping[str, Any]) -> Sequence[str]:
    """Return the names near an unknown field, the nearest first; none for any other mistake."""
    place, body = mistake["loc"], getattr(getattr(route, "body_field", None), "field_info", None)
    if mistake["type"] != UNKNOWN or place[:1] != ("body",) or body is None:
        return ()
    schema = _schema(body.annotation)
    known = {name for one in _at(schema, schema, place[1:-1]) for name in one.get("properties", {})}
    return get_close_matches(str(place[-1]), sorted(known), cutoff=0.6)


@cache
def _schema(annotation: Any) -> Mapping[str, Any]:
    made = annotation.model_json_schema if _is_model(annotation) else TypeAdapter(annotation).json_schema
    schema: Mapping[str, Any] = made()
    return schema


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _at(whole: Mapping[str, Any], schema: Any, place: Sequence[str | int]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of objects at a place of a body."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _at(whole, whole["$defs"][str(schema["$ref"]).rpartition("/")[2]], place)
    for choice in schema.get("anyOf", ()):
        yield from _at(whole, choice, place)
    if not place:
        yield schema
        return
    inner = schema.get("items") if isinstance(place[0], int) else schema.get("properties", {}).get(place[0])
    yield from _at(whole, inner, place[1:])
