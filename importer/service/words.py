"""What is said to whoever asks over HTTP, in place of pydantic's words and of the command line's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.errors import KINDS, ImporterError

# Sentences that name an option of the command line, and say it here by its field.
DETAILS: Mapping[str, str] = {
    "revision-conflict": "The reference names revision {inline!r} and 'revision' names {option!r}.",
    "not-approved": "{name} is not approved (review: {review}), and approved_only asks for that.",
}
# Next steps that differ from those of the command line; format strings over the error's details.
HINTS: Mapping[str, str] = {
    "bad-option": "See /openapi.json on the server for what it takes.",
    "no-such-document": "See /v1/configs for what there is.",
    "no-such-key": "See /v1/keys for those that there are.",
    "changed": "Get it again and look at what is new.",
    "conflict": "Nothing was changed: ask again with 'take', 'mine' or 'theirs' (what this import says).",
    "exists": "Choose another name.",
    "unknown-format": "Near names: {near}; /openapi.json has all.",
    "not-approved": "Approve it once you have read it, or leave approved_only out.",
    "never-validated": "POST to /v1/configs/{name}/validate first.",
    "chat-template": "Import the model again with 'template'.",
    "bad-weights": "Leave exact_fit out; no engine can be trusted with these weights either.",
    "network": "Check the server's network and its HF_ENDPOINT, then try it again.",
    "private": "Give the server a HF_TOKEN that may read it, and start it again.",
    "gated": "Ask for access on {url}, then give the server a HF_TOKEN of that account, and start it again.",
    "not-found": "Check the spelling; if it is private, give the server a HF_TOKEN that may read it.",
    "weights-not-local": "Validate it with 'fetch', and they are fetched to the worker's disk.",
    "no-weights": "Import a snapshot that has both.",
    "unknown-device": "Known: {known}; in front of it how many (8xh100-80g). Or say 'memory'.",
}  # fmt: skip
# The field that an option of the command line is here.
FIELDS: Mapping[str, str] = {
    "--set": "set", "--unset": "unset", "--name": "name", "--template": "template", "--device": "device",
    "--memory": "memory", "--revision": "revision", "--engine-version": "engine_version",
    "--backend": "backend", "--note": "note", "--digest": "digest", "NAME": "name",
}  # fmt: skip
# By pydantic's type of error, over its context.
MISTAKES: Mapping[str, str] = {
    "missing": "it is needed",
    "extra_forbidden": "there is no such field",
    "string_type": "it has to be text",
    "int_type": "it has to be a whole number",
    "int_parsing": "it has to be a whole number",
    "int_from_float": "it has to be a whole number",
    "bool_type": "it has to be true or false",
    "bool_parsing": "it has to be true or false",
    "list_type": "it has to be a list",
    "dict_type": "it has to be an object",
    "model_type": "it has to be an object",
    "model_attributes_type": "it has to be an object",
    "string_too_short": "it is empty",  # nowhere else is a least length above 1
    "too_short": "it is empty",
    "string_too_long": "it is longer than {max_length} characters",
    "too_long": "it has more than {max_length} items",  # keys of an object, too
    "greater_than_equal": "it is less than {ge}",
    "less_than_equal": "it is more than {le}",
    "literal_error": "it is one of {expected}",
    "enum": "it is one of {expected}",
    "string_pattern_mismatch": "it has to match {pattern}",
    "value_error": "{error}",
}  # fmt: skip


def field(error: ImporterError) -> str | None:
    """The field that an error of the command line's options is about."""
    if error.kind != "bad-option":
        return None
    return FIELDS.get(str(error.details["option"]).partition(" ")[0])


def detail(error: ImporterError) -> str:
    """Its sentence; an option is called by its field."""
    if (row := DETAILS.get(error.kind)) is not None:
        return row.format(**error.details)
    named = field(error)
    return error.message if named is None else f"{named}: {error.details['problem']}."


def hint(error: ImporterError) -> str:
    """Its next step over HTTP."""
    row = HINTS.get(error.kind)
    return error.hint if row is None else row.format(**error.details)


def detail_row(kind: str) -> str:
    """The sentence as a format string, for what explains kinds."""
    return DETAILS.get(kind, KINDS[kind][1].sentence)


def hint_row(kind: str) -> str:
    """The same as a format string, for what explains kinds."""
    return HINTS.get(kind, KINDS[kind][1].hint)


def mistake(found: Mapping[str, Any]) -> str:
    """One of pydantic's errors in a few words."""
    row = MISTAKES.get(found["type"])
    return str(found["msg"]) if row is None else row.format(**found.get("ctx", {}))
