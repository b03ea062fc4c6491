"""What a page of documents and one document cost, in statements and calls: figures that need no clock."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import pytest
from sqlalchemy import event, update
from starlette.testclient import TestClient

from importer.service.app import create
from importer.service.domain.gallery import Gallery
from importer.service.http import configs
from importer.service.http.models import Document, DocumentSummary
from importer.service.settings import Settings
from importer.storage import tables
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.schema import prepare

DOCUMENTS = 120
YAML = """\
name: {name}
backend: vllm
parameters:
  model: acme/{name}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of documents."""
    folder = tmp_path_factory.mktemp("gallery")
    database = Database(f"sqlite:///{folder / 'gallery.sqlite'}")
    prepare(database)
    with Gallery(database).change(AuditContext("ann", "import")) as change:
        for name in (f"m{number:03}" for number in range(DOCUMENTS)):
            change.checkout.find(name)
            change.checkout.path(name).write_text(YAML.format(name=name), encoding="utf-8")
            change.save(name)
    database.close()
    return folder


class Cost:
    """SQL statements, and the calls of importer's functions in the thread of one route's function."""

    def __init__(self, code: CodeType) -> None:
        self.code, self.thread = code, 0
        self.statements: list[str] = []
        self.calls: list[str] = []

    def profile(self, frame: FrameType, what: str, _argument: object) -> None:
        if what == "call" and frame.f_code is self.code:
            self.thread, self.statements, self.calls = threading.get_ident(), [], []
        elif what == "return" and frame.f_code is self.code:
            self.thread = 0
        elif (
            what == "call"
            and self.thread == threading.get_ident()
            and "/importer/" in frame.f_code.co_filename
            and not frame.f_code.co_filename.endswith("/database.py")  # the heartbeat may have the connection
        ):
            self.calls.append(
                f"{frame.f_code.co_filename.rpartition('/importer/')[2]}:{frame.f_code.co_name}"
            )

    def executed(self, _connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        if self.thread == threading.get_ident() and statement != "BEGIN":
            self.statements.append(statement)


@contextmanager
def counted(folder: Path, route: Callable[..., object]) -> Iterator[tuple[TestClient, Cost]]:
    """The service in this process, whose calls are counted while a route's function runs."""
    cost = Cost(route.__code__)  # type: ignore[attr-defined]
    settings = Settings(database=f"sqlite:///{folder / 'gallery.sqlite'}", imports=0, validate=False)
    app, before = create(settings), (sys.getprofile(), threading.getprofile())
    threading.setprofile(cost.profile)
    try:
        with TestClient(app, base_url="http://127.0.0.1") as client:
            event.listen(app.state.desk.database.engine, "before_cursor_execute", cost.executed)
            yield client, cost
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


def test_a_page_is_two_statements_and_renders_no_row(folder: Path) -> None:
    with counted(folder, configs.list_) as (client, cost):
        calls = {}
        for limit in (50, 100):
            client.get("/v1/configs", params={"limit": limit, "cursor": "name~~m000"})
            found = client.get("/v1/configs", params={"limit": limit, "cursor": "name~~m001"}).json()
            assert (len(found["items"]), found["total"]) == (limit, DOCUMENTS)
            assert len(cost.statements) == 2  # the page, and the mark of the last change
            calls[limit] = len(cost.calls)
    assert calls[100] == calls[50]  # no function is called for a row


def test_a_query_is_read_once_whatever_parameters_the_route_has(folder: Path) -> None:
    """The functions of FastAPI that a page and a document run."""
    url = f"sqlite:///{folder / 'gallery.sqlite'}"
    app = create(Settings(database=url, imports=0, validate=False))
    calls: list[str] = []

    def profile(frame: FrameType, what: str, _argument: object) -> None:
        if what == "call" and "/fastapi/" in frame.f_code.co_filename:
            calls.append(frame.f_code.co_name)

    async def asked(path: str) -> int:
        calls.clear()
        sys.setprofile(profile)
        answer = await client.get(path)
        sys.setprofile(before)
        assert answer.status_code == 200
        return len(calls)

    async def both() -> tuple[int, int]:
        async with app.router.lifespan_context(app):
            page, document = "/v1/configs?limit=1", "/v1/configs/m001"
            for path in (page, document):  # the first one finds what each later one has
                await client.get(path)
            return await asked(page), await asked(document)

    before = sys.getprofile()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    page, document = asyncio.run(both())
    assert page <= document


def test_a_filtered_page_reads_the_index_and_no_more_rows_than_it_has(folder: Path) -> None:
    with counted(folder, configs.list_) as (client, cost):
        found = client.get("/v1/configs", params={"state": "draft", "q": "acme", "limit": 5}).json()
        assert (len(found["items"]), found["next"]) == (5, "name~~m004")
        chosen = cost.statements[0]
    database = Database(f"sqlite:///{folder / 'gallery.sqlite'}")
    with database.reading() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {chosen}", ("acme", "draft", 6, 0)).all()
    database.close()
    steps = [row[3] for row in plan]
    assert any("COVERING INDEX configs_listed" in step for step in steps), steps
    assert not any(step.startswith("USE TEMP B-TREE") for step in steps[:2]), steps


def test_one_document_is_one_statement_and_parses_nothing(folder: Path) -> None:
    with counted(folder, configs.get_) as (client, cost):
        document = client.get("/v1/configs/m007").json()
        assert len(cost.statements) == 1
        assert not [call for call in cost.calls if "yaml" in call or "receipt" in call], cost.calls
    assert {*document} >= {*Document.model_fields}
    assert document["data"]["parameters"] == {"model": "acme/m007"}
    assert document["text"] == YAML.format(name="m007")


def test_a_row_is_what_the_api_declares(folder: Path) -> None:
    with counted(folder, configs.list_) as (client, _):
        answer = client.get("/v1/configs", params={"limit": 1})
        assert answer.headers["Content-Type"] == "application/json"
        [row] = answer.json()["items"]
    assert DocumentSummary.model_validate(row).model_dump() == row
    assert {*row["facts"]} == {*DocumentSummary.model_fields["facts"].annotation.model_fields}  # type: ignore[union-attr]


def test_what_another_importer_rendered_is_rendered_anew(folder: Path) -> None:
    database = Database(f"sqlite:///{folder / 'gallery.sqlite'}")
    with database.writing() as connection:
        old = {"shown": json.dumps({"warnings": ["of another version"]}), "shown_by": "0"}
        connection.execute(update(tables.configs).where(tables.configs.c.name == "m009").values(old))
    database.close()
    with counted(folder, configs.get_) as (client, _):
        found, same = (client.get(f"/v1/configs/{name}").json() for name in ("m009", "m008"))
    assert {*found} == {*same}
    assert found["warnings"] == same["warnings"]
