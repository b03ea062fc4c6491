"""The frozen schemas (document, receipt, the line of --json, reports) and the check of a document against
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from importer import config
from importer.document import check as engine_check
from importer.document import template_file
from importer.document.document import Document, document_of
from importer.document.document_keys import KeyPath
from importer.document.model_conflicts import model_faults
from importer.document.model_facts import RecordedFacts
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

if TYPE_CHECKING:
    from importer.document.yaml_edit.source_map import YamlProblem

NAMES = (
    "document", "receipt", "report", "localai-model", "localai-gallery", "compose", "inferenceservice",
    "vllm-recipe", "validation", "comparison", "review", "recheck",
)  # fmt: skip


WIDE = 2**63


class SchemaReason(ReasonKind):
    """What a schema has against a value."""

    AT = "at {where}: {problem}"
    AT_TOP = "at the top level: {problem}"
    UNDER_PARAMETERS = "it belongs under parameters"
    UNKNOWN_KEY = "unknown key{near:?}"
    TOO_WIDE = "it does not fit in 64 bits"
    UNSEEN = "it holds control characters, or characters that turn the direction of a text"


# No person sees these in a list, and each changes how the rest is read.
UNSEEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@cache
def text(name: str) -> str:
    """Return the schema's own text; ``name`` is one of ``NAMES``."""
    return config.data(f"{name}.schema.json").read_text(encoding="utf-8")


@cache
def load(name: str) -> Mapping[str, Any]:
    """Return the schema as data."""
    schema: Mapping[str, Any] = json.loads(text(name))
    return schema


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(load(name))


def accepts(schema: Any, value: Any, root: Mapping[str, object]) -> bool:
    """Return whether jsonschema would accept ``value``; false as well for a keyword that ``FITS`` lacks.

    jsonschema takes longer to load than an import needs for its document, and only a misfit needs a message.
    """
    if isinstance(schema, bool):
        return schema
    return all(word in FITS and FITS[word](value, limit, schema, root) for word, limit in schema.items())


def _fits_type(value: Any, names: str | Sequence[str], *_: Any) -> bool:
    return any(TYPES[name](value) for name in ([names] if isinstance(names, str) else names))


def _fits_properties(
    value: Any, properties: Mapping[str, object], _: Any, root: Mapping[str, object]
) -> bool:
    return not isinstance(value, dict) or all(
        accepts(schema, value[key], root) for key, schema in properties.items() if key in value
    )


def _fits_further(value: Any, schema: Any, beside: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    known = beside.get("properties", {})
    return not isinstance(value, dict) or all(
        accepts(schema, inner, root) for key, inner in value.items() if key not in known
    )


def _fits_reference(value: Any, place: str, _: Any, root: Mapping[str, object]) -> bool:
    schema: Any = root
    for key in place.removeprefix("#/").split("/"):
        schema = schema[key]
    return accepts(schema, value, root)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, one: Any) -> bool:
    return type(value) is type(one) and bool(value == one)


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value % 1 == 0,
}
# From a keyword to the check of a value, with the keyword's own value, its schema and the whole schema.
FITS: Mapping[str, Callable[[Any, Any, Any, Mapping[str, object]], bool]] = {
    **dict.fromkeys(("$schema", "$defs", "title", "description", "format"), lambda *_: True),
    "$ref": _fits_reference,
    "type": _fits_type,
    "enum": lambda value, listed, *_: any(_same(value, one) for one in listed),
    "const": lambda value, one, *_: _same(value, one),
    "pattern": lambda value, pattern, *_: not isinstance(value, str) or bool(re.search(pattern, value)),
    "minLength": lambda value, least, *_: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda value, most, *_: not isinstance(value, str) or len(value) <= most,
    "minimum": lambda value, least, *_: not _is_number(value) or value >= least,
    "maximum": lambda value, most, *_: not _is_number(value) or value <= most,
    "exclusiveMinimum": lambda value, least, *_: not _is_number(value) or value > least,
    "minItems": lambda value, least, *_: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda value, most, *_: not isinstance(value, list) or len(value) <= most,
    "items": lambda value, schema, _, root: (
        not isinstance(value, list) or all(accepts(schema, one, root) for one in value)
    ),
    "required": lambda value, names, *_: not isinstance(value, dict) or all(name in value for name in names),
    "properties": _fits_properties,
    "additionalProperties": _fits_further,
    "propertyNames": lambda value, schema, _, root: (
        not isinstance(value, dict) or all(accepts(schema, name, root) for name in value)
    ),
}


@frozen
class SchemaFault:
    """A mismatch between the schema and the value at a path; the validator's own messages are text."""

    path: tuple[str | int, ...]
    message: Reason | str

    @property
    def reason(self) -> Reason:
        """Return the message as a reason."""
        text = self.message
        return text if isinstance(text, Reason) else Reason(DocumentReason.PROBLEMS, problems=(text,))


