"""Every kind of failure that the service alone knows is met somewhere; each kind has a status and a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.routing import APIRoute
from pydantic import ValidationError

from importer.app.parser_choice import check_edited
from importer.app.preferences import parse
from importer.document.yaml_edit.source_map import parse_yaml
from importer.engines.registries import versions
from importer.errors import HubError, ServiceError, UsageError
from importer.service import messages, problems, settings
from importer.service.app import create
from importer.service.domain.document_text import placed
from importer.service.domain.import_request import Import
from importer.service.http import imports
from importer.service.http.query import near_fields
from importer.service.settings import Settings

TESTS = "\n".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_service*.py"))
# No test brings these about: a database that is away, a job that kills its process again and again.
UNMET = {"no-database", "gave-up"}


def test_each_kind_is_met_by_a_test() -> None:
    met = {kind for kind in ServiceError.kinds if f'"{kind}"' in TESTS}
    assert met | UNMET == {*ServiceError.kinds}


def test_each_kind_has_a_status_and_a_page() -> None:
    pages = {kind: problems.explained(kind) for kind in messages.HINTS}
    assert not [kind for kind, page in pages.items() if page is None or not 400 <= page["status"] < 600]


def test_over_http_nothing_is_said_of_the_command_line() -> None:
    revision = UsageError("revision-conflict", inline="a", option="--set")  # the name of a branch
    told = problems.problem(revision)["detail"]
    assert told == "The reference names revision 'a' and 'revision' names '--set'."
    for kind in messages.HINTS:
        page = problems.explained(kind) or {}
        row = f"{page['sentence']} {page['hint']}"
        assert "'importer " not in row, kind
        assert "--" not in row, kind


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "give either reference or references"), ({"reference": 7}, "must be a string"),
        ({"reference": ""}, "must not be empty"), ({"reference": "a/b", "bakend": "vllm"}, "unknown field"),
        ({"reference": "a/b", "exact_fit": "no"}, "must be true or false"),
        ({"reference": "a/b", "set": []}, "must be an object"),
        ({"reference": "a/b", "unset": "x"}, "must be a list"),
        ({"reference": "a/b", "unset": ["x"] * 101}, "must have at most 100 items"),
        ({"reference": "a/b", "take": "all"}, "must be one of 'mine' or 'theirs'"),
        ({"reference": "a/b", "name": "x" * 201}, "must have at most 200 characters"),
        ({"reference": "a/b", "note": "\x1b"}, "it holds control characters"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_words(said: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Import.model_validate(said)
    assert [messages.mistake(dict(one)) for one in caught.value.errors()] == [told]


def test_an_unknown_field_of_a_body_is_told_with_near_names() -> None:
    routes = {(one.path, *one.methods): one for one in imports.router.routes if isinstance(one, APIRoute)}
    route = routes["/v1/imports", "POST"]

    def near(*place: str, kind: str = "extra_forbidden") -> list[str]:
        return [*near_fields(route, {"type": kind, "loc": place})]

    assert near("body", "refrence")[:1] == ["reference"]
    assert near("body", "engine-version") == ["engine_version"]
    assert near("body", "colour") == []
    assert near("query", "refrence") == near("body", "refrence", kind="missing") == []
    told = messages.mistake({"type": "extra_forbidden"}, ["reference", "references"])
    assert told == "unknown field (did you mean reference, references?)"


def test_each_setting_that_is_unknown_has_a_next_step() -> None:
    with pytest.raises(UsageError) as caught:
        parse({"nope.x": 1}, "vllm")
    assert messages.hint(caught.value).startswith("GET /v1/editor/")
    for tries, told in ((1, "after 1 try."), (3, "after 3 tries.")):
        failed = HubError("server", url="https://hub", status=500, tries=tries, said="")
        assert failed.message.endswith(told)


def test_a_cancel_and_a_retry_that_are_refused_do_not_name_each_other() -> None:
    ended, other = (messages.HINTS[kind] for kind in ("has-ended", "not-ended"))
    assert "starts it again" not in str(ended)
    assert "cancel " not in str(other)


def test_an_unknown_parser_is_told_at_its_name_with_near_names() -> None:
    before = (
        f"name: m\nbackend: vllm\nimporter: {{engine: {{name: vllm, version: {versions('vllm')[-1]}}}}}\n"
    )
    text = f'{before}options:\n- max_tokens:3\n- "tool_parser:hermess"\n'
    with pytest.raises(UsageError) as raised:
        check_edited(parse_yaml(before), parse_yaml(text))
    [found] = placed(text, raised.value)
    line = text.splitlines()[found["line"] - 1]
    start = found["column"] - 1
    assert line[start : start + found["length"]] == "hermess"
    assert "hermes" in found["fields"]["near"]


def test_settings_come_from_flags_then_variables_then_a_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 1\nrate = 2\nimports = 3\nbackend = ["mlx"]\n')
    environment = {
        "IMPORTER_SERVE_RATE": "20", "IMPORTER_SERVE_IMPORTS": "30", "IMPORTER_SERVE_VALIDATE": "no",
    }  # fmt: skip
    found = settings.read({"imports": "40"}, str(file), environment)
    assert (found.port, found.rate, found.imports) == (1, 20, 40)
    assert (found.backends, found.validate) == (("mlx",), False)


def test_a_password_is_not_shown() -> None:
    for url in ("postgresql://ann:sekret@h/x", "postgresql://h/x?user=ann&password=sekret&port=1"):
        shown = settings.without_password(url)
        assert ("sekret" in shown, "/x" in shown) == (False, True)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"port": "70000"}, ""), ({"port": "x"}, ""), ({"backend": ["llama"]}, ""),
        ({"log_level": "loud"}, ""),
        ({}, "odd = 1"), ({}, "port = true"), ({}, "port ="), ({}, "validate = 3"), ({}, "backend = [1]"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_meant_is_told_with_its_place(
    flags: dict[str, object], text: str, tmp_path: Path
) -> None:
    (tmp_path / "serve.toml").write_text(text)
    with pytest.raises(ServiceError) as caught:
        settings.read(flags, str(tmp_path / "serve.toml"), {})
    assert caught.value.kind == "bad-setting"
    assert any(word in caught.value.message for word in ("--", "serve.toml"))


def test_an_unknown_variable_is_told_with_a_near_name() -> None:
    with pytest.raises(ServiceError, match=r"IMPORTER_SERVE_PROT: .*did you mean IMPORTER_SERVE_PORT"):
        settings.read({}, None, {"IMPORTER_SERVE_PROT": "80", "IMPORTER_HOME": "/x"})


def test_every_address_but_loopback_is_another() -> None:
    assert all(Settings(host=h).loopback for h in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(Settings(host=h).loopback for h in ("0.0.0.0", "::", "10.0.0.1", "example.org"))


@pytest.mark.slow
def test_the_description_is_whole() -> None:
    """Each operation says what it is, what it may be refused with, and what a generated client calls it."""
    described = create(Settings()).openapi()
    found = {(path, m): told for path, one in described["paths"].items() for m, told in one.items()}
    assert len({told["operationId"] for told in found.values()}) == len(found) > 20
    schemas = described["components"]["schemas"]
    assert {"Job", "DocumentSummary", "Problem", "Preview", "History"} <= set(schemas)
    for (path, method), told in found.items():
        assert told["summary"], path
        assert told["tags"], path
        if not path.startswith("/v1/"):
            continue
        content = told["responses"]["default"]["content"][problems.MEDIA_TYPE]
        assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
        if method in ("put", "patch", "delete") and path == "/v1/configs/{name}":
            assert [p["required"] for p in told["parameters"] if p["name"] == "If-Match"] == [True]


@pytest.mark.slow
def test_every_example_is_one() -> None:
    described = create(Settings()).openapi()
    schemas = described["components"]["schemas"]

    def check(examples: Iterable[Any], schema: Mapping[str, Any]) -> None:
        for example in examples:
            jsonschema.validate(example, {**schema, "components": described["components"]})

    for schema in schemas.values():
        check(schema.get("examples", ()), schema)
    for told in (told for one in described["paths"].values() for told in one.values()):
        for part in (told.get("requestBody", {}), *told["responses"].values()):
            for content in part.get("content", {}).values():
                found = [e["value"] for e in content.get("examples", {}).values()]
                check([*found, *([content["example"]] if "example" in content else ())], content["schema"])
        body = told.get("requestBody", {}).get("content", {}).get("application/json", {})
        name = json.dumps(body).rpartition("#/components/schemas/")[2].partition('"')[0]
        assert not body or "example" in body or schemas[name]["examples"], told["operationId"]
