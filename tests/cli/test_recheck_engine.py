"""``recheck --engine``: what another version of an engine changes for a folder, and writing it in bulk."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from importer.app import upgrade
from importer.config_file import schema
from importer.engines import registries
from importer.signals import tables
from tests.commandline import CHAT, Desk, document, receipt
from tests.hubserver import Repo
from tests.rechecking import imported

pytestmark = pytest.mark.slow


def upgraded(desk: Desk, engine: str, code: int, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The lines of --json by name, and the summary."""
    ran = desk("recheck", "--json", "--engine", engine, *words)
    assert ran.code == code, ran.out + ran.err
    *found, last = map(json.loads, ran.out.splitlines())
    for line in (*found, last):
        schema.check("recheck", line, "stdout")
    return {line["name"]: line for line in found}, last["summary"]


def causes(line: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(c["what"], c["before"], c["after"]) for c in line["causes"] if c["what"] != "engine"]


def rewritten(desk: Desk, name: str, old: str, new: str) -> None:
    """A person's edit of one document."""
    path = desk.folder / "models" / f"{name}.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def gemmas(desk: Desk, count: int, **files: Any) -> None:
    """Models of one family, imported for a version without its parser."""
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.14.1")
    for number in range(count):
        desk.hub.repos[f"google/gemma-4-{number}b-it"] = Repo({**CHAT, **files})
        imported(desk, f"google/gemma-4-{number}b-it")


def test_equal_documents_are_decided_once_and_no_request_is_made(desk: Desk) -> None:
    gemmas(desk, 3)
    imported(desk, "acme/base", "--engine-version", "0.32.0")
    asked = desk.hub.asked
    before = desk.files()
    found, summary = upgraded(desk, "vllm@0.32.0", 1, "--all")
    assert (desk.hub.asked, desk.files()) == (asked, before)
    assert {name: line["judged"] for name, line in found.items()} == {
        "base": "same-version", **{f"gemma-4-{n}b-it": "tables" for n in range(3)},
    }  # fmt: skip
    for number in range(3):
        line = found[f"gemma-4-{number}b-it"]
        assert ("parser-better", None, "gemma4") in causes(line)
        decided = {d["key"]: d["after"] for d in line["decisions"]}
        assert (decided["tool_parser"], line["written"]) == ("gemma4", False)
    group = next(g for g in summary["causes"] if g["keys"] == ["tool_parser"])
    assert (group["documents"], group["examples"]) == (3, [f"gemma-4-{n}b-it" for n in range(3)])
    assert (summary["evaluations"], summary["changed"], summary["documents"]) == (1, 3, 4)
    text = desk("recheck", "--engine", "vllm@0.32.0", "--all").out
    assert (
        "vllm 0.14.1 → 0.32.0: 4 documents\n  3 documents change, 0 in the version's number alone\n" in text
    )
    assert "     3  parser-better: tool_parser: none → gemma4\n" in text
    assert "1 evaluations stand for all of these" in text


def test_what_is_written_is_what_an_import_writes(desk: Desk) -> None:
    gemmas(desk, 2)
    rewritten(desk, "gemma-4-1b-it", "description:", "# mine\ndescription:")
    assert upgraded(desk, "vllm@0.32.0", 0, "--apply")[1]["written"] == 2
    for name in ("gemma-4-0b-it", "gemma-4-1b-it"):
        mine, record = document(desk, name), receipt(desk, name)
        assert "tool_parser:gemma4" in mine["options"]
        assert (record["review"]["state"], record["engine"]["version"]) == ("pending", "0.32.0")
        assert record["request"]["engine_version"] == "0.32.0"
    assert "# mine" in (desk.folder / "models" / "gemma-4-1b-it.yaml").read_text()
    ran = desk("recheck", "--offline", "--json")
    assert [json.loads(line)["changed"] for line in ran.out.splitlines()] == [False, False], ran.out
    assert upgraded(desk, "vllm@0.32.0", 0, "--apply")[1]["judged"] == {"same-version": 2}


def test_a_version_that_moves_nothing_of_a_document(desk: Desk) -> None:
    imported(desk, "acme/base", "--engine-version", "0.32.0")
    desk.monkeypatch.setattr(upgrade, "snapshot_of", None)  # it is not read
    found, summary = upgraded(desk, "vllm@0.33.0", 0)
    assert (causes(found["base"]), found["base"]["judged"]) == ([], "tables")
    assert (summary["version_only"], summary["evaluations"]) == (1, 0)
    assert upgraded(desk, "vllm@0.33.0", 0, "--apply")[1]["written"] == 1
    assert document(desk)["importer"]["engine"] == {"name": "vllm", "version": "0.33.0", "frontend": "python"}


