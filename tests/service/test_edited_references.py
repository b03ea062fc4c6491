"""An edit's references are checked like an import's, at every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.commandline import BASE
from tests.serving import Service, problem, running

pytestmark = pytest.mark.slow
ANY = {"If-Match": "*"}
YAML = {"Content-Type": "application/yaml"}
REFUSED = (
    "s3://bucket/model", "S3://bucket/model", " s3://bucket/model ", "file:model", "file:///etc/passwd",
    "FILE:/etc/passwd", "file:org/model", "gs://a/b", "az://a/b", "oci://r/i", "ftp://h/a/b",
    "hf://datasets/a/b", "https://example.org/a/b", "http://169.254.169.254/latest/meta-data", "a/b/c",
    "a", "word", "a/..", "../a", "a/%2e%2e", "a/b%00c", "a/b\u0000", "a\u200b/b", "ａ/ｂ", "а/b", "a//b",
    "-a/b", "a/b@", "a/b@x..y", "/etc", "~/x", "~nobody-here/x", "./a", "..", "a/" + "b" * 3000,
    "https://huggingface.co/datasets/a/b", "data:,x", "javascript:a/b", "a\\b/c", "user:pass@host/a",
    "[::1]/a", "a/b.git",
)  # fmt: skip
DOORS = 4
PLACES = (("parameters", "model"), ("importer", "model_id"), ("importer", "reference"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a folder to import from; the caller has every scope, so that no scope refuses."""
    folder = tmp_path_factory.mktemp("references")
    (folder / "models" / "good").mkdir(parents=True)
    for file, data in BASE.items():
        (folder / "models" / "good" / file).write_text(json.dumps(data))
    words = ("--directory", str(folder / "models"), "--rate", "0", "--reads", "0", "--no-validate")
    with running(folder, *words) as one:
        assert one.imported("acme/base", name="edited")["state"] == "succeeded"
        yield one


def nested(path: tuple[str, ...], value: Any) -> Any:
    return value if not path else {path[0]: nested(path[1:], value)}


def imported(service: Service, reference: str) -> str | None:
    """What an import of a reference is refused as."""
    body = {"reference": reference, "backend": "vllm", "name": "other"}
    answer = service.client.post("/v1/imports", json=body)
    return None if answer.status_code == 202 else str(answer.json()["kind"])


def edits(
    service: Service, path: tuple[str, ...], reference: str, chosen: int | None
) -> Iterator[tuple[str, httpx.Response]]:
    """The reference through the chosen door, or through every one that takes data or text."""
    config, client = "/v1/configs/edited", service.client
    whole = client.get(config).json()
    data = json.loads(json.dumps(whole["data"]))
    data[path[0]][path[1]] = reference
    old = str(whole["data"][path[0]][path[1]])
    text = whole["text"].replace(f"{path[1]}: {old}", f"{path[1]}: {json.dumps(reference)}")
    doors = {
        "PATCH": lambda: client.patch(config, json=nested(path, reference), headers=ANY),
        "PUT": lambda: client.put(config, json=data, headers=ANY),
        "PUT text": lambda: client.put(config, content=text, headers=ANY | YAML),
        "check": lambda: client.post(f"{config}/check", content=text, headers=YAML),
    }
    assert len(doors) == DOORS
    for number, (name, ask) in enumerate(doors.items()):
        if chosen in (None, number):
            yield name, ask()


@pytest.mark.parametrize(
    "path",
    [PLACES[0], *(pytest.param(place, marks=pytest.mark.nightly) for place in PLACES[1:])],
    ids=".".join,
)
def test_an_edit_is_refused_as_an_import_is(service: Service, path: tuple[str, ...]) -> None:
    before = service.config("edited")
    taken: list[tuple[str, str]] = []
    for number, reference in enumerate(REFUSED):
        kind = imported(service, reference)
        assert kind is not None, reference
        chosen = None if number < 3 else number % DOORS  # the first ones at every door, the rest in turn
        for door, answer in edits(service, path, reference, chosen):
            refused = bool(answer.json()["errors"]) if door == "check" else answer.status_code == 422
            refused = answer.status_code == 400 if door == "localai" else refused
            if not refused:
                taken.append((door, reference))
            elif door.startswith("P") and (told := answer.json())["kind"] != "invalid":  # YAML has its own
                assert told["errors"][0]["pointer"] == f"/{'/'.join(path)}"
                assert told["kind"] == kind or kind == "bad-request"  # of the body's own schema
    assert taken == []
    assert service.config("edited") == before


