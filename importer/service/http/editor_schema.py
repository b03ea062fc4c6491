"""``/v1/editor/{backend}``: what an editor completes and checks, for one version of an engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from importer import config
from importer.config_file import argument_check, engine_arguments, schema
from importer.config_file.engine_arguments import Argument
from importer.engines import registries
from importer.errors import EngineError, UsageError
from importer.service.desk import json_text
from importer.service.http.etags import IfNoneMatch, same
from importer.service.problems import problems
from importer.service.security.auth import Reader

router = APIRouter(prefix="/v1", tags=["preview"])
EXAMPLE: JsonDict = {
    "backend": "vllm", "version": "0.33.0", "versions": ["0.32.0", "0.33.0"],
    "schema": {"type": "object", "properties": {"backend": {"type": "string"}}},
    "arguments": [{
        "name": "max_num_seqs", "type": "integer", "choices": [], "limits": {"ge": 1},
        "flag": "--max-num-seqs", "aliases": [], "many": False, "server": False,
    }],
    "configs": {}, "variables": ["VLLM_LOGGING_LEVEL"], "tool_parsers": ["hermes"],
    "reasoning_parsers": ["qwen3"],
}  # fmt: skip


class EditorArgument(BaseModel):
    """A key of ``engine_args``, or of one of its maps."""

    name: str
    type: str = Field(description="in the words of JSON Schema; of a few values all of them")
    choices: list[Any]
    limits: dict[str, float] = Field(description="by ge, gt, le, lt")
    flag: str
    aliases: list[str]
    many: bool = Field(description="whether it takes a list")
    server: bool = Field(description="whether it is of the server alone, beside the engine")
    config: str | None = Field(default=None, description="the map in `configs` with its keys")


class EditorData(BaseModel):
    """Schema of a document, and arguments, variables and parsers of one version of an engine."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    backend: str
    version: str | None = Field(description="whose arguments these are; null where none are known")
    versions: list[str] = Field(description="with known arguments, the oldest first")
    document: dict[str, Any] = Field(alias="schema", description="JSON Schema with descriptions")
    arguments: list[EditorArgument]
    configs: dict[str, list[EditorArgument]]
    variables: list[str] = Field(description="names for `env`")
    tool_parsers: list[str]
    reasoning_parsers: list[str]


@router.get(
    "/editor/{backend}", response_model=EditorData,
    responses={304: {"description": "It is as before"}, **problems("unknown-engine")},
    summary="What an editor completes",
)  # fmt: skip
def editor(
    backend: Annotated[str, Path(max_length=50, description="the engine")],
    who: Reader,
    version: Annotated[
        str | None, Query(max_length=50, pattern=r"^[0-9][0-9A-Za-z.+]*$", description="of the engine")
    ] = None,
    seen: IfNoneMatch = None,
) -> Response:
    """Return schema, arguments, types, choices and limits; of a version that is not known, those of the one
    before it. Defaults are the engine's own and not in these lists.
    """
    del who
    if backend not in config.NAMES:
        raise EngineError("unknown-engine", name=backend, known=", ".join(config.NAMES))
    registry = engine_arguments.load(backend, version)
    body, tag = _body(backend, None if registry is None else registry.version)
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if same(seen, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


@cache
def _body(backend: str, version: str | None) -> tuple[bytes, str]:
    registry = engine_arguments.load(backend, version)
    arguments = argument_check.arguments_of(backend, version)
    configs = {} if registry is None else registry.configs
    body = json_text({
        "backend": backend, "version": version, "versions": [*engine_arguments.versions(backend)],
        "schema": schema.load("document"), "arguments": _rows(arguments),
        "configs": {name: _rows(rows) for name, rows in configs.items()},
        "variables": [] if registry is None else sorted(registry.variables),
        **_parsers(backend, version),
    }).encode()  # fmt: skip
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _parsers(backend: str, version: str | None) -> dict[str, list[str]]:
    try:
        known = registries.load(backend, version)
    except UsageError:  # no version with known parsers
        return {"tool_parsers": [], "reasoning_parsers": []}
    return {
        "tool_parsers": sorted(known.names("tool")),
        "reasoning_parsers": sorted(known.names("reasoning")),
    }


def _rows(arguments: Mapping[str, Argument]) -> list[dict[str, Any]]:
    return [
        {
            "name": name, "type": argument_check.kind_name(one.kind), "choices": [*one.choices()],
            "limits": dict(one.limits), "flag": one.flag, "aliases": [*one.aliases], "many": one.many,
            "server": one.server, "config": _config(one),
        }
        for name, one in sorted(arguments.items())
    ]  # fmt: skip


def _config(one: Argument) -> str | None:
    """Return the name of the map that an argument is, alone or as one of several types."""
    if not isinstance(one.kind, Mapping):
        return None
    kinds = (one.kind, *one.kind.get("any_of", ()))
    return next(
        (str(kind["config"]) for kind in kinds if isinstance(kind, Mapping) and "config" in kind), None
    )
