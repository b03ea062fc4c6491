"""The text of a document in a request: its data, and its mistakes with their places."""

from __future__ import annotations

import re
from itertools import islice

from importer.document.document import Document
from importer.document.model_facts import RecordedFacts
from importer.document.schema import document_faults
from importer.document.yaml_edit.source_map import SourceMap, UnreadableYaml, YamlProblem, parse_yaml
from importer.errors import DocumentError, ImporterError
from importer.hub.snapshot import listed
from importer.reasons import Reason
from importer.service import messages

LONGEST = 64_000  # characters of a document, ten times a long one; YAML is read slowly
WORD = re.compile(r"""'[^']*'|"[^"]*"|[^\s:,\[\]{}#]+""")  # a key, or a plain value
MOST = 200  # mistakes in a response


def _read(text: str, model: RecordedFacts | None) -> tuple[Document, list[dict[str, object]]]:
    """Return the data, and each mistake with JSON pointer, line, column and message."""
    if len(text) > LONGEST:
        detail = f"must have at most {LONGEST:,} characters"
        place = {"line": 1, "column": 1, "length": 1}
        return {}, [{"pointer": "", **place, "kind": "too-long", "fields": {}, "detail": detail}]
    try:
        data = parse_yaml(text)
    except UnreadableYaml as error:
        return {}, [_mistake(text, error.problem, ())]
    found = islice(document_faults(text, data, model), MOST)
    mistakes = [_mistake(text, problem, path) for path, problem in found]
    return data, sorted(mistakes, key=lambda m: (m["line"], m["column"]))


def _mistake(text: str, problem: YamlProblem, path: tuple[str | int, ...]) -> dict[str, object]:
    """Return a problem with its place in the text, its typed kind with fields, and its message."""
    kind, fields = _kind(problem.message, path)
    return {
        "pointer": pointer(path), "line": problem.line, "column": problem.column,
        "length": _length(text, problem), "kind": kind, "fields": fields,
        "detail": messages.text(problem.message),
    }  # fmt: skip


def _kind(message: Reason | str, path: tuple[str | int, ...]) -> tuple[str, dict[str, object]]:
    """Return the kind of the innermost reason; a text is of the schema, or of YAML."""
    inner: object = message
    while isinstance(inner, Reason) and isinstance(inner.fields.get("problem"), Reason | str):
        inner = inner.fields["problem"]
    if not isinstance(inner, Reason):
        return ("schema" if path else "yaml"), {}
    data = inner.to_json()
    return str(inner.kind.value), {key: value for key, value in data.items() if key != "kind"}


def _length(text: str, problem: YamlProblem) -> int:
    """Return the characters of the word at a problem's place; at least 1."""
    lines = text.splitlines()
    line = lines[problem.line - 1] if problem.line <= len(lines) else ""
    found = WORD.match(line, problem.column - 1)
    return max(1, 0 if found is None else len(found[0]))


def pointer(path: tuple[str | int, ...]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def placed(text: str, error: ImporterError) -> list[dict[str, object]]:
    """Return the errors that a check behind the schema has at pointers, each with its place in the text: the
    word that the error is about, where it has one, with near names.
    """
    places, found = SourceMap(text), []
    for one in listed(error.details.get("errors")):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in str(one["pointer"]).split("/")[1:]]
        path = tuple(int(step) if step.isdecimal() else step for step in steps)
        problem, word = places.problem(path, str(one["detail"])), str(error.details.get("name", ""))
        at = (text.splitlines() or [""])[problem.line - 1].find(word, problem.column - 1) if word else -1
        column, length = (problem.column, _length(text, problem)) if at < 0 else (at + 1, len(word))
        place = {"line": problem.line, "column": column, "length": length}
        near = str(error.details.get("near", "")).split(", ")
        found.append({**one, **place, "kind": error.kind, "fields": {"near": [*filter(None, near)]}})
    return found


def looked_at(
    text: str, name: str, model: RecordedFacts | None
) -> tuple[Document | None, list[dict[str, object]]]:
    """Return the text's data where it is a document of that name, and its mistakes, up to ``MOST``.

    ``model`` has the facts of the model that its import recorded.
    """
    data, mistakes = _read(text, model)
    if mistakes:
        return None, mistakes
    if data.get("name") == name:
        return data, []
    reason = f"is {data.get('name')!r}; the name cannot be changed here"
    at = SourceMap(text).problem(("name",), reason)
    return None, [_mistake(text, at, ("name",)) | {"kind": "other-name"}]


def checked(text: str, name: str, model: RecordedFacts | None) -> Document:
    """Return the text's data; raises DocumentError("invalid") with the mistakes."""
    data, mistakes = looked_at(text, name, model)
    if data is None or mistakes:
        problem = "; ".join(f"line {m['line']}: {m['detail']}" for m in mistakes[:5])
        raise DocumentError("invalid", path=f"{name}.yaml", problem=problem, errors=mistakes)
    return data
