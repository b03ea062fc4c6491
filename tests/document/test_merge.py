"""Merges of a re-import with a person's edits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document import merge
from importer.document.document_keys import ABSENT, differences, keyed, same
from importer.document.merge import Merge, Take
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from tests.commandline import BASE, Desk, document, edit, receipt, state, validated
from tests.merge_cases import CASES, Case
from tests.yaml_texts import DOCUMENTS, edits, texts

pytestmark = pytest.mark.slow


def merged(case: Case, take: Take | None = None) -> tuple[Merge, str]:
    data = [read(text, "x") for text in case[1:4]]
    found = Merge(data[0], data[1], data[2], take)
    return found, merge.write(case.mine, found.data, case.base, case.theirs)


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_a_case(case: Case) -> None:
    found, text = merged(case)
    assert tuple(".".join(map(str, c.path)) for c in found.conflicts) == case.conflicts
    if not case.conflicts:
        assert text == case.result


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.conflicts], ids=[c.name for c in CASES if c.conflicts]
)
@pytest.mark.parametrize("take", merge.TAKES)
def test_a_conflict_is_resolved_for_one_side(case: Case, take: Take) -> None:
    found, text = merged(case, take)
    data = read(text, "x")
    side = read(getattr(case, take), "x")
    for conflict in found.conflicts:
        assert all(c.path != conflict.path for c in differences(side, data))
    assert ("# mine" in text) == ("# mine" in case.mine)


def test_without_a_base_text_every_comment_is_the_persons() -> None:
    text = merge.write(
        "a: 1  # vendor: 1\n", {"a": 2, "b": 1}, None, "a: 2  # vendor: 2\nb: 1  # vendor: 1\n"
    )
    assert text == "a: 2  # vendor: 1\nb: 1  # vendor: 1\n"


@given(st.data())
def test_any_merge(data: st.DataObject) -> None:
    """Both sides' changes are in it, or are a conflict; no comment of the person's is lost."""
    mine_text = data.draw(texts())
    mine = read(mine_text, "x")
    base = data.draw(edits(mine))
    theirs = data.draw(edits(base))
    found = Merge(base, mine, theirs)
    assert same(Merge(base, mine, base).data, mine)
    assert same(Merge(base, base, theirs).data, theirs)
    assert not Merge(base, mine, mine).conflicts
    conflicts = {c.path for c in found.conflicts}
    assert conflicts == {c.path for c in Merge(base, theirs, mine).conflicts}
    for side in (mine, theirs):
        for change in differences(base, side):
            held = value_at(found.data, change.path)
            clash = any(change.path[: len(p)] == p or p[: len(change.path)] == change.path for p in conflicts)
            emptied = change.after in ({}, [], ABSENT) and held in ({}, [], ABSENT)
            filled = {} in (change.before, change.after) and isinstance(held, dict)  # by the other side
            assert clash or same(held, change.after) or emptied or filled


def value_at(data: Any, path: tuple[str | int, ...]) -> Any:
    """As changes name it: entries of lists by their keys."""
    for at, step in enumerate(path):
        data = data if isinstance(data, dict) else keyed(path[:at], data)
        data = (data or {}).get(step, ABSENT)
    return data


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_taking_one_side_leaves_no_other_value_in_a_conflict(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    for take, side in (("mine", mine), ("theirs", theirs)):
        found = Merge(base, mine, theirs, take)  # type: ignore[arg-type]
        for conflict in found.conflicts:
            if len(conflict.path) == 1:
                key = str(conflict.path[0])
                assert same(found.data.get(key, ABSENT), side.get(key, ABSENT))


# On the command line

WARM = {**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.9}}


def yaml(desk: Desk) -> str:
    return (desk.folder / "models" / "base.yaml").read_text()


def test_all_three_are_in_the_result(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    edit(desk, "top_p: 0.9 ", "top_p: 0.5 ")
    edit(desk, "max_model_len:", "# enough for us\nmirostat: 0\nmax_model_len:")
    sha = desk.hub.repos["acme/base"].commit(WARM)
    ran = desk("acme/base", "--json")
    assert ran.code == 0, ran.err
    found = document_of(desk)
    assert ran.line["document"] == found
    assert found["parameters"] | {"temperature": 0.7, "top_p": 0.5} == found["parameters"]
    assert (found["mirostat"], found["importer"]["revision"]) == (0, sha)
    text = yaml(desk)
    assert "# enough for us\nmirostat: 0\n" in text
    assert "top_p: 0.5  # edited in this file; imported: 0.9\n" in text
    assert "temperature: 0.7  # vendor: " in text
    assert "Your edit stays: parameters.top_p: 0.9 → 0.5" in ran.err
    assert "Changes: parameters.temperature: 0.6 → 0.7" in ran.err
    assert state(desk) == ("stale", "stale")
    before = desk.files()
    assert desk("acme/base").code == 0
    assert desk.files() == before
    desk.hub.repos["acme/base"].commit(BASE)
    assert desk("acme/base").code == 0
    sampling = document_of(desk)["parameters"]
    assert (sampling["temperature"], sampling["top_p"]) == (0.6, 0.5)


def document_of(desk: Desk) -> Any:
    return read(yaml(desk), "base")


def test_a_conflict_leaves_the_file_and_shows_both(desk: Desk) -> None:
    desk("acme/base")
    edit(desk, "temperature: 0.6 ", "temperature: 0.5 ")
    desk.hub.repos["acme/base"].commit(WARM)
    before = desk.files()
    ran = desk("acme/base", "--json")
    error = ran.line["error"]
    assert (ran.code, error["kind"], desk.files()) == (5, "conflict", before)
    assert error["conflicts"] == [{"path": "parameters.temperature", "base": 0.6, "mine": 0.5, "theirs": 0.7}]
    assert "--on-conflict mine" in error["hint"]
    said = "parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7"
    for words in ((), ("--dry-run",)):
        plain = desk("acme/base", *words)
        assert (plain.code, plain.err.splitlines()[0], desk.files()) == (5, said, before)
    (desk.folder / "list").write_text("acme/base\n")
    bulk = desk("--from", "list")
    assert (bulk.line["error"]["kind"], desk.files()) == ("conflict", before)


@pytest.mark.parametrize(("take", "value"), [("mine", 0.5), ("theirs", 0.7)])
def test_a_conflict_is_resolved_once(desk: Desk, take: str, value: float) -> None:
    desk("acme/base")
    edit(desk, "temperature: 0.6 ", "temperature: 0.5 ")
    edit(desk, "top_p: 0.9 ", "top_p: 0.8 ")
    desk.hub.repos["acme/base"].commit(WARM)
    assert desk("acme/base", "--on-conflict", take).code == 0
    sampling = document(desk)["parameters"]
    assert (sampling["temperature"], sampling["top_p"]) == (value, 0.8)
    before = desk.files()
    assert desk("acme/base").code == 0
    assert desk.files() == before


def test_a_file_without_a_readable_receipt_is_left_alone(desk: Desk) -> None:
    desk("acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    edited = edit(desk, "temperature: 0.6 ", "temperature: 0.5 ")
    for broken in ("", "{}", path.read_text().replace('"base": "#', '"base": "[')):
        path.write_text(broken)
        ran = desk("acme/base", "--on-conflict", "theirs", "--json", "--name", "base")
        assert (ran.code, ran.line["error"]["kind"]) == (5, "exists")
        assert (desk.folder / "models" / "base.yaml").read_bytes() == edited


# What was said with --set and --backend


def test_what_was_set_stays_set(desk: Desk) -> None:
    desk("acme/base", "--set", "temperature=0", "--backend", "mlx", "--yes")
    desk.hub.repos["acme/base"].commit(WARM)
    ran = desk("acme/base", "--json", "--set", "top_p=0.5")
    assert ran.line["decisions"]["parameters.temperature"]["status"] == "user"
    found = document(desk)
    sampling = found["parameters"]
    assert (found["backend"], sampling["temperature"], sampling["top_p"]) == ("mlx", 0, 0.5)
    assert "As you said at an earlier import: backend=mlx, parameters.temperature=0." in ran.err
    said = {"backend": "mlx", "parameters.temperature": 0, "parameters.top_p": 0.5}
    assert receipt(desk)["request"]["preferences"] == said
    before = desk.files()
    desk("acme/base")
    assert desk.files() == before


def test_what_was_set_is_taken_back(desk: Desk) -> None:
    desk("acme/base", "--set", "temperature=0", "--backend", "vllm")
    assert document(desk)["parameters"]["temperature"] == 0
    desk("acme/base", "--unset", "temperature", "--backend", "auto")
    assert (document(desk)["backend"], document(desk)["parameters"]["temperature"]) == ("vllm", 0.6)
    assert receipt(desk)["request"]["preferences"] == {}
    for words in (("--unset", "bogus"), ("--unset", "temperature", "--set", "temperature=1")):
        assert desk("acme/base", *words).code == 2


def test_a_backend_written_into_the_file_is_said(desk: Desk) -> None:
    """Everything else depends on it, so it is decided for that engine; the rest of the file is merged."""
    desk("acme/base")
    edit(desk, "backend: vllm", "backend: mlx  # the Mac")
    assert desk("acme/base").code == 0
    found = document(desk)
    assert (found["backend"], found["importer"]["engine"]["name"]) == ("mlx", "mlx")
    assert "backend: mlx  # the Mac" in yaml(desk)
    before = desk.files()
    desk("acme/base")
    assert desk.files() == before
    edit(desk, "backend: mlx", "backend: vllm")
    desk("acme/base")
    assert document(desk)["importer"]["engine"]["name"] == "vllm"


def test_the_form_of_the_reference_is_no_change(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    desk("acme/base")
    before = desk.files()
    for reference in ("hf://acme/base", f"{desk.hub.url}/acme/base/tree/main", "acme/base@main"):
        assert desk(reference).code == 0
        assert desk.files() == before
    assert document(desk)["importer"]["reference"] == "acme/base"
    sha = desk.hub.repos["acme/base"].sha
    desk(f"acme/base@{sha.upper()}")
    assert document(desk)["importer"]["reference"] == f"acme/base@{sha}"


def test_a_file_that_changes_while_it_is_shown_is_not_overwritten(desk: Desk) -> None:
    from importer.app.import_ import merge_plan, plan, write
    from importer.app.import_request import ImportRequest
    from importer.app.session import ImportSession
    from importer.document.name_allocator import Names
    from importer.document.store import Store
    from importer.hub.local import ANYWHERE

    desk("acme/base")
    desk.hub.repos["acme/base"].commit(WARM)
    store = Store(desk.folder / "models")
    with ImportSession() as bench:
        settled = merge_plan(plan(ImportRequest("acme/base"), Names(store), bench, ANYWHERE), store)
    edited = edit(desk, "top_p: 0.9 ", "top_p: 0.5 ")
    with store.locked(), pytest.raises(DocumentError, match="has changed since it was shown"):
        write(settled, store)
    assert (desk.folder / "models" / "base.yaml").read_bytes() == edited
