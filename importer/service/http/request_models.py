"""The bodies of requests besides that of an import, and JSON objects as bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from importer.errors import DocumentError
from importer.service.domain.document_text import LONGEST
from importer.service.domain.import_request import Body, Choices, Spoken, Text


def merged(data: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """Return data with a merge patch (RFC 7396): maps are merged, null removes, any other value replaces."""
    result = dict(data)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            result[key] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def json_object(body: bytes, place: str = "") -> dict[str, object]:
    """Return a body that has to be a JSON object, no longer than a document; raises
    DocumentError("invalid").
    """
    parsed = _object(body)
    if isinstance(parsed, dict):
        return parsed
    errors = [{"pointer": place, "detail": parsed}]
    raise DocumentError("invalid", path="The body", problem=parsed, errors=errors)


def _object(body: bytes) -> dict[str, object] | str:
    """Return the object, or the problem with the body."""
    if len(body) > 4 * LONGEST:  # bytes; a character has up to four
        return f"must have at most {4 * LONGEST:,} bytes"
    try:
        data = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"not valid JSON: {error}"
    return data if isinstance(data, dict) else "must be a JSON object"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number that JSON has")


SEEN: JsonDict = {"digest": f"sha256:{'0' * 64}", "note": "a day in staging"}


class Note(Body):
    """Why something is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "answers are cut off"}]})

    note: Spoken | None = None


class ReviewRequest(Note):
    """A person's review of a document."""

    digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, description="of the data that were looked at; another one is refused"
    )


class ReleaseRequest(ReviewRequest):
    """A release of the working copy as it was seen."""

    model_config = ConfigDict(json_schema_extra={"examples": [SEEN]})


class Approval(ReviewRequest):
    """A person's approval of a document as it was seen."""

    model_config = ConfigDict(json_schema_extra={"examples": [SEEN]})

    publish: bool | None = Field(
        default=None,
        description="release it, too; by default where the key may publish and the document is validated",
    )


class Rejection(ReviewRequest):
    """A rejection with its reason."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "too hot for tools"}]})

    note: Annotated[Spoken, Field(min_length=1)]


class ValidationRequest(Body):
    """How a document is to be run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"engine": "mlx"}]})

    engine: Text | None = Field(default=None, description="an engine other than the document's")
    on: Text | None = Field(default=None, description="the pool to run on, by its name in the settings")
    fetch: bool = Field(default=True, description="fetch the weights if they are not on the worker's disk")
    score: bool = Field(
        default=False, description="also measure how well the model calls tools; kept in the receipt"
    )
    measure: bool = Field(
        default=False,
        description="start it with random weights in place of a validation, and choose context and layout "
        "by the memory that the engine reports; nothing of the weights is fetched",
    )


class Retry(Body):
    """What is different in another attempt."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"backend": "mlx"}]})

    backend: Text | None = None
    take: Literal["mine", "theirs"] | None = None
    on_conflict: Choices | None = None
