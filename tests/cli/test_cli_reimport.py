"""The review's state after an import, and what a second import does to a document that is there."""

from __future__ import annotations

import json

from tests.commandline import BASE, Desk, document, edit, receipt, state, validated


def test_yes_and_approve(desk: Desk) -> None:
    desk("acme/base", "--yes")
    review = receipt(desk)["review"]
    assert (review["state"], review["digest"]) == ("approved", receipt(desk)["digest"])
    assert review["by"].endswith("(--yes)")
    desk("other/base")
    pending = {"state": "pending", "by": None, "at": None, "digest": None}
    assert receipt(desk, "other--base")["review"] == pending
    assert desk("review", "other--base", "--approve").code == 0
    review = receipt(desk, "other--base")["review"]
    assert (review["state"], review["digest"]) == ("approved", receipt(desk, "other--base")["digest"])


def test_the_same_commit_again_changes_nothing(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    desk("acme/base")
    before = desk.files()
    for words in ((), ("--yes",)):
        ran = desk("acme/base", *words)
        assert (ran.code, "models/base.yaml stays as it is; review: approved." in ran.err) == (0, True)
        assert desk.files() == before
    assert state(desk) == ("approved", "passed")


def test_comments_of_a_person_survive_an_import_that_changes_nothing(desk: Desk) -> None:
    desk("acme/base")
    edited = edit(desk, "backend:", "# ours\nbackend:")
    assert desk("acme/base").code == 0
    assert (desk.folder / "models" / "base.yaml").read_bytes() == edited


def test_an_edited_document_is_not_overwritten(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    assert state(desk) == ("stale", "stale")
    before = desk.files()
    ran = desk("acme/base", "--json")
    assert (ran.code, desk.files()) == (0, before)
    assert ran.line["document"] == document(desk)
    desk("review", "base", "--approve")
    assert state(desk) == ("approved", "stale")
    assert desk("acme/base", "--set", "temperature=0.5").code == 0  # says the same: nothing is lost
    assert state(desk) == ("approved", "stale")


def test_a_version_by_hand_that_the_engine_lacks_is_not_approved(desk: Desk) -> None:
    desk("acme/base", "--engine-version", "0.32.0")
    edit(desk, "version: 0.32.0", "version: 9.9.9")
    ran = desk("review", "base", "--approve")
    assert "at importer.engine.version: the parsers of vllm 9.9.9 are not known here" in ran.err
    assert (ran.code, state(desk)[0]) == (5, "draft")
    again = desk("acme/base", "--yes")
    assert "importer.engine.version: the parsers of vllm 9.9.9 are not known here" in again.err
    assert (again.code, state(desk)[0]) == (0, "draft")
    edit(desk, "version: 9.9.9", "version: 0.33.0")
    edit(desk, "backend: vllm", "backend: ''")  # LocalAI chooses; the version stays that of vLLM
    assert desk("review", "base", "--approve").code == 0


def test_a_fault_of_an_edit_has_the_same_words_everywhere(desk: Desk) -> None:
    desk("acme/base", "--yes")
    edit(desk, "  temperature: 0.6", "  temprature: 0.6")
    fault = "parameters.temprature: unknown key (did you mean temperature?)"
    found = (
        desk("acme/base", "--yes").err, desk("list", "--json").out, desk("show", "base").out,
        desk("review", "base", "--approve").err, desk("recheck").out,
    )  # fmt: skip
    assert [fault in text for text in found] == [True] * 5
    assert found[0].count("Needs attention: parameters.temprature") == 1  # nobody is asked to approve it


def test_a_next_step_names_the_folder_of_the_command(desk: Desk) -> None:
    desk("acme/base", "--dir", "ours")
    ran = desk("export", "base", "vllm-command", "--approved-only", "-d", "ours")
    assert "'importer review base --approve --dir ours'" in ran.err
    assert "See 'importer list --dir ours'." in desk("show", "none", "--dir=ours").err
    assert "See 'importer list'." in desk("show", "none").err


def test_a_changed_upstream_renews_a_document_that_nobody_edited(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    sha = desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7}})
    assert desk("acme/base").code == 0
    assert (document(desk)["importer"]["revision"], document(desk)["parameters"]["temperature"]) == (sha, 0.7)
    assert state(desk) == ("draft", "stale")


def test_a_lost_receipt_is_written_again(desk: Desk) -> None:
    desk("acme/base")
    before = desk.files()
    (desk.folder / "models" / "base.receipt.json").unlink()
    assert desk("acme/base").code == 0
    assert set(desk.files()) == set(before)


def test_two_repositories_of_one_name(desk: Desk) -> None:
    first, second = (desk(f"{owner}/base", "--json").line for owner in ("acme", "other"))
    assert (first["name"], second["name"]) == ("base", "other--base")
    again = desk("other/base", "--json").line
    assert again["name"] == "other--base"
    ran = desk("other/base", "--name", "base", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (5, "exists")
    assert document(desk)["importer"]["model_id"] == "acme/base"


def test_a_broken_file_of_that_name_is_left_alone(desk: Desk) -> None:
    path = desk.folder / "models" / "base.yaml"
    path.parent.mkdir()
    path.write_text("a: [")
    assert desk("acme/base", "--json").line["name"] == "acme--base"
    assert path.read_text() == "a: ["


def test_another_backend_is_another_document(desk: Desk) -> None:
    assert desk("acme/base", "--backend", "vllm", "--yes").code == 0
    first = desk.files()["models/base.yaml"]
    made = desk("acme/base", "--backend", "mlx", "--set", "temperature=0.3")
    assert made.code == 0
    assert "Wrote models/base-mlx.yaml" in made.err
    assert desk.files()["models/base.yaml"] == first
    again = desk("acme/base", "--backend", "mlx")
    assert "base-mlx.yaml stays as it is" in again.err, "its own settings are kept, those of vllm are not"
    refused = desk("acme/base", "--backend", "sglang", "--name", "base")
    assert (refused.code, desk.files()["models/base.yaml"]) == (5, first)
    assert "base is the document for vllm, not for sglang." in refused.err
    listed = [json.loads(line) for line in desk("list", "--json").out.splitlines()]
    assert [(one["name"], one["backend"], one["variants"]) for one in listed] == [
        ("base", "vllm", ["base-mlx"]), ("base-mlx", "mlx", ["base"]),
    ]  # fmt: skip
