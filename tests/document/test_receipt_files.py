"""The files of a receipt: a small one for git, and a side file with its details."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from importer.document import receipt_files
from importer.document.store import Store, receipt_path
from tests.commandline import Desk

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


def test_a_side_file_that_says_otherwise_is_not_believed(desk: Desk) -> None:
    store = validated(desk)
    path = receipt_path(store.path("base"))
    side = receipt_files.side_path(path)
    data = json.loads(side.read_text())
    data["validation"] |= {"passed": True, "outcomes": [HELD]}
    data["decisions"] = "sha256:0"
    for text in (json.dumps(data), "{", "[]", json.dumps({"validation": 3, "proof": [], "earlier": "x"})):
        side.write_text(text)
        found = store.load("base").need_receipt()
        assert found.validation is not None
        assert (found.validation["passed"], len(found.validation["outcomes"])) == (False, 2)
        assert found.evidence == []


def test_a_whole_proof_in_one_file_is_read_whole(desk: Desk) -> None:
    """As receipts of 0.1.0 have it."""
    path = receipt_path(validated(desk).path("base"))
    receipt_files.side_path(path).unlink()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"proof": PROOF}))
    assert Store(path.parent).load("base").need_receipt().proof == PROOF
