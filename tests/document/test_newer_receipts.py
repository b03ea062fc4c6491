"""Receipts of newer schemas are refused, and stay as they are; those of no schema are none."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from importer.document.document_keys import digest
from importer.document.receipt import SCHEMA
from importer.document.store import Store
from importer.document.yaml_edit.source_map import read
from importer.service.app import create
from importer.service.settings import Settings
from importer.storage import documents
from importer.storage.database import Database
from importer.storage.documents import Version
from importer.storage.schema import prepare
from tests.commandline import Desk, load
from tests.serving import problem

LISTED = {
    "model": "org/m", "revision": None, "backend": "vllm", "family": None, "kind": "chat", "review": "draft",
    "validation": "never", "reason": None, "release": None, "description": "", "license": None, "tags": None,
    "attention": None, "checked_at": None, "links": "{}", "shown": "{}", "shown_by": "1",
}  # fmt: skip


def renumbered(desk: Desk, number: Any) -> str:
    """Import a document, and give its receipt another number; return the receipt's text."""
    assert desk("acme/base", "--no-validate").code == 0
    path = desk.folder / "models" / "base.receipt.json"
    path.write_text(json.dumps(load(path) | {"schema": number, "new": "thing"}))
    return path.read_text()


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "1", None, [1], {}])
def test_a_number_of_no_schema_is_no_receipt(desk: Desk, number: Any) -> None:
    renumbered(desk, number)
    assert Store(desk.folder / "models").load("base").receipt is None


@pytest.mark.parametrize(
    "command",
    [("show", "base"), ("review", "base"), ("review", "base", "--approve"), ("recheck", "base"),
     ("report", "base"), ("export", "base", "localai"), ("acme/base", "--no-validate"), ("validate", "base")],
)  # fmt: skip
def test_a_newer_receipt_is_refused_in_one_sentence(desk: Desk, command: tuple[str, ...]) -> None:
    renumbered(desk, SCHEMA + 1)
    before = desk.files()
    ran = desk(*command)
    assert ran.code == 5, ran.out + ran.err
    assert (
        f"base.receipt.json is of a newer importer: its schema is {SCHEMA + 1}, and this one reads up to "
        f"{SCHEMA}."
    ) in ran.out + ran.err
    assert desk.files() == before


def test_a_document_with_a_newer_receipt_is_not_removed(desk: Desk) -> None:
    assert desk("acme/base", "--no-validate").code == 0
    shutil.copytree(desk.folder / "models", desk.folder / "before")
    renumbered(desk, SCHEMA + 1)
    told = desk("gallery", "diff", "before", "models").out
    assert told.startswith("No entry of the gallery changes.\n\n### Not read\n\n- ")
    assert "of a newer importer" in told


@pytest.mark.slow
def test_a_newer_receipt_in_a_gallery_is_a_problem(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(desk.folder))
    database_of = f"sqlite:///{desk.folder / 'gallery.sqlite'}"
    text = renumbered(desk, SCHEMA + 1)
    path = desk.folder / "models" / "base.yaml"
    data = read(path.read_text(), path)
    row = Version("base", 1, "import", path.read_text(), json.dumps(data), text,
                  None, digest(data), "draft", "ann", "2026-01-01T00:00:00+00:00", None)  # fmt: skip
    with closing(Database(database_of)) as database:
        prepare(database)
        with database.writing() as connection:
            documents.add(connection, row, LISTED)
    settings = Settings(validate=False, imports=0, database=database_of)
    with TestClient(create(settings), base_url="http://127.0.0.1") as client:
        for place in ("base", "base/receipt", "base/decisions"):
            said = problem(client.get(f"/v1/configs/{place}"), 409, "newer-receipt")
            assert "is of a newer importer" in said["detail"]
        assert client.get("/v1/configs").status_code == 200