def test_a_repository_of_an_artifact_is_a_reference_too(service: Service) -> None:
    data = service.config("edited")["data"]
    for reference in ("s3://bucket/model", "file:model", "/etc"):
        data["artifacts"][0]["source"]["repo"] = reference
        answer = service.edit("edited", {"artifacts": data["artifacts"]})
        assert problem(answer, 422, str(imported(service, reference)))["errors"][0]["pointer"] == (
            "/artifacts/0/source/repo"
        )


def test_a_document_gets_no_tag_of_another_program(service: Service) -> None:
    """An import asks the Hub what the tag is of; an engine would be started with it."""
    edited = service.edit("edited", nested(PLACES[0], "acme/base:Q4_K_M"))
    problem(edited, 422, "bad-reference")


def test_what_an_import_takes_an_edit_takes(service: Service) -> None:
    config = "/v1/configs/edited"
    good = str(service.folder / "models" / "good")
    for reference in ("acme/other", "https://huggingface.co/acme/base", "hf://acme/base", good, "acme/base"):
        for path in PLACES:
            answer = service.client.patch(config, json=nested(path, reference), headers=ANY)
            assert answer.status_code == 200, (reference, answer.text)


def test_a_reference_from_before_stays_and_an_edit_around_it_is_taken(service: Service) -> None:
    """A document of an older importer has one that is refused now; a version with it is not brought back."""
    config = "/v1/configs/old"
    assert service.imported("acme/base", name="old")["state"] == "succeeded"
    service.stop()
    _forge(service, "old", "s3://bucket/model")
    service.start("--no-validate", "--rate", "0")
    edited = service.client.patch(config, json={"parameters": {"temperature": 0.1}}, headers=ANY)
    assert edited.status_code == 200, edited.text
    assert edited.json()["data"]["parameters"]["model"] == "s3://bucket/model"
    moved = service.client.patch(config, json={"parameters": {"model": "s3://other/model"}}, headers=ANY)
    problem(moved, 422, "bad-reference")
    assert (
        service.client.patch(config, json={"parameters": {"model": "acme/base"}}, headers=ANY).status_code
        == 200
    )
    back = service.client.post(f"{config}/versions/2/restore", headers=ANY)
    problem(back, 422, "bad-reference")


def test_a_pattern_that_holds_up_an_engine_is_refused_at_every_door(service: Service) -> None:
    fields = {"tool_calls": {"open_pattern": "(a+)+$", "content": "json"}}
    template = {"start_anchor": "<s>", "fields": fields}
    assert service.imported("acme/base", name="edited")["state"] == "succeeded"
    before = service.config("edited")
    block = {"importer": {"response_template": template}}
    config, data = "/v1/configs/edited", before["data"]
    whole = data | {"importer": data["importer"] | block["importer"]}
    text = f"{before['text'].rstrip()}\n  response_template: {json.dumps(template)}\n"
    pointer = "/importer/response_template/fields/tool_calls/open_pattern"
    for answer in (
        service.client.patch(config, json=block, headers=ANY),
        service.client.put(config, json=whole, headers=ANY),
        service.client.put(config, content=text, headers=ANY | YAML),
    ):
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer
    [told] = service.client.post(f"{config}/check", content=text, headers=YAML).json()["errors"]
    assert (told["pointer"], told["kind"]) == (pointer, "free")
    assert service.client.get(config).json() == before


def _forge(service: Service, name: str, reference: str) -> None:
    """Write a version as an importer without the check did."""
    from importer.service.domain.gallery import Gallery
    from importer.storage.audit import AuditContext
    from importer.storage.database import Database

    database = Database(f"sqlite:///{service.folder / 'gallery.sqlite'}")
    with Gallery(database).change(AuditContext("ann", "edit")) as change:
        change.expect(name, None)
        path = change.checkout.path(name)
        path.write_text(path.read_text().replace("model: acme/base", f"model: {reference}"))
        change.save(name)
    database.close()
