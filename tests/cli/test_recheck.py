"""Recheck of models that move: which documents an import now would alter, what of it a person has covered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.commandline import BASE, Desk, document, edit, receipt
from tests.hubserver import Fault
from tests.rechecking import WARM, imported, lines, one

pytestmark = pytest.mark.slow


def test_a_branch_that_moved(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "acme/base@main", "--name", "twin")
    old = desk.hub.repos["acme/base"].sha
    imported(desk, f"acme/base@{old}", "--name", "pinned")
    new = desk.hub.repos["acme/base"].commit(WARM)
    before = desk.files()
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert (ran.code, desk.files()) == (1, before)
    assert {name: line["changed"] for name, line in found.items()} == {
        "base": True,
        "pinned": False,
        "twin": True,
    }
    line = found["base"]
    moved = {"what": "commit", "before": old, "after": new, "files": ["generation_config.json"]}
    assert line["causes"] == [moved]
    why = "generation_config.json now says temperature: 0.7; it said temperature: 0.6"
    assert line["decisions"] == [
        {"key": "parameters.temperature", "before": 0.6, "after": 0.7, "why": [why], "covered": False}
    ]
    revision = next(c for c in line["document"] if c["path"] == "importer.revision")
    assert (revision["before"], revision["after"], revision["covered"]) == (old, new, False)
    text = desk("recheck", "base").out
    assert text == (
        f"base: 1 decision would change.\n  commit: {old} → {new}\n      files: generation_config.json\n"
        f"  parameters.temperature: 0.6 → 0.7\n"
        f"      {why}\n  again: importer acme/base\n"
    )
    imported(desk, "acme/base")
    assert one(desk, 0, "base")["changed"] is False


def test_a_tag_that_was_imported_is_followed(desk: Desk) -> None:
    repo = desk.hub.repos["acme/base"]
    repo.commit(BASE, "v1")
    imported(desk, "acme/base", "--revision", "v1")
    repo.commit(WARM)
    assert one(desk, 0)["causes"] == []
    repo.commit(WARM, "v1")
    assert one(desk, 1)["decisions"][0]["after"] == 0.7
    assert "again: importer acme/base --revision v1\n" in desk("recheck").out


def test_a_commit_that_changes_no_decision(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({**BASE, "LICENSE": "x"})
    line = one(desk, 1)
    assert (line["changed"], line["decisions"]) == (True, [])
    assert "base: no decision would change, but what is written of them.\n  commit: " in desk("recheck").out


def test_what_a_person_wrote_over_it_is_told(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    edit(desk, "max_model_len: 512", "")
    desk.hub.repos["acme/base"].commit(
        {**WARM, "config.json": {**BASE["config.json"], "max_position_embeddings": 1024}}  # type: ignore[dict-item]
    )
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert (found["parameters.temperature"]["covered"], found["parameters.temperature"]["yours"]) == (
        True,
        0.5,
    )
    assert found["max_model_len"]["covered"] is True
    assert "yours" not in found["max_model_len"]
    assert [c["path"] for c in one(desk, 1)["conflicts"]] == ["parameters.temperature", "max_model_len"]
    text = desk("recheck").out
    assert (
        "conflict: parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7; --on-conflict"
        in text
    )
    assert "      yours: 0.5\n" in text
    assert "      yours: absent\n" in text


def test_an_edit_that_an_import_leaves_alone_is_no_conflict(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "temperature: 0.6", "temperature: 0.7")
    edit(desk, "top_p: 0.9", "top_p: 0.8")
    desk.hub.repos["acme/base"].commit(WARM)
    line = one(desk, 1)
    assert (line["conflicts"], line["decisions"][0]["yours"]) == ([], 0.7)
    imported(desk, "acme/base")
    assert (one(desk, 0)["changed"], document(desk)["parameters"]["top_p"]) == (False, 0.8)


def test_facts_that_come_and_go(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.6, "min_p": 0.1}})
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert found["parameters.min_p"]["why"] == ["new: the vendor's generation_config.json says min_p: 0.1"]
    assert found["parameters.top_p"]["why"] == [
        "no longer: the vendor's generation_config.json says top_p: 0.9"
    ]
    assert (found["parameters.top_p"]["before"], found["parameters.top_p"]["after"]) == (0.9, None)


def test_what_the_user_set_is_asked_for_again(desk: Desk) -> None:
    imported(desk, "acme/base", "--set", "temperature=0", "--set", "tool_parser=hermes", "--name", "mine")
    desk.hub.repos["acme/base"].commit(WARM)
    assert one(desk, 1)["decisions"] == []
    again = desk("recheck").out.splitlines()[-1].removeprefix("  again: ")
    words = shlex.split(again)[1:]
    assert words[:1] == ["acme/base"]
    assert desk(*words, "--no-validate").code == 0
    assert (document(desk, "mine")["parameters"]["temperature"], one(desk, 0)["changed"]) == (0, False)


# What cannot be checked


def test_each_document_is_answered_whatever_the_others_are(desk: Desk) -> None:
    for reference in ("acme/base", "other/base", "acme/chat"):
        imported(desk, reference)
    desk.directory("toy", BASE)
    imported(desk, "./toy")
    del desk.hub.repos["acme/chat"]
    (desk.folder / "toy").rename(desk.folder / "gone")
    (desk.folder / "models" / "broken.yaml").write_text("a: [")
    (desk.folder / "models" / "other--base.receipt.json").write_text("{")
    before = desk.files()
    ran = desk("recheck", "--json")
    found = lines(ran)
    kinds = {name: line.get("error", {}).get("kind") for name, line in found.items()}
    assert kinds == {
        "base": None, "broken": "invalid", "chat": "private", "other--base": "no-receipt",
        "toy": "no-such-directory",
    }  # fmt: skip
    assert (ran.code, list(found), desk.files()) == (5, sorted(found), before)
    assert "chat: not checked: acme/chat is private or missing" in desk("recheck", "chat").out
    assert desk("recheck", "chat").code == 3
    assert desk("recheck", "nobody").code == 5
    assert desk("recheck", "base", "base").out == "base: nothing would change.\n"


def test_a_receipt_whose_base_cannot_be_read(desk: Desk) -> None:
    imported(desk, "acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"base": "{"}))
    error = one(desk, 5)["error"]
    assert (error["kind"], "its base cannot be read" in error["message"]) == ("no-receipt", True)


def test_a_repository_that_is_no_model_any_more(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({"model.gguf": b"GGUF"})
    assert one(desk, 1)["refused"]["kind"] == "gguf-only"


def test_a_directory_is_found_from_anywhere(desk: Desk) -> None:
    folder = desk.directory("toy", BASE)
    imported(desk, "./toy")
    (desk.folder / "elsewhere").mkdir()
    desk.monkeypatch.chdir(desk.folder / "elsewhere")
    ran = desk("recheck", "--dir", desk.folder / "models", "--json")
    assert (ran.code, lines(ran)["toy"]["document"]) == (0, [])
    (folder / "generation_config.json").write_text('{"temperature": 0.1}')
    ran = desk("recheck", "--dir", desk.folder / "models", "--json")
    assert (ran.code, lines(ran)["toy"]["decisions"][0]["after"]) == (1, 0.1)


def test_offline_asks_nobody(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit(WARM)
    asked = desk.hub.asked
    assert one(desk, 0, "--offline")["changed"] is False
    assert desk.hub.asked == asked
    for path in sorted((desk.folder / "home" / "cache" / "hub").rglob("*.json")):
        path.unlink()
    assert one(desk, 3, "--offline")["error"]["kind"] == "not-cached"


def test_a_gap_of_a_mirror_is_an_error_that_passes(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit(WARM)
    desk.hub.faults.append(Fault("generation_config.json", 404, {"X-Error-Code": "EntryNotFound"}))
    assert one(desk, 3)["error"]["kind"] == "missing-file"
    assert one(desk, 1)["decisions"]


@pytest.mark.slow
def test_the_hubs_limit_is_waited_for(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.faults.append(Fault("/api/models/acme/base", 429, {"Retry-After": "1"}, times=4))
    assert one(desk, 0)["changed"] is False


def test_one_request_for_each_that_stayed_as_it_was(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "other/base")
    asked = desk.hub.asked
    assert desk("recheck").code == 0
    assert desk.hub.asked - asked == 2
    assert receipt(desk)["request"]["reference"] == "acme/base"
    assert Path("models/base.yaml").is_file()
