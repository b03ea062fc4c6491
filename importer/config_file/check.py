"""The check of a whole document against its engine's version: arguments, variables, values together.

``schema.faults`` calls it for every document, so that an edit, an import and a file by hand meet one check.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from importer.config_file import argument_check, argument_conflicts, environment, field_paths
from importer.config_file.engine_arguments import load
from importer.reasons import Reason

Fault = tuple[tuple[str | int, ...], Reason]


def faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what the engine of a document has against it, each with its path in the document.

    Nothing for a document without an engine that is known here, and for parts of another type: those are the
    schema's.
    """
    engine, version = document.get("backend"), version_of(document)
    if not isinstance(engine, str) or load(engine, version) is None:
        return
    arguments = document.get(argument_check.KEY)
    arguments = arguments if isinstance(arguments, Mapping) else {}
    for path, reason in argument_check.faults(engine, version, arguments):
        yield (argument_check.KEY, *path), reason
    flags = dict(_flags(document)) if engine == "vllm" else {}
    for place, (name, value) in flags.items():
        for _, reason in argument_check.faults(engine, version, {name: value}):
            yield (field_paths.KEY, place), reason
    variables = document.get(environment.KEY)
    if isinstance(variables, Mapping):
        for path, reason in environment.faults(engine, version, variables):
            yield (environment.KEY, *path), reason
    merged = {**dict(flags.values()), **arguments}
    yield from argument_conflicts.conflicts({**document, argument_check.KEY: merged})


def version_of(document: Mapping[str, Any]) -> str | None:
    """Return the version of the engine that a document names."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    version = engine.get("version") if isinstance(engine, Mapping) else None
    return version if isinstance(version, str) else None


def _flags(document: Mapping[str, Any]) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Yield the flags among ``options``: the place of each, its name and its value."""
    for place, option in enumerate(field_paths.of(document)):
        if option.key.startswith("--"):
            yield place, flag(option)


def flag(option: field_paths.Option) -> tuple[str, Any]:
    """Return the argument that an option with a leading ``--`` sets, and its value."""
    name = option.key.removeprefix("--").replace("-", "_")
    if name.startswith("no_") and option.value is None:
        return name.removeprefix("no_"), False
    return name, _value(option)


def _value(option: field_paths.Option) -> Any:
    if option.value is not None and option.value.startswith(("{", "[")):
        try:
            return json.loads(option.value)
        except (ValueError, RecursionError):
            return option.value
    return option.typed
