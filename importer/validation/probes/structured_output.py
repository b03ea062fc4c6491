"""The probe of structured output: an answer to a request with a JSON schema is valid to it."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, ask_both_ways
from importer.validation.expectations import CommonReason, Expectations, no_chat
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import PERSON, PERSON_SCHEMA
from importer.validation.remedy import ALLOW_TOKENS
from importer.validation.reply import Reply
from importer.validation.tool_markup import unended


class StructuredReason(ReasonKind):
    """The reasons of ``structured-output``."""

    NOT_JSON = "not-json", "the content is not JSON: {text!r}"
    IN_THOUGHT = "in-thought", "the content is not JSON (the reasoning holds an object): {text!r}"
    UNFIT = "unfit", "the content does not fit the schema: {problem}"
    FITS = "fits", "fits the schema: {text}"
    SPACES = "spaces", "the schema bound the answer, then white space came to the limit of tokens: {text}"


NAME = "structured-output"
LESSON = "With a reasoning parser the schema bound the thoughts, or nothing at all, with HTTP 200."
ENDLESS = 20  # characters of white space at the end: more than any layout of two members has
# What may follow white space in a person, so that it is whole.
RESTS = ("", "}", " 1}", ": 1}", '"age": 1}', ', "age": 1}', '"x", "age": 1}', ': "x", "age": 1}')
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON_SCHEMA, "strict": True}}


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine without schemas."""
    return no_chat(promise) or promise.lacks("structured")


def run(ctx: Context) -> Outcome:
    """Judge an answer with a schema, whole and streamed."""
    return unended(ask_both_ways(ctx, PERSON, judge, response_format=FORMAT), PERSON, ctx)


def judge(reply: Reply) -> Outcome:
    """Judge an answer that must be a person."""
    if reply.finish_reason == "length":
        begun = reply.content.rstrip()
        if len(reply.content) - len(begun) >= ENDLESS and any(_fits(begun + rest) for rest in RESTS):
            return Pass(Reason(StructuredReason.SPACES, text=begun[:80]))
        return Inconclusive(Reason(CommonReason.AT_LIMIT), "model", ALLOW_TOKENS)
    text = reply.content.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        thought = reply.reasoning.strip().startswith("{")
        seen = StructuredReason.IN_THOUGHT if thought else StructuredReason.NOT_JSON
        return Fail(Reason(seen, text=text[:80]), "engine")
    error = next(Draft202012Validator(PERSON_SCHEMA).iter_errors(value), None)
    if error is not None:
        return Fail(Reason(StructuredReason.UNFIT, problem=error.message[:120]), "engine")
    return Pass(Reason(StructuredReason.FITS, text=text[:80]))


def _fits(text: str) -> bool:
    """Return whether a text is a person: a grammar lets a model go on with white space for ever."""
    try:
        return Draft202012Validator(PERSON_SCHEMA).is_valid(json.loads(text))
    except (ValueError, RecursionError):
        return False
