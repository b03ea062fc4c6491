"""The files of a receipt: a small one for git, and a side file with its details."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.document import receipt_files
from importer.document.receipt import Receipt
from importer.document.store import Store, receipt_path
from tests.commandline import Desk, state

EXCHANGE = {
    "method": "POST",
    "path": "/v1/chat/completions",
    "status": 200,
    "seconds": 0.1,
    "body": "raw answer",
}
LOST = {
    "probe": "tool-call",
    "outcome": "fail",
    "reason": "no call",
    "cause": {"kind": "x"},
    "exchanges": [EXCHANGE],
}
HELD = {"probe": "health", "outcome": "pass", "reason": "ok", "seconds": 0.5, "exchanges": [EXCHANGE]}
VERDICT = {"parser": "hermes", "class": "Hermes", "passed": ["one-call"], "failed": {"null": "x"}}
PROOF = {
    "engine": "vllm",
    "needed": {"tool_parser": []},
    "verdicts": {"tool_parser": [VERDICT, VERDICT | {"parser": "qwen3_json"}]},
    "written": {},
}
RUN: dict[str, Any] = {
    "engine": {"name": "vllm", "version": "0.33.0"}, "passed": False, "outcomes": [LOST, HELD], "seconds": {},
}  # fmt: skip


def validated(desk: Desk) -> Store:
    desk("acme/base")
    store = Store(desk.folder / "models")
    digest = store.load("base").digest
    store.amend("base", lambda receipt: replace(receipt.with_validation(RUN, digest), proof=PROOF))
    return store


def test_exchanges_and_evidence_lie_beside_what_git_keeps(desk: Desk) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    small, side = path.read_text(), receipt_files.side_path(path)
    assert "raw answer" not in small
    assert "evidence" not in json.loads(small)
    assert small.count("one-call") == 1  # of parsers that read the same
    found = store.load("base").need_receipt()
    assert found.evidence
    assert [o["exchanges"] for o in (found.validation or {})["outcomes"]] == [[EXCHANGE]] * 2  # type: ignore[typeddict-item]
    assert desk("report", "base", "--format", "html").out.count("raw answer") == 2
    side.unlink()  # as in a clone whose .gitignore has it
    bare = store.load("base").need_receipt()
    assert "written" in (found.proof or {})
    assert "written" not in (bare.proof or {})
    assert bare.verdicts("tool_parser") == found.verdicts("tool_parser") != []
    assert (bare.decisions, bare.review, bare.base) == (found.decisions, found.review, found.base)
    assert [o["outcome"] for o in (bare.validation or {})["outcomes"]] == ["fail", "pass"]  # type: ignore[typeddict-item]
    page = desk("report", "base", "--format", "html").out
    assert "not kept here" in page
    assert "no call" in page
    assert desk("review", "base", "--approve").code == 0
    assert store.load("base").approved


def read(desk: Desk) -> tuple[Any, Any]:
    """Return both files of the receipt."""
    path = receipt_path(desk.folder / "models" / "base.yaml")
    return json.loads(path.read_text()), json.loads(receipt_files.side_path(path).read_text())


def test_only_details_with_the_digest_of_the_receipt_count(desk: Desk) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    side, (small, data) = receipt_files.side_path(path), read(desk)
    other = json.loads(json.dumps(data).replace("raw answer", "another answer"))
    for text in (json.dumps(other), "{", "[]", json.dumps({"validation": 3, "proof": [], "schema": 99})):
        side.write_text(text)
        found = store.load("base").need_receipt()
        assert "validation" in found.absent
        assert found.validation is not None
        assert [o.get("exchanges") for o in found.validation["outcomes"]] == [None, None]
        for words in (("review", "base", "--explain"), ("report", "base")):
            assert "base.evidence.json has no details of" in desk(*words).err
        assert desk("review", "base", "--approve").code == 0
        assert read_small(path)["digests"]["validation"] == small["digests"]["validation"]
    kept = {one.read_text() for one in path.parent.glob("base.*.evidence.json")}
    assert json.dumps(other) in kept  # an approval wrote the parts that it had read
    side.write_text(json.dumps(data))
    assert store.load("base").need_receipt().absent == {}  # of another clone, say


def read_small(path: Path) -> Any:
    return json.loads(path.read_text())


def test_outcomes_that_a_person_changed_are_no_validation(desk: Desk) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    path.write_text(path.read_text().replace('"passed": false', '"passed": true'))
    assert state(desk) == ("draft", "never")
    changed = path.read_bytes()
    assert desk("review", "base", "--approve").code == 0
    assert changed in [one.read_bytes() for one in path.parent.glob("base.*.receipt.json")]


def test_outcomes_without_their_digest_are_no_validation(desk: Desk) -> None:
    path = receipt_path(validated(desk).path("base"))
    data = read_small(path)
    data["validation"]["passed"] = True
    path.write_text(json.dumps({key: value for key, value in data.items() if key != "digests"}))
    assert state(desk) == ("draft", "never")


@pytest.mark.parametrize("digests", [{"validation": []}, {"validation": None}, {"weather": ["", ""]}])
def test_digests_of_another_form_are_no_receipt(desk: Desk, digests: dict[str, object]) -> None:
    small = read_small(receipt_path(validated(desk).path("base")))
    with pytest.raises(ValueError, match=next(iter(digests))):
        receipt_files.whole(small | {"digests": small["digests"] | digests}, None)


def test_files_of_a_document_that_is_gone_are_kept(desk: Desk) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    held = {file.read_bytes() for file in (path, receipt_files.side_path(path))}
    store.path("base").unlink()
    assert desk("acme/base").code == 0
    assert {file.read_bytes() for file in path.parent.glob("base.*.*.json")} == held


def test_an_edit_after_a_write_that_was_killed_stays(desk: Desk) -> None:
    store = validated(desk)
    old, path = store.load("base"), store.path("base")
    text, receipt = old.text + "# new\n", replace(old.need_receipt(), imported_at="2030-01-01T00:00:00+00:00")
    step, before = 1, desk.files()
    while not (path.with_name(".base.commit") / path.name).exists():
        assert killed_at(step, store, text, receipt)
        step += 1
    path.write_text(old.text + "# mine\n")
    assert store.load("base").text == old.text + "# mine\n"
    assert desk.files().keys() == before.keys()


def test_a_document_that_is_a_link_stays_one(desk: Desk) -> None:
    """A link in place of a receipt is no such thing: it may lead anywhere."""
    store = validated(desk)
    path, real = store.path("base"), desk.folder / "real.yaml"
    path.rename(real)
    path.symlink_to(real)
    before = real.read_text()
    receipt_path(path).rename(desk.folder / "receipt")
    receipt_path(path).symlink_to(desk.folder / "receipt")
    held = (desk.folder / "receipt").read_bytes()
    assert desk("acme/base", "--set", "temperature=0.1", "--yes").code == 0
    assert path.is_symlink()
    assert real.read_text() != before
    assert not receipt_path(path).is_symlink()
    assert (desk.folder / "receipt").read_bytes() == held


@pytest.mark.parametrize(
    ("name", "kind"), [(".base.part", "file"), (".base.commit", "folder"), ("base.evidence.json", "folder")]
)
def test_what_stands_in_the_way_of_a_write_is_named(desk: Desk, name: str, kind: str) -> None:
    store = validated(desk)
    way, before = desk.folder / "models" / name, desk.files()
    if way.exists():
        way.unlink()
    way.mkdir() if kind == "folder" else way.touch()
    (way / "x").touch() if kind == "folder" else None
    ran = desk("review", "base", "--approve")
    assert (ran.code, f"models/{name} could not be" in ran.err) == (5, True), ran.err
    assert len(ran.err.splitlines()) == 2
    assert store.load("base").text.encode() == before["models/base.yaml"]


def test_a_receipt_that_was_cut_is_damaged_everywhere(desk: Desk) -> None:
    path = receipt_path(validated(desk).path("base"))
    assert desk("review", "base", "--reject", "no").code == 0
    path.write_bytes(path.read_bytes()[:-20])
    damaged = "has no readable receipt: it is damaged"
    for code, *words in (
        (0, "list", "--json"), (5, "show", "base"), (5, "export", "base", "localai"),
        (5, "export", "base", "localai", "--approved-only"),
        (1, "gallery", "check", "models", "--files-only"),
        (1, "gallery", "build", "models", "-o", "site", "--include-drafts", "base"),
    ):  # fmt: skip
        ran = desk(*map(str, words))
        assert (ran.code, damaged in ran.out + ran.err, "no receipt" in ran.out) == (code, True, False), words
    assert "review: invalid" in desk("report", "base").out
    ran = desk("acme/base", "--yes", "--no-validate")
    assert (ran.code, "review: pending" in ran.err) == (0, True), "what was rejected may be in it"


@pytest.mark.parametrize("left", ["", "{", None])
def test_an_import_keeps_the_evidence_of_a_damaged_receipt(desk: Desk, left: str | None) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    evidence = receipt_files.side_path(path).read_bytes()
    path.unlink() if left is None else path.write_text(left)
    refused = desk("review", "base", "--approve")
    assert (refused.code, "Import the model again" in refused.err) == (5, True)
    assert desk("acme/base").code == 0
    (kept,) = path.parent.glob("base.*.evidence.json")
    assert kept.read_bytes() == evidence
    assert len([*path.parent.glob("base.*.receipt.json")]) == (left is not None)
    assert desk("acme/base").code == desk("review", "base", "--approve").code == 0
    assert [*path.parent.glob("base.*.evidence.json")] == [kept]


def test_half_of_a_surrogate_pair_is_written_again(desk: Desk) -> None:
    path = receipt_path(validated(desk).path("base"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"description": "\ud800"}))
    assert desk("review", "base", "--approve").code == 0
    assert json.loads(path.read_text())["description"] == "?"


def killed_at(step: int, store: Store, text: str, receipt: Receipt) -> bool:
    """Write in a process that kills itself at a step that makes, renames or removes a file."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = iter(range(1, step))

    def stop(event: str, _: object) -> None:
        if event in ("open", "os.rename", "os.mkdir", "os.rmdir") and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(stop)
    with store.locked():
        store.write(text, receipt)
    os._exit(0)


