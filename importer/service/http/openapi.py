"""The API's description: FastAPI's, with the problems, preconditions, keys and words of each route."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from importer.hub.snapshot import mapping
from importer.service.http import jobs
from importer.service.http.response_models import JOBS, Problem
from importer.service.problems import MEDIA_TYPE, example, problems
from importer.version import __version__

JSON = "application/json"
OPENAPI_TEXTS_OF_FASTAPI = "Successful Response"  # its own words, where a route has none
STATUS = {
    "200": "It was done; the body has the result",
    "201": "It was made; the body shows it",
    "202": "It was accepted, and is done later",
    "204": "It was done; there is no body",
}
# What a name in an address is, by the segment before it.
BEFORE = {
    "configs": "the document's name", "versions": "the version's number, from 1",
    "releases": "the release's number, from 1",
    "imports": "the id of the organisation's job",
    "jobs": "the job's id", "recheck": "the id of the recheck's job", "webhooks": "the webhook's id",
    "upkeep": "the finding's id", "keys": "the key's id", "problems": "the kind of problem",
    "export": "the format of the export", "report": "the format of the report",
    "gallery": "the entry's file: its name and .yaml",
    "config-json": "the document's name", "page": "the file of the page",
}  # fmt: skip
PARAMETERS = {
    "Idempotency-Key": "any text of yours: requests with one key are done once, and answered alike",
    "If-None-Match": "the ETag of the copy that you have: unchanged, the answer is 304",
    "If-Modified-Since": "the time of the copy that you have: unchanged, the answer is 304",
    "Accept-Encoding": "gzip for a compressed answer",
    "Last-Event-ID": "the id of the last event that you have; those behind it follow",
    "If-Match": "the ETag of the state that you have seen; after another change the answer is 412",
    "limit": "at most so many items on a page",
    "cursor": "`next` of the page before; none for the first page",
    "state": "only those in one of these states",
    "kind": "only those of this kind",
    "config": "only those of this document",
    "parent": "only the jobs of this list",
    "family": "only models of this family",
    "backend": "only those for this engine",
    "tool_parser": "only those with one of these tool parsers; `none` for those without one",
    "reasoning_parser": "only those with one of these reasoning parsers; `none` for those without one",
    "license": "only models with one of these licences; `none` where it is unknown",
    "quantization": "only models in one of these quantisations; `none` for plain weights",
    "tag": "only those with one of these tags",
    "cause": "only findings with this cause",
    "name": "only those of this document",
    "version": "the number of the version; by default the newest",
    "device": "the kind of device that the export is for",
    "approved_only": "refuse a document that is not approved",
    "published": "only entries that are served, or only those that are not",
}
# Values of strings in examples, by the names of their fields.
VALUES: Mapping[str, str] = {
    "name": "qwen3-8b", "config": "qwen3-8b", "names": "qwen3-8b", "file_name": "qwen3-8b.yaml",
    "gallery_element_name": "qwen3-8b", "model": "Qwen/Qwen3-8B", "reference": "Qwen/Qwen3-8B",
    "references": "Qwen/Qwen3-8B", "uri": "https://huggingface.co/Qwen/Qwen3-8B", "entry": "qwen3-8b.yaml",
    "url": "https://huggingface.co/Qwen/Qwen3-8B", "urls": "https://huggingface.co/Qwen/Qwen3-8B",
    "revision": "b968826d9c46dd6066d109eabc6255188de91218", "config_revision": "1",
    "digest": f"sha256:{'0' * 64}", "backend": "vllm", "backends": "vllm", "engine": "vllm", "native": "vllm",
    "engine_version": "0.33.0", "family": "qwen3", "license": "apache-2.0", "device": "8xh100", "q": "qwen3",
    "memory": "48GiB", "template": "pythonic", "by": "ann", "who": "ann", "created_by": "ann",
    "id": "01a203d0-f84b-70a0-9261-51243ba6a23e", "job": "01a203d0-f84b-70a0-9261-51243ba6a23e",
    "uuid": "01a203d0-f84b-70a0-9261-51243ba6a23e", "parent": "01a203d0-f84b-70a0-9261-51243ba6a23e",
    "finding": "01a203d0-f84b-70a0-9261-51243ba6a23e", "webhook": "01a203d0-f84b-70a0-9261-51243ba6a23e",
    "request": "01a203d0", "request_id": "01a203d0", "version": "0.33.0",
    "scopes": "read", "action": "import",
    "subject": "qwen3-8b", "kind": "chat", "review": "approved", "validation": "passed", "state": "draft",
    "path": "parameters.temperature", "key": "parameters.temperature", "pointer": "/set/temperature",
    "cause": "weights", "files": "config.json", "keys": "eos_token_id",
    "text": "name: qwen3-8b\nbackend: vllm\n",
    "type": "release.promoted", "types": "release.promoted", "format": "vllm-config", "source": "config.json",
    "status": "ready", "phase": "reading config.json", "step": "reading config.json",
    "href": "/v1/configs/qwen3-8b",
    "note": "a day in staging", "why": "too hot for tools", "reason": "it awaits a review",
    "tags": "chat", "description": "Qwen3 8B for chats with tools", "before": "0.6", "after": "0.7",
    "file_size": "16.4 GB", "downloaded_size": "2.1 GB", "estimated_size_display": "16.4 GB",
    "estimated_vram_display": "20.1 GiB", "lost": "importer: the engine has no option for it",
    "warnings": "The context was shortened to fit the device.", "modality": "text", "candidates": "vllm",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "next": "qwen3-8b", "unset": "temperature",
    "title": "Not found", "instance": "/v1/configs/qwen3-8b", "message": "The document was not found.",
    "error": "The document was not found.", "problem": "The document was not found.",
    "detail": "The document was not found.", "hint": "See /v1/configs.", "gallery": "huggingface",
}  # fmt: skip
# Examples of answers without a schema of their own, by the end of their address.
OPEN: Mapping[str, Any] = {
    "/receipt": {"schema": 1, "reference": "Qwen/Qwen3-8B", "decisions": {}, "evidence": []},
    "/versions/{number}": {
        "version": 1, "action": "import", "state": "draft", "digest": f"sha256:{'0' * 64}", "by": "ann",
        "at": "2026-11-22T13:09:00+00:00", "why": None, "changes": None, "name": "qwen3-8b",
        "text": "name: qwen3-8b\nbackend: vllm\n",
    },
    "/problems/{kind}": {
        "kind": "no-such-job", "title": "No such job", "status": 404, "sentence": "There is no job {job}.",
        "hint": "See /v1/jobs.",
    },
    "/config-json/{name}": {"name": "qwen3-8b", "backend": "vllm", "parameters": {"model": "Qwen/Qwen3-8B"}},
    "/v1/devices": [{
        "name": "h100-80g", "kind": "cuda", "memory": 84_932_978_278, "share": 0.92,
        "native": ["bf16", "fp16", "fp32", "fp8"],
        "node": 8, "engine": None, "basis": "seen",
        "source": "80 GB; total_gpu_memory 79.10 GiB in vLLM's log",
    }],
    "/healthz": {"status": "ok", "version": __version__},
    "/readyz": {"status": "ready"},
    "/report/{kind}": {
        "schema": 1, "name": "qwen3-8b", "model": "Qwen/Qwen3-8B",
        "revision": "b968826d9c46dd6066d109eabc6255188de91218", "digest": f"sha256:{'0' * 64}",
        "review": "approved", "validation": "never", "decisions": {}, "evidence": [], "runs": [],
    },
}  # fmt: skip
# Values of fields whose names have other meanings elsewhere, by the name of the schema.
OF_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "CreatedApiKey": {"key": "imp_0123456789ab_the-secret-that-is-shown-this-once"},
    "GalleryItem": {"state": "published", "reason": None},
    "EffectiveValue": {"status": "edited", "source": "edited by ann, 2026-11-22"},
    "LossOf": {"effect": "dropped", "kind": "no-option", "message": "LocalAI has no place for env"},
    "ReleaseSummary": {"served": True, "withdrawn": None},
    "CheckResult": {"errors": []},
    "Begun": {
        "status": "http://127.0.0.1:8080/models/jobs/01a203d0-f84b-70a0-9261-51243ba6a23e",
        "estimated_vram_bytes": 21_600_000_000, "estimated_vram_display": "21.6 GB",
        "estimated_size_bytes": 16_400_000_000, "estimated_size_display": "16.4 GB",
    },
    "OpStatus": {
        "deletion": False, "error": None, "processed": True, "message": "completed", "progress": 100,
        "phase": None, "cancelled": False, "cancellable": False,
    },
    "KnownBackend": {"name": "vllm", "modality": "text", "auto_detect": True},
    "Patched": {"message": "the configuration was written"},
}  # fmt: skip
CHANGE = {"path": "parameters.temperature", "before": 0.6, "after": 0.7}
CHANGES = ("changes", "edited", "differences")  # fields with a list of those
ANY = 0.6  # of a field that any value may have: that of the path above
ABSENT = ("next", "error", "revoked_at")  # null, where a field may be: the last page of what went well
DEEP = 12  # levels of an example


def add_texts(path: str, operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Add descriptions to parameters and answers that have none, and examples to bodies in JSON."""
    for parameter in operation.get("parameters", ()):
        parameter.setdefault("description", _of_parameter(path, parameter))
    for status, response in operation["responses"].items():
        content = response.get("content", {})
        if response["description"] == OPENAPI_TEXTS_OF_FASTAPI:
            response["description"] = _of_answer(status, content, schemas)
        _add_example(path, content, schemas)
    _add_example(path, operation.get("requestBody", {}).get("content", {}), schemas)


