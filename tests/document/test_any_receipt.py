"""Whatever JSON a receipt holds: it counts as none, or gives a finding or an error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from importer.app.import_ import merge_plan, plan, write
from importer.app.import_request import ImportRequest
from importer.app.recheck import recheck
from importer.app.session import ImportSession
from importer.document import schema
from importer.document.name_allocator import Names
from importer.document.store import Store, receipt_path
from importer.errors import ImporterError, InternalError
from importer.hub.local import AllowedFolders
from tests.any_json import CHATML, altered, plain
from tests.toy_shapes import TOYS

WHOLE = schema.load("receipt")


class Written:
    """A document of a directory, its receipt, and what reads both again."""

    def __init__(self, folder: Path, bench: ImportSession) -> None:
        model = folder / "model"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(TOYS["full: grouped heads"]))
        (model / "chat_template.jinja").write_text(CHATML)
        self.bench, self.places = bench, AllowedFolders.below([folder])
        self.store = Store(folder / "documents")
        self.store.folder.mkdir()
        request = ImportRequest(str(model), device="h100-80g", name="toy")
        made = plan(request, Names(self.store), bench, self.places)
        write(merge_plan(made, self.store), self.store)
        self.path = receipt_path(self.store.path("toy"))
        self.receipt: Any = plain(json.loads(self.path.read_text()))

    def again(self, receipt: Any) -> None:
        """Recheck the document with another receipt."""
        self.path.write_text(json.dumps(receipt))
        recheck(self.store, "toy", self.bench, self.places, offline=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with ImportSession(proves=False) as bench:
        yield Written(tmp_path_factory.mktemp("receipts"), bench)


def test_the_receipt_as_it_was_written_is_one(written: Written) -> None:
    written.again(written.receipt)
    assert schema.accepts(WHOLE, written.receipt, WHOLE)


@pytest.mark.slow
@given(st.data())
def test_a_quick_check_accepts_what_jsonschema_accepts(written: Written, draw: st.DataObject) -> None:
    receipt = draw.draw(altered(written.receipt))
    assert not schema.accepts(WHOLE, receipt, WHOLE) or Draft202012Validator(WHOLE).is_valid(receipt)


@pytest.mark.slow
@given(st.data())
@example(None)
def test_any_receipt_is_a_finding_or_an_error_of_ours(written: Written, data: Any) -> None:
    request = written.receipt["request"] | {"device": [1]}
    receipt = written.receipt | {"request": request} if data is None else data.draw(altered(written.receipt))
    try:
        written.again(receipt)
    except ImporterError as error:
        told = error
    else:
        return
    assert told.message
    assert not isinstance(told, InternalError)
