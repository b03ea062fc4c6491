"""An answer asked for by JSON schema is an object of that schema."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import Promise, no_chat
from importer.validation.prompts import PERSON, PERSON_SCHEMA
from importer.validation.reply import Reply
from importer.validation.thoughts import unended
from importer.validation.ways import asked

NAME = "structured-output"
LESSON = "With a reasoning parser the schema bound the thoughts, or nothing at all, with HTTP 200."
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON_SCHEMA, "strict": True}}


def needs(promise: Promise) -> str | None:
    """An engine that can hold a model to a schema."""
    return no_chat(promise) or promise.lacks("structured")


def run(ctx: Context) -> Outcome:
    """Whole and streamed."""
    return unended(asked(ctx, PERSON, judge, response_format=FORMAT), PERSON, ctx)


def judge(reply: Reply) -> Outcome:
    """An answer that has to be a person."""
    if reply.finish_reason == "length":
        return Inconclusive("the answer came to the limit of tokens", "model", "Allow more tokens.")
    text = reply.content.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        where = " (the reasoning holds an object)" if reply.reasoning.strip().startswith("{") else ""
        return Fail(f"the content is not JSON{where}: {text[:80]!r}", "engine")
    error = next(Draft202012Validator(PERSON_SCHEMA).iter_errors(value), None)
    if error is not None:
        return Fail(f"the content does not fit the schema: {error.message[:120]}", "engine")
    return Pass(f"fits the schema: {text[:80]}")
