"""Everything that is wrong with a document's text, each with its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from importer.document import schema
from importer.document.diff import Path
from importer.document.where import Places, Problem, Unreadable, parse
from importer.errors import DocumentError
from importer.reasons import Reason

LONGEST = 480  # characters of all problems in one sentence


class DocumentReason(StrEnum):
    """What is wrong with a document."""

    PROBLEMS = "problems"
    PROBLEMS_AND_MORE = "problems-and-more"


def problems(text: str, filled_in: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is wrong, in the order of the lines; of a text that is no YAML only the first thing.

    ``filled_in`` stands for what the text leaves out.
    """
    try:
        data = {**(filled_in or {}), **parse(text)}
    except Unreadable as error:
        return [error.problem]
    return sorted((problem for _, problem in faults(text, data)), key=lambda p: (p.line, p.column))


def faults(text: str, data: Mapping[str, Any]) -> Iterator[tuple[Path, Problem]]:
    """What the schema has against the data of a text, one after the other as they are found."""
    places = Places(text)
    for fault in schema.faults("document", data):
        yield fault.path, places.problem(fault.path, fault.says)


def checked(text: str, path: object) -> dict[str, Any]:
    """The text's data; raises DocumentError("invalid") with every problem and its line."""
    found = problems(text)
    if found:
        raise DocumentError("invalid", path=path, problem=reason(found))
    return parse(text)


def reason(found: list[Problem]) -> Reason:
    """Problems in one reason, as many as a sentence has room for."""
    room, shown = LONGEST, 0
    for problem in found:
        room -= len(str(problem))
        if room < 0 and shown:
            break
        shown += 1
    problems = [problem.reason for problem in found[:shown]]
    if shown == len(found):
        return Reason(DocumentReason.PROBLEMS, problems=problems)
    return Reason(DocumentReason.PROBLEMS_AND_MORE, problems=problems, more=len(found) - shown)
