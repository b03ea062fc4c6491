"""The request of an import as clients send it and jobs keep it, and what it asks the importer for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from importer import backends
from importer.app import preferences
from importer.app.import_request import ImportRequest
from importer.app.request import MOST, OPTIONS, ImportOptions, Option
from importer.document import name_allocator, schema
from importer.errors import HubError, Setting, UsageError
from importer.hub import resolve
from importer.hub.reference import LONGEST as REFERENCE
from importer.hub.reference import parse
from importer.hub.snapshot import Snapshot
from importer.service.domain.document_text import LONGEST, pointer
from importer.service.domain.failures import about
from importer.service.settings import Settings

AUTO = "auto"
NOTE = 4000  # characters


def _spoken(text: str) -> str:
    """Return a person's text; raises ValueError for characters that a database or a terminal rejects."""
    if any((ord(c) < 32 and c not in "\n\r\t") or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise ValueError("it holds control characters")
    return text


def _standard(value: Any) -> Any:
    """Return a JSON value of the standard; Python's own reader also accepts NaN, Infinity and lone
    surrogates.
    """
    inside = (
        (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    for one in inside:
        _standard(one)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it holds a number that JSON does not have")
    if isinstance(value, str) and any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise ValueError("it holds half of a character")
    return value


def _small(values: dict[str, object]) -> dict[str, object]:
    """Return the values of ``set``; raises ValueError where they are too large for a document."""
    if len(json.dumps(values)) > LONGEST:
        raise ValueError(f"must have at most {LONGEST:,} characters")
    return values


def _settable(key: str) -> str:
    """Return a key of ``set``; raises ValueError for one with ``=``, which separates key and value."""
    if "=" in key:
        raise ValueError("a key holds no '='")
    return key


Spoken = Annotated[str, Field(max_length=NOTE), AfterValidator(_spoken)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_spoken)]
Key = Annotated[Text, AfterValidator(_settable)]
Values = Annotated[dict[Key, Annotated[Any, AfterValidator(_standard)]], AfterValidator(_small)]


def _conflicting(key: str) -> str:
    """Return a path of ``on_conflict``; raises ValueError for one that no document has."""
    head, _, rest = key.partition(".")
    known = schema.load("document")["properties"]
    if head == "parameters" and rest:
        head, known = rest.partition(".")[0], known[head]["properties"]
    if head.startswith('"') or head in known:
        return key
    near = ", ".join(get_close_matches(head, known, 3))
    raise ValueError(f"unknown key (did you mean {near}?)" if near else "unknown key")


Choices = dict[Annotated[Text, AfterValidator(_conflicting)], Literal["mine", "theirs"]]
# Any value passes: a line that is no reference is refused by itself, and the other lines are imported.
Line = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": REFERENCE})]
EXAMPLE: JsonDict = {"reference": "Qwen/Qwen3-8B", "backend": backends.DEFAULT, "set": {"temperature": 0.6}}
# Exactly one of both; in this form, and not as ``oneOf``, generators of clients still make one type of it.
ONE: JsonDict = {
    "if": {"required": ["references"]},
    "then": {"not": {"required": ["reference"]}},
    "else": {"required": ["reference"]},
}


class Body(BaseModel):
    """A request's body; an unknown member is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)


class _Sources(Body):
    """What an import is of."""

    reference: Annotated[str, Field(min_length=1, max_length=REFERENCE)] | None = Field(
        default=None, description="owner/name, owner/name@revision, hf://owner/name, or a Hub URL"
    )
    references: list[Line] | None = Field(
        default=None, min_length=1, description="many references, imported as one job with a job for each"
    )


def _declared(option: Option) -> tuple[Any, Any]:
    """Return the field of an option: its type, and default, description and limits."""
    kinds, about = option.kinds, option.about
    if bool in kinds:
        return bool, Field(default=False, description=about)
    if Mapping in kinds:
        return Values, Field(default={}, max_length=option.most, description=about)
    if Iterable in kinds:
        return list[Text], Field(default=[], max_length=option.most, description=about)
    if Literal in kinds:
        return option.type, Field(default=None, description=about)
    if str in kinds:
        text = Annotated[str, Field(pattern=option.pattern)] if option.pattern else Text
        return text | None, Field(default=None, description=about)
    return int | None, Field(default=None, ge=1, le=MOST, description=about)


SERVED = {option.word: option for option in OPTIONS.values() if option.served}
SINGLE = [*(word for word, option in SERVED.items() if option.single), "on_conflict"]
if TYPE_CHECKING:  # ``options`` has the fields with their types
    _Asked = _Sources
else:
    _FIELDS = {word: _declared(option) for word, option in SERVED.items()}
    _Asked = pydantic.create_model("_Asked", __base__=_Sources, **_FIELDS)


class Import(_Asked):
    """An import: one reference or a list of them, and the user's options."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE], **ONE})

    take: Literal["mine", "theirs"] | None = Field(
        default=None, description="whose value counts where an edit and this import differ"
    )
    on_conflict: Choices = Field(
        default={},
        max_length=OPTIONS["settings"].most,
        description="the same for single keys, before `take`: paths of `conflicts`",
    )
    note: Spoken | None = Field(default=None, description="why, for the history")

    @model_validator(mode="after")
    def _one(self) -> Import:
        if (self.reference is None) is (self.references is None):
            raise ValueError("give either reference or references")
        if self.reference is None and any(getattr(self, word) for word in SINGLE):
            names = f"{', '.join(SINGLE[:-1])} and {SINGLE[-1]}"
            raise ValueError(f"{names} are for one reference, not for a list")
        return self

    @property
    def options(self) -> ImportOptions:
        """Return the options of the request."""
        return cast("ImportOptions", {option.name: getattr(self, word) for word, option in SERVED.items()})

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the values of ``set``."""
        return cast("Mapping[str, object]", self.options["settings"])


def request_of(body: Import, settings: Settings) -> ImportRequest:
    """Return the import request of a body; raises UsageError and ServiceError("no-directories")."""
    from importer.app.parser_choice import check_chosen

    reference, options = str(body.reference), body.options
    check_place(reference, options["revision"], settings)
    if options["name"] is not None:
        name_allocator.check(options["name"])
    options["backend"] = backend = _backend(options["backend"], settings)
    try:
        request = ImportRequest.of(reference, options)
    except UsageError as error:
        raise _pointed(error, body.settings, backend) from None
    if backend not in (None, AUTO):
        check_chosen(request, str(backend))
    return request


def snapshot_of(request: ImportRequest, settings: Settings, commit: str | None = None) -> Snapshot:
    """Return the snapshot of a request, at ``commit`` where an earlier step has found it.

    Raises ImporterError; that of a revision which is not there points to the field that names it.
    """
    reference = parse(request.reference, request.revision)
    if commit is not None and reference.repo:
        reference = replace(reference, revision=commit)
    try:
        return resolve(reference, settings.places)
    except HubError as error:
        if error.kind != "revision-not-found":
            raise
        field = "/reference" if request.revision is None else "/revision"
        raise error.but(errors=[{"pointer": field, "detail": error.message}]) from None


def _pointed(error: UsageError, values: Mapping[str, object], backend: str | None) -> UsageError:
    """Return the failure; one of ``set`` has ``errors`` that point to each invalid key."""
    failed: list[tuple[str, UsageError]] = []
    for key, value in values.items() if error.details.get("setting") is Setting.SET else ():
        try:
            preferences.parse({key: value}, backend)
        except UsageError as one:
            failed.append((key, one))
    if not failed:
        return error
    errors = [{"pointer": pointer(("set", key)), "detail": about(e)} for key, e in failed]
    return failed[0][1].but(errors=errors)


def _backend(backend: str | None, settings: Settings) -> str | None:
    """Return the requested backend, or the only one of this service; raises UsageError("bad-value")."""
    if backend is None:
        return settings.backends[0] if len(settings.backends) == 1 else None
    if backend not in (AUTO, *settings.backends):
        problem = f"must be one of {', '.join(settings.backends)} or {AUTO}"
        raise UsageError("bad-value", setting=Setting.BACKEND, value=backend, problem=problem)
    return backend


def check_place(reference: str, revision: str | None, settings: Settings) -> None:
    """Raise UsageError for no reference, ServiceError("no-directories") for a folder not to be read."""
    directory = parse(reference, revision).directory
    if directory is not None:
        settings.places.folder(directory)