def test_conflicts_and_refused_values_are_left(desk: Desk) -> None:
    for name in ("medusa", "edited", "plain"):
        imported(desk, "acme/base", "--engine-version", "0.32.0", "--name", name)
    path = desk.folder / "models" / "medusa.yaml"
    path.write_text(path.read_text() + "engine_args:\n  speculative_config: {method: medusa}\n")
    rewritten(desk, "edited", "version: 0.32.0", "version: 0.31.0")
    (desk.folder / "models" / "broken.yaml").write_text("a: [")
    before = desk.files()
    ran = desk("recheck", "--engine", "vllm@0.33.0", "--all", "--apply")
    assert ran.code == 5, ran.out
    assert "broken: not checked: " in ran.out
    assert "argument-changed: engine_args.speculative_config.method" in ran.out
    assert "left to a person: 1" in ran.out
    assert "1 have values that an edit and the version change differently\n" in ran.out
    after = desk.files()
    assert {n for n in after if after[n] != before.get(n)} == {
        "models/plain.yaml",
        "models/plain.receipt.json",
    }
    (desk.folder / "models" / "broken.yaml").unlink()
    found, summary = upgraded(desk, "vllm@0.33.0", 1, "--apply", "--on-conflict", "mine")
    assert {name: line["written"] for name, line in found.items()} == {
        "medusa": False, "edited": True, "plain": False,
    }  # fmt: skip
    assert (summary["left"], document(desk, "edited")["importer"]["engine"]["version"]) == (1, "0.31.0")


def test_a_parser_that_is_gone(desk: Desk) -> None:
    row = tables.TableRow("old", {"tool_parser": "minimax"}, source="x")
    desk.hub.repos["acme/old"] = Repo({**CHAT, "config.json": {"model_type": "llama"}})
    with desk.monkeypatch.context() as patch:
        patch.setattr(tables, "stand_in", lambda: tables.Table((row,)))
        imported(desk, "acme/old", "--engine-version", "0.14.1")
        found, _ = upgraded(desk, "vllm@0.32.0", 1)
    assert ("parser-gone", "minimax", None) in causes(found["old"])
    imported(desk, "acme/chat", "--engine-version", "0.14.1", "--set", "tool_parser=minimax")
    found, summary = upgraded(desk, "vllm@0.32.0", 1, "chat", "--apply")
    assert (found["chat"]["refused"]["kind"], summary["written"]) == ("unknown-parser", 0)


def test_a_renamed_parser_is_written_under_its_new_name(desk: Desk) -> None:
    imported(desk, "acme/chat", "--engine-version", "0.32.0", "--set", "tool_parser=qwen3_json")
    found, summary = upgraded(desk, "vllm@0.27.1", 0, "--apply")
    assert ("parser-renamed", "qwen3_json", "hermes") in causes(found["chat"])
    assert (summary["written"], document(desk, "chat")["options"]) == (1, ["tool_parser:hermes"])
    assert receipt(desk, "chat")["request"]["preferences"]["tool_parser"] == "hermes"


def test_a_snapshot_that_is_not_on_this_disk(desk: Desk) -> None:
    gemmas(desk, 2)
    cached = [*(desk.folder / "home" / "cache" / "hub").rglob("*.json")]
    assert cached
    for path in cached:
        if "gemma-4-0b" in str(path):
            path.unlink()
    found, _ = upgraded(desk, "vllm@0.32.0", 1)  # the other one stands for both
    assert [line["judged"] for line in found.values()] == ["tables", "tables"]
    for path in cached:
        path.unlink(missing_ok=True)
    ran = desk("recheck", "--engine", "vllm@0.32.0")
    assert (ran.code, ran.out.count("The cache lacks the revision")) == (3, 2)
    assert "  2 need their snapshot again, and it is not on this disk: not judged\n" in ran.out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--engine", "vllm"), 2, "has not the form ENGINE@VERSION"),
        (("--engine", "vllm@0.99"), 2, "only of 0.14.1, 0.27.1, 0.32.0, 0.33.0."),
        (("--engine", "vllm@0.33.0", "--all"), 5, "There are no documents in models."),
        (("--engine", "vllm@0.33.0", "--all", "x"), 2, "it takes no names beside it"),
        (("--apply",), 2, "it needs --engine ENGINE@VERSION"),
    ],
)
def test_bad_input(desk: Desk, words: tuple[str, ...], code: int, text: str) -> None:
    ran = desk("recheck", *words)
    assert (ran.code, text in ran.out + ran.err) == (code, True), ran


def test_a_person_edits_while_it_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from importer.cli import rechecking

    imported(desk, "acme/base", "--engine-version", "0.32.0")
    path = desk.folder / "models" / "base.yaml"
    checked = rechecking._check_unchanged

    def edited(*given: Any) -> None:
        path.write_text(path.read_text() + "# now\n")
        checked(*given)

    monkeypatch.setattr(rechecking, "_check_unchanged", edited)
    ran = desk("recheck", "--engine", "vllm@0.33.0", "--apply")
    assert (ran.code, "has changed since it was shown" in ran.out) == (5, True)
    data = yaml.safe_load(path.read_text())
    assert (data["importer"]["engine"]["version"], path.read_text()[-6:]) == ("0.32.0", "# now\n")