def test_a_write_that_is_killed_is_whole_or_nothing(desk: Desk) -> None:
    """And the next write leaves nothing else behind."""
    store, before = validated(desk), desk.files()
    old = store.load("base")
    text, receipt = old.text + "# new\n", replace(old.need_receipt(), imported_at="2030-01-01T00:00:00+00:00")
    path = store.path("base")
    written = {path: text, **store.receipt_texts(path, receipt)}
    after = before | {f"models/{file.name}": made.encode() for file, made in written.items()}
    seen, killed, step = set[bool](), True, 0
    while killed:
        step += 1
        killed = killed_at(step, store, text, receipt)
        assert store.names() == ["base"]
        assert store.load("base").receipt is not None
        found = {file: held for file, held in desk.files().items() if "/.base" not in file}
        assert found in (before, after), step
        seen.add(found == after)
        with store.locked():
            store.write(old.text, old.need_receipt())
        assert desk.files() == before, step
    assert seen == {False, True}
    assert step > len(written)


def test_a_receipt_in_one_file_is_read_whole(desk: Desk) -> None:
    """As it goes to another machine."""
    store = validated(desk)
    path, whole = receipt_path(store.path("base")), store.load("base").need_receipt()
    receipt_files.side_path(path).unlink()
    path.write_text(whole.to_text())
    assert store.load("base").receipt == whole
