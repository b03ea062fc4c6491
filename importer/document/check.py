"""Everything that is wrong with a document's text, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.document import schema
from importer.document.where import Places, Problem, Unreadable, parse
from importer.errors import DocumentError

LONGEST = 480  # characters of all problems in one sentence


def problems(text: str, filled_in: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is wrong, in the order of the lines; of a text that is no YAML only the first thing.

    ``filled_in`` stands for what the text leaves out.
    """
    try:
        data = {**(filled_in or {}), **parse(text)}
    except Unreadable as error:
        return [error.problem]
    places = Places(text)
    found = [*places.repeated(), *(places.problem(f.path, f.says) for f in schema.faults("document", data))]
    return sorted(found, key=lambda p: (p.line, p.column))


def checked(text: str, path: object) -> dict[str, Any]:
    """The text's data; raises DocumentError("invalid") with every problem and its line."""
    found = problems(text)
    if found:
        raise DocumentError("invalid", path=path, problem=sentence(found))
    return parse(text)


def sentence(found: list[Problem]) -> str:
    """Problems in one sentence, as many as fit."""
    said = str(found[0])
    for number, problem in enumerate(found[1:], 1):
        if len(said) + len(str(problem)) > LONGEST:
            return f"{said}; and {len(found) - number} more"
        said += f"; {problem}"
    return said
