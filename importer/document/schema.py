"""The frozen schemas: the document, its receipt, and the line that --json prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from importer.errors import DocumentError

NAMES = ("document", "receipt", "report")


@cache
def text(name: str) -> str:
    """The schema's own text; ``name`` is one of ``NAMES``."""
    return files("importer").joinpath("data", f"{name}.schema.json").read_text(encoding="utf-8")


@cache
def load(name: str) -> Mapping[str, Any]:
    """The schema as data."""
    schema: Mapping[str, Any] = json.loads(text(name))
    return schema


def check(name: str, data: object, path: object) -> None:
    """Validate ``data``; raises DocumentError("invalid") naming the key."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(load(name)).iter_errors(data))
    if error is not None:
        where = ".".join(str(p) for p in error.absolute_path) or "the top level"
        said = (
            error.message if len(error.message) < 300 else f"{error.message[:100]} … {error.message[-100:]}"
        )
        raise DocumentError("invalid", path=path, problem=f"at {where}: {said}")