def _of_parameter(path: str, parameter: Mapping[str, Any]) -> str:
    name = parameter["name"]
    if parameter["in"] != "path":
        return PARAMETERS.get(name, "")
    return BEFORE.get(path.partition(f"/{{{name}}}")[0].rpartition("/")[2], "")


def _of_answer(status: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return the first line about the schema of the body, else a sentence about the status."""
    name = str(content.get(JSON, {}).get("schema", {}).get("$ref", "")).rpartition("/")[2]
    about = str(schemas.get(name, {}).get("description", "")).partition("\n")[0]
    return about.removesuffix(".") or STATUS.get(status, "")


def _add_example(path: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
    media = content.get(JSON)
    if media is None or "example" in media or "examples" in media:
        return
    own = next((value for end, value in OPEN.items() if path.endswith(end)), None)
    schema = media.get("schema", {})
    if own is not None and "properties" not in schema and "$ref" not in schema and "anyOf" not in schema:
        media["example"] = own
    elif not schema.get("$ref") or "examples" not in schemas[schema["$ref"].rpartition("/")[2]]:
        media["example"] = sample(schema, schemas)


def sample(schema: Any, schemas: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:
    """Return a value of a schema: its own example, else one made of the examples of its parts."""
    if not isinstance(schema, Mapping):
        return {}
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("example", "const"):
        if key in schema:
            return schema[key]
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        made = sample(schemas[kind], schemas, name, depth)
        own = OF_SCHEMA.get(kind, {}) if isinstance(made, Mapping) else {}
        return {**made, **{key: value for key, value in own.items() if key in made}} if own else made
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _of_choices(schema[key], schemas, name, depth)
    return _of_type(schema, schemas, name, depth)


def _of_choices(choices: list[Any], schemas: Mapping[str, Any], name: str, depth: int) -> Any:
    some = [one for one in choices if one.get("type") != "null"]
    if (depth >= DEEP or name in ABSENT) and len(some) < len(choices):
        return None
    return sample(some[0], schemas, name, depth)


def _of_type(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str, depth: int) -> Any:
    kind, deeper = schema.get("type"), depth + 1
    if kind == "object" or "properties" in schema:
        parts = schema.get("properties", {}) if depth < DEEP else {}
        if not parts and "$ref" in (inner := mapping(schema.get("additionalProperties"))):
            return {VALUES["id"]: sample(inner, schemas, name, deeper)}
        return {key: sample(part, schemas, key, deeper) for key, part in parts.items()}
    if kind == "array":
        return _of_list(schema, schemas, name, depth)
    if kind == "string":
        timed = schema.get("format") == "date-time"
        return "2026-11-22T13:09:00+00:00" if timed else VALUES.get(name, name)
    if kind == "boolean":
        return schema.get("default", True)
    if kind in {"integer", "number"}:
        return max(1, schema.get("minimum", 1))
    return None if kind == "null" else ANY


def _of_list(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str, depth: int) -> list[Any]:
    """Return a list of one item; of none where nothing is known about it."""
    one = sample(schema.get("items", {}), schemas, name, depth + 1)
    if one == {}:
        return [CHANGE] if name in CHANGES else []
    return [] if depth >= DEEP and not schema.get("minItems") else [one]


METHODS = ("get", "put", "post", "patch", "delete")
PROBLEM = {"$ref": "#/components/schemas/Problem"}
OF_FASTAPI = ("HTTPValidationError", "ValidationError")  # its own 422, for that importer has problems
TEXT = {"type": "string"}
DATA = {"type": "object", "title": "DocumentContent", "description": "A document's data, or a change of them"}
# draft-ietf-httpapi-ratelimit-headers
LIMITS = {
    "RateLimit-Policy": {"description": "the limit of the caller: q requests in w seconds", "schema": TEXT},
    "RateLimit": {"description": "r requests are left; in t seconds all are again", "schema": TEXT},
}
RETRY = {"description": "seconds to wait", "schema": TEXT}
WAITING = ("Too many", "Too many connections")  # titles of problems with that header
NEEDS_MATCH = ("put", "patch", "delete")


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document behind ``/openapi.json``, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= problem.pop("$defs", {}) | {"Problem": problem, "DocumentContent": DATA}
        schemas |= jobs.schemas()
        for name in OF_FASTAPI:
            schemas.pop(name, None)
        _times(schemas)
        schemas["Job"]["examples"] = [*JOBS.values()]
        schemas["Problem"]["examples"] = [example("no-such-job")]
        for path, method, operation in _operations(document):
            _problems(operation)
            _examples(operation)
            _preconditions(method, operation)
            _bodies(operation)
            _limits(operation)
            if "localai" in operation["tags"]:
                operation["responses"].pop("422", None)  # LocalAI's is 400
            add_texts(path, operation, schemas)
            if app.state.settings.loopback and "security" in operation:
                operation["security"] = [{}, *operation["security"]]  # on loopback no key is required
        app.openapi_schema = document
    return app.openapi_schema


def _times(schemas: Mapping[str, Any]) -> None:
    """Give the format of RFC 3339 to every property that is a time: ``at``, and what ends with it."""
    for schema in schemas.values():
        for name, one in schema.get("properties", {}).items():
            if name == "at" or name.endswith("_at"):
                for text in (one, *one.get("anyOf", ())):
                    if text.get("type") == "string":
                        text["format"] = "date-time"


def methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods of an address."""
    paths = describe(app)["paths"]
    taken = [
        m.upper()
        for p, operations in paths.items()
        if _regex(p).fullmatch(path)
        for m in METHODS
        if m in operations
    ]
    taken = taken or ["GET"]  # any other address is the page's
    return [*taken, "HEAD"] if "GET" in taken and not path.endswith("/events") else taken


@cache
def _regex(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods_of in document["paths"].items():
        yield from ((path, method, methods_of[method]) for method in METHODS if method in methods_of)


def _problems(operation: dict[str, Any]) -> None:
    """Give the problems one schema and one media type."""
    for response in operation["responses"].values():
        if MEDIA_TYPE in response.get("content", {}):
            response["content"] = {MEDIA_TYPE: {"schema": PROBLEM, **response["content"][MEDIA_TYPE]}}


def _examples(operation: dict[str, Any]) -> None:
    """Restore the nulls that FastAPI drops from examples."""
    for response in operation["responses"].values():
        for name, one in response.get("content", {}).get(JSON, {}).get("examples", {}).items():
            one["value"] = JOBS.get(name, one["value"])


def _bodies(operation: dict[str, Any]) -> None:
    """Describe the responses to a body that is not JSON, which no route reads, LocalAI's neither."""
    if JSON not in operation.get("requestBody", {}).get("content", {}):
        return
    if "localai" in operation["tags"]:
        examples = problems("bad-json")[400]["content"][MEDIA_TYPE]
        response = operation["responses"].setdefault("400", {"description": "Bad json", "content": {}})
        response["content"] = {**response["content"], MEDIA_TYPE: {"schema": PROBLEM, **examples}}
    else:
        examples = problems("wrong-type")[415]["content"][MEDIA_TYPE]
        response = {"description": "Wrong type", "content": {MEDIA_TYPE: {"schema": PROBLEM, **examples}}}
        operation["responses"].setdefault("415", response)


def _limits(operation: dict[str, Any]) -> None:
    """Describe the headers of limits, of each answer of a route that needs a key."""
    if "security" in operation:
        for response in operation["responses"].values():
            response.setdefault("headers", {})
            response["headers"] = {**response["headers"], **LIMITS}
    for response in operation["responses"].values():
        if MEDIA_TYPE in response.get("content", {}) and response["description"].endswith(WAITING):
            response["headers"] = {**response.get("headers", {}), "Retry-After": RETRY}


def _preconditions(method: str, operation: dict[str, Any]) -> None:
    """Describe If-Match as required, with 428 where it is absent."""
    for parameter in operation.get("parameters", ()):
        if method in NEEDS_MATCH and parameter["name"] == "If-Match":
            parameter["required"] = True
            parameter["schema"] = {"type": "string", "maxLength": 1000}
