"""Receipts of older schemas are read in the present words; those of newer ones are refused."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from importer.config_file import schema
from importer.config_file.receipt import SCHEMA, STEPS, migrate
from importer.config_file.store import Store
from importer.errors import DocumentError
from importer.service.app import create
from importer.service.settings import Settings
from importer.storage import documents
from importer.storage.database import Database
from importer.storage.documents import Version
from importer.storage.migrations import migrate as migrate_database
from tests.commandline import BASE, Desk, desk, load
from tests.hubserver import Repo
from tests.service.test_retention import LISTED
from tests.serving import problem

__all__ = ["desk"]
FIXTURES = Path(__file__).parents[1] / "fixtures"
# Imported from ``OLD`` with ``--backend vllm --device h100-80g``, edited (temperature 0.6), approved and run
# by the importer that wrote schema 1.
RECEIPT: Any = json.loads((FIXTURES / "receipts" / "old.receipt.json").read_text(encoding="utf-8"))
TEMPLATE = (
    "{% if tools %}TOOLS {{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% for c in m.tool_calls or [] %}@@{{ c.function.name }}@@{{ c.function.arguments | tojson }}@@"
    "{% endfor %}\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
)
OLD = {
    **BASE,
    "chat_template.jinja": TEMPLATE,
    "tokenizer_config.json": {"response_template": {"fields": {"thinking": {}}}},
}
OLD_WORDS = ("abstained", "claimed", "says", "mend")


@pytest.fixture
def old(desk: Desk) -> Desk:
    """A desk with the document that the importer of schema 1 wrote, and its repository."""
    desk.hub.repos["acme/old"] = Repo(OLD)
    (desk.folder / "models").mkdir()
    for name in ("old.yaml", "old.receipt.json"):
        shutil.copy(FIXTURES / "receipts" / name, desk.folder / "models" / name)
    return desk


def lying(desk: Desk) -> Any:
    """The receipt as it lies in the folder."""
    return load(desk.folder / "models" / "old.receipt.json")


def words(data: Any) -> set[str]:
    """All keys and all statuses; data of others aside: documents, exchanges, fields of reasons."""
    if isinstance(data, list):
        return set().union(*map(words, data))
    if not isinstance(data, dict):
        return set()
    ours = {k: v for k, v in data.items() if k not in ("data", "exchanges", "fields", "reasons", "value")}
    status = {ours["status"]} if isinstance(ours.get("status"), str) else set()
    return set(ours).union(status, *map(words, ours.values()))


def test_the_fixture_has_every_old_word() -> None:
    assert RECEIPT["schema"] == 1
    assert set(OLD_WORDS) <= words(RECEIPT)


def test_schema_1_is_read_in_the_present_words() -> None:
    found = migrate(RECEIPT, "x")
    schema.check("receipt", found, "x")
    assert found["schema"] == SCHEMA
    assert not words(found).intersection(OLD_WORDS)
    assert found["decisions"]["tool_parser"]["status"] == "unknown"
    assert found["decisions"]["reasoning_parser"]["status"] == "declared"
    assert [e["message"] for e in found["evidence"]] == [e["says"] for e in RECEIPT["evidence"]]
    assert found["fit"]["message"] == RECEIPT["fit"]["says"]
    outcomes = found["validation"]["outcomes"]
    assert [o["remedy_message"] for o in outcomes] == [o["mend"] for o in RECEIPT["validation"]["outcomes"]]
    # All else is as it was.
    assert {k for k in RECEIPT if found[k] != RECEIPT[k]} == {
        "schema", "decisions", "evidence", "fit", "validation",
    }  # fmt: skip


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(OLD_WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*OLD_WORDS, "status", "message", "outcomes", "x"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(
    st.fixed_dictionaries(
        {"schema": st.sampled_from([*STEPS, SCHEMA])},
        optional=dict.fromkeys(
            ("decisions", "evidence", "fit", "validation", "partial", "earlier", "x"), ANY
        ),
    )
)
def test_a_migration_is_idempotent(data: dict[str, Any]) -> None:
    before = json.dumps(data)
    once = migrate(data, "x")
    assert once["schema"] == SCHEMA
    assert migrate(once, "x") == once
    assert set(once) == set(data)
    assert json.dumps(data) == before


@given(ANY)
def test_data_of_no_schema_stay_as_they_are(data: Any) -> None:
    assert migrate(data, "x") == data


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "1", None, [1], {}])
def test_a_number_of_no_schema_is_no_receipt(old: Desk, number: Any) -> None:
    (old.folder / "models" / "old.receipt.json").write_text(json.dumps(RECEIPT | {"schema": number}))
    assert Store(old.folder / "models").load("old").receipt is None


def test_an_old_document_is_shown_reviewed_and_exported(old: Desk) -> None:
    before = old.files()
    row = json.loads(old("list", "--json").out)
    assert (row["review"], row["validation"]) == ("approved", "failed")
    shown = old("show", "old")
    assert shown.code == 0
    assert "Set tool_parser:hermes in options" in shown.out + shown.err
    page = json.loads(old("review", "old", "--json").out)
    schema.check("review", page, "stdout")
    assert page["last_review"]["note"] == "read"
    assert page["edited"] == [{"path": "parameters.temperature", "before": 0.6, "after": 0.5}]
    report = json.loads(old("report", "old", "--format", "json").out)
    schema.check("validation", report, "stdout")
    assert not words(report).intersection(OLD_WORDS)
    assert old("report", "old", "--format", "junit").out.count("<testcase") == 4
    assert old("export", "old", "localai").code == 0
    assert old.files() == before
    said = old("approve", "old", "--note", "again")
    assert said.code == 0, said.err
    assert lying(old)["schema"] == SCHEMA
    assert [w["note"] for w in lying(old)["history"]] == ["read", "again"]
    schema.check("receipt", lying(old), "old")


def test_only_the_version_for_cards_has_changed_for_a_recheck(old: Desk) -> None:
    before = old.files()
    ran = old("recheck", "--json")
    line = json.loads(ran.out)
    assert (ran.code, line["decisions"]) == (1, []), line
    assert [cause["what"] for cause in line["causes"]] == ["engine"]
    assert {change["path"] for change in line["document"]} == {
        "importer.engine.version", "importer.engine.frontend"
    }  # fmt: skip
    assert old.files() == before


def test_an_import_keeps_the_edits_and_renews_the_rest(old: Desk) -> None:
    same = old("acme/old", "--no-validate", "--engine-version", "0.32.0")
    assert same.code == 0, same.err
    row = json.loads(old("list", "--json").out)
    assert (row["review"], row["validation"]) == ("approved", "failed")
    old.hub.repos["acme/old"].commit({**OLD, "generation_config.json": {"temperature": 0.6, "top_p": 0.8}})
    assert old("recheck").code == 1
    ran = old("acme/old", "--no-validate")
    assert ran.code == 0, ran.err
    text = (old.folder / "models" / "old.yaml").read_text()
    assert "  temperature: 0.5" in text
    assert "  top_p: 0.8  # vendor: generation_config.json\n" in text
    assert "- reasoning_parser:hf  # declared: tokenizer_config.json\n" in text
    found = lying(old)
    schema.check("receipt", found, "old")
    assert not words(found).intersection(OLD_WORDS)
    assert [w["note"] for w in found["history"]] == ["read"]


@pytest.mark.parametrize(
    "command",
    [("show", "old"), ("review", "old"), ("approve", "old"), ("recheck", "old"), ("report", "old"),
     ("export", "old", "localai"), ("acme/old", "--no-validate"), ("validate", "old")],
)  # fmt: skip
def test_a_newer_receipt_is_refused_in_one_sentence(old: Desk, command: tuple[str, ...]) -> None:
    path = old.folder / "models" / "old.receipt.json"
    path.write_text(json.dumps(RECEIPT | {"schema": SCHEMA + 1, "new": "thing"}))
    before = old.files()
    ran = old(*command)
    assert ran.code == 5, ran.out + ran.err
    assert (
        f"is of a newer importer: its schema is {SCHEMA + 1}, and this one reads up to {SCHEMA}."
        in ran.out + ran.err
    )
    assert old.files() == before


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the database of a service belongs."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    return tmp_path / "gallery.sqlite"


def test_a_newer_receipt_in_a_gallery_is_a_problem(old: Desk, served: Path) -> None:
    stored = Store(old.folder / "models").load("old")
    text = json.dumps(RECEIPT | {"schema": SCHEMA + 1})
    row = Version("old", 1, "import", stored.text, json.dumps(stored.data), text, None, stored.digest,
                  "draft", "ann", RECEIPT["imported_at"], None)  # fmt: skip
    with closing(Database(f"sqlite:///{served}")) as database:
        migrate_database(database)
        with database.writing() as connection:
            documents.add(connection, row, LISTED)
    settings = Settings(validate=False, imports=0, database=f"sqlite:///{served}")
    with TestClient(create(settings), base_url="http://127.0.0.1") as client:
        for path in ("old", "old/receipt", "old/decisions"):
            said = problem(client.get(f"/v1/configs/{path}"), 409, "newer-receipt")
            assert "is of a newer importer" in said["detail"]
        assert client.get("/v1/configs").status_code == 200


def test_migrate_names_the_receipt() -> None:
    with pytest.raises(DocumentError) as refused:
        migrate({"schema": SCHEMA + 7}, "/x/a.receipt.json")
    assert refused.value.kind == "newer-receipt"
    assert str(refused.value).startswith("/x/a.receipt.json is of a newer importer")
