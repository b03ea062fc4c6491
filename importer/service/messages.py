"""The messages of the service: next steps with routes and fields, and pydantic's mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from importer.errors import STEPS, ImporterError, Setting, one_line
from importer.reasons import Fields, Text
from importer.sentences import worded, worded_field


def _not_ready(fields: Fields) -> str:
    """{state}: Validate and approve it first, or correct what a validated one lacks."""
    lacks = fields["state"] == "validated"
    first = "Correct that, or import the model again" if lacks else "Validate and approve it first"
    return f"{first}; what the gallery serves stays as it is."


def _parameters(fields: Fields) -> str:
    """Did you mean {near}? /openapi.json has all."""
    if not fields["near"]:
        return "Send no query: this route has no parameters there."
    return worded("Did you mean {near}? /openapi.json has all.", fields)


def _no_key(fields: Fields) -> str:
    """{sent} or not: This API key is unknown or revoked, or this address needs one."""
    return "This API key is unknown or revoked." if fields["sent"] else "This address needs an API key."


# Texts in place of those of the kinds, by key.
INSTEAD: Mapping[str, Text] = {
    "UsageError.revision-conflict": "The reference names revision {inline!r} and 'revision' names {option!r}.",
    "ServiceError.no-key": _no_key,
    "DocumentError.not-approved": "{name} is not approved (review: {review}), and approved_only asks for that.",
    "Setting.database": "the server's database",
    "Setting.endpoint": "the server's HF_ENDPOINT",
    "Setting.hub_hosts": "the server's IMPORTER_HUB_HOSTS",
    "Setting.parsers": "the server's IMPORTER_PARSERS",
}  # fmt: skip


# The next step by kind.
HINTS: Mapping[str, Text] = STEPS | {
    "bad-value": "See /openapi.json on the server for what {setting} takes.",
    "unknown-setting": "{near} GET /v1/editor/BACKEND has all keys of a backend.",
    "unknown-format": "Did you mean {near}? /openapi.json has all.",
    "unknown-probe": "Did you mean {near}?",
    "unknown-model": "It serves: {known}.",
    "bad-header": "A header has a name of letters and digits, and a value of one line.",
    "unknown-report": "Known: {known}.",
    "unknown-device": "GET /v1/devices lists all; several are 8xh100-80g. Or send 'memory'.",
    "not-found": "Check the spelling; if it is private, give the server a HF_TOKEN that may read it.",
    "gated": "Ask for access on {url}, then give the server a HF_TOKEN of that account, and start it again.",
    "private": "Check the spelling; if it is private, give the server a HF_TOKEN that may read it, and start the server again.",
    "forbidden": "Give the server a HF_TOKEN that may read it, unless the message names another cause.",
    "network": "Check the server's network and its HF_ENDPOINT, then try it again.",
    "not-cached": "Start the server once without HF_HUB_OFFLINE.",
    "bad-weights": "Leave exact_fit out; no engine can be trusted with these weights either.",
    "tokens-beyond": "Use weights and a tokenizer of one model: no engine can serve these together.",
    "exists": "Choose another name.",
    "no-receipt": "Import the model again; every version before stays in the history.",
    "conflict": "Nothing was changed: send 'take' for all values, or 'on_conflict' with a choice for each key: 'mine' or 'theirs'.",
    "not-a-folder": "Check the server's folders.",
    "cannot-write": "Free space on the server; nothing was left behind.",
    "no-such-document": "See /v1/configs for what there is.",
    "changed": "Get it again and look at what is new.",
    "not-approved": "Approve it once you have read it, or leave approved_only out.",
    "chat-template": "Import the model again with 'template'.",
    "needs-approval": "Read it and approve it first.",
    "never-validated": "POST to /v1/configs/{name}/validate first.",
    "engine-missing": "Install {name} on the server, or start a worker where it is installed.",
    "engine-python": "Correct {variable} on the server, or install {name} there.",
    "port-taken": "Try it again.",
    "no-weights": "Import a snapshot that has both.",
    "weights-not-local": "Validate it with 'fetch', and they are fetched to the worker's disk.",
    "locked": "Give the key that it takes.",
    "would-not-run": "{remedy}",
    "worker-failed": "Check the engine's environment on the server.",
    "program-missing": "Install {program} on the server.",
    "bad-request": "See /openapi.json on the server for what it takes.",
    "bad-json": "Send JSON, with Content-Type: application/json.",
    "no-key": "Send it as 'Authorization: Bearer KEY'; the server's operator makes one.",
    "wrong-scope": "Use one with the scope {scope}; it has {has}.",
    "needs-approver": "Use a key with the scope approve.",
    "code-not-approved": "Read it, approve it, then validate it.",
    "foreign-page": "Send it from the service's own page, or with an API key.",
    "foreign-host": "Use the address it listens on, or have its operator allow that name.",
    "no-such-page": "See /openapi.json for what there is.",
    "page-not-built": "Run make page in the checkout, and start the server again.",
    "wrong-method": "See /openapi.json for what it takes.",
    "no-such-job": "See /v1/jobs.",
    "no-such-version": "See /v1/configs/{name}/history.",
    "precondition-failed": "Get it again and look at what is new; its ETag goes into If-Match.",
    "precondition-required": "Send If-Match with the ETag that GET answered.",
    "not-ended": "Only one that failed or was cancelled can be; one that succeeded is asked for anew.",
    "has-ended": "See its result; only one that failed or was cancelled can be tried again.",
    "ambiguous": "Ask again with one of the candidates as 'backend', a job by its retry; 'auto' leaves it to the server's own machine.",
    "no-directories": "Import from the Hub, or have the server's operator allow that folder.",
    "body-too-large": "Send less at once.",
    "wrong-type": "Send {wanted}.",
    "unknown-parameter": _parameters,
    "too-many-connections": "Try again in {seconds} s.",
    "too-many": "Wait {seconds} s and try again.",
    "too-slow": "Send it at once; the server's operator can allow a large one more time.",
    "busy": "Try again in {seconds} s, or import: a job waits for its turn.",
    "not-ready": "Ask another one, or try again in {seconds} s.",
    "no-database": "Try again in {seconds} s; the server's log tells more.",
    "gave-up": "See the server's log, then try it again.",
    "digest-required": "Send the 'digest' that GET /v1/configs/{name} answered, or If-Match with its ETag.",
    "not-ready-to-release": _not_ready,
    "other-backend": "Import the model for {backend} without 'name', or with another: that document is one of its own.",
    "other-device": "Leave 'name' out and send 'per_device', so that {device} has its own document, or choose another.",
    "internal": "See the server's log, and report it.",
}  # fmt: skip
# Kinds that are met at the command line alone, or before a server answers.
ELSEWHERE = frozenset({
    "bad-option", "editor", "edited", "probes-failed", "output-closed", "cannot-open", "bad-setting", "no-gallery",
    "newer-gallery", "early-gallery", "not-listening", "no-documents", "no-such-key",
})  # fmt: skip
# Values that no request reaches, or whose schema refuses a wrong one first.
UNREACHED = frozenset({
    Setting.ADAPTER, Setting.KEY_NAME, Setting.DATABASE, Setting.ENDPOINT, Setting.GOAL, Setting.HUB_HOSTS, Setting.PARSERS, Setting.CONCURRENCY, Setting.CONTEXT,
})  # fmt: skip
# The field of a request that a setting is.
FIELDS: Mapping[Setting, str] = {setting: setting.value for setting in Setting if setting not in UNREACHED}
# By pydantic's type of error, over its context.
MISTAKES: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "unknown field",
    "extra_forbidden_near": "unknown field (did you mean {near}?)",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_too_short": "must not be empty",  # nowhere else is a least length above 1
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} items",  # keys of an object, too
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "value_error": "{error}",
}  # fmt: skip


def field(error: ImporterError) -> str | None:
    """Return the field of the setting that a failure is about."""
    setting = error.details.get("setting")
    return FIELDS.get(setting) if isinstance(setting, Setting) else None


def detail(error: ImporterError) -> str:
    """Return the failure in one line."""
    return error.sentence(INSTEAD)


def hint(error: ImporterError) -> str:
    """Return the next step in one line."""
    return one_line(worded(HINTS.get(error.kind, ""), error.details, INSTEAD))


def text(value: object) -> str:
    """Return a reason, or another field, in the words of this front end."""
    return str(worded_field(value, INSTEAD))


def mistake(error: Mapping[str, Any], near: Sequence[str] = ()) -> str:
    """Return one of pydantic's errors in a few words; ``near`` are names like that of an unknown field."""
    kind, context = str(error["type"]), {**error.get("ctx", {}), "near": ", ".join(near)}
    sentence = MISTAKES.get(f"{kind}_near" if near else kind)
    return str(error["msg"]) if sentence is None else sentence.format(**context)