def faults(name: str, data: object, model: RecordedFacts | None = None) -> Iterator[SchemaFault]:
    """Yield everything that the schema has against ``data``; each unknown key by itself, with near names.

    ``model`` has the facts of a document's model, where they are recorded.
    """
    from jsonschema.exceptions import best_match

    for outer in _validator(name).iter_errors(data):
        error = best_match([outer]) or outer  # of several forms a value may have, the nearest
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            known = list(error.schema.get("properties", {}))
            odd = [key for key in error.instance if key not in known]
            yield from (SchemaFault((*path, key), _unknown(key, known)) for key in odd)
        else:
            yield SchemaFault(path, _short(error.message))
    if name == "document" and isinstance(data, Mapping):
        found = chain(
            wide_numbers(data), unseen(data), engine_check.faults(document_of(data)),
            model_faults(document_of(data), model), template_file.faults(document_of(data)),
        )  # fmt: skip
        yield from (SchemaFault(path, reason) for path, reason in found)


def check(name: str, data: Any, path: object, part: str | None = None) -> None:
    """Validate ``data``, or the property ``part`` alone; raises DocumentError("invalid") naming the key."""
    schema = load(name) if part is None else load(name)["properties"][part]
    if not accepts(schema, data, load(name)):
        _explain(name, schema, data, path)
    if name != "document":
        return
    checks = (wide_numbers(data), unseen(data), engine_check.faults(data), template_file.faults(data))
    found = next(chain(*checks), None)
    if found is not None:
        raise DocumentError("invalid", path=path, problem=at(*found))


def _explain(name: str, schema: Mapping[str, object], data: Any, path: object) -> None:
    """Raise DocumentError("invalid") with jsonschema's message, if it has one."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator(name).evolve(schema=schema).iter_errors(data))
    if error is not None:
        raise DocumentError(
            "invalid", path=path, problem=at(tuple(error.absolute_path), _short(error.message))
        )


def wide_numbers(
    data: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Reason]]:
    """Yield whole numbers of more than 64 bits: LocalAI, vLLM and many readers of JSON hold none."""
    if isinstance(data, int) and not -WIDE <= data < WIDE:
        yield path, Reason(SchemaReason.TOO_WIDE)
    if isinstance(data, Mapping | list):
        for key, value in data.items() if isinstance(data, Mapping) else enumerate(data):
            yield from wide_numbers(value, (*path, key))


def unseen(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Reason]]:
    """Yield the description where it holds characters that nobody sees: galleries show it as it is."""
    if isinstance(text := data.get("description"), str) and UNSEEN.search(text):
        yield ("description",), Reason(SchemaReason.UNSEEN)


def at(path: tuple[str | int, ...], problem: Reason | str) -> Reason:
    """Return a problem with its place in the data."""
    if not path:
        return Reason(SchemaReason.AT_TOP, problem=problem)
    return Reason(SchemaReason.AT, where=".".join(map(str, path)), problem=problem)


def _unknown(key: str, known: Sequence[str]) -> Reason:
    if "parameters" in known and key in load("document")["properties"]["parameters"]["properties"]:
        return Reason(SchemaReason.UNDER_PARAMETERS)
    return Reason(SchemaReason.UNKNOWN_KEY, near=get_close_matches(key, known, 3))


def _short(message: str) -> str:
    """Return the schema's message; a long one, which quotes the whole value, with its ends only.

    That a value may be null is left out: null is as good as no key.
    """
    message = message.removesuffix(", 'null'")
    return message if len(message) < 300 else f"{message[:100]} … {message[-100:]}"


LONGEST = 480  # characters of all problems in one sentence


class DocumentReason(ReasonKind):
    """What is wrong with a document."""

    PROBLEMS = "{problems:;}"
    PROBLEMS_AND_MORE = "{problems:;}; and {more} more"


def problems(text: str, model: RecordedFacts | None = None) -> list[YamlProblem]:
    """Return what is wrong, in the order of the lines; of a text that is no YAML only the first thing.

    ``model`` has the recorded facts of the model.
    """
    from importer.document.yaml_edit.source_map import UnreadableYaml, parse_yaml

    try:
        data = document_of(parse_yaml(text))
    except UnreadableYaml as error:
        return [error.problem]
    found = (problem for _, problem in document_faults(text, data, model))
    return sorted(found, key=lambda p: (p.line, p.column))


def document_faults(
    text: str, data: Document, model: RecordedFacts | None = None
) -> Iterator[tuple[KeyPath, YamlProblem]]:
    """Yield the faults in the data of a text, as they are found."""
    from importer.document.yaml_edit.source_map import SourceMap

    places = SourceMap(text)
    for fault in faults("document", data, model):
        yield fault.path, places.problem(fault.path, fault.message)


def checked(text: str, path: object, model: RecordedFacts | None = None) -> Document:
    """Return the text's data; raises DocumentError("invalid") with every problem and its line."""
    from importer.document.yaml_edit.source_map import parse_yaml

    mistakes = problems(text, model=model)
    if mistakes:
        raise DocumentError("invalid", path=path, problem=reason(mistakes))
    return parse_yaml(text)


def reason(mistakes: list[YamlProblem]) -> Reason:
    """Return the problems in one reason, as many as a sentence has room for."""
    room, shown = LONGEST, 0
    for problem in mistakes:
        room -= len(str(problem))
        if room < 0 and shown:
            break
        shown += 1
    problems = [problem.reason for problem in mistakes[:shown]]
    if shown == len(mistakes):
        return Reason(DocumentReason.PROBLEMS, problems=problems)
    return Reason(DocumentReason.PROBLEMS_AND_MORE, problems=problems, more=len(mistakes) - shown)
