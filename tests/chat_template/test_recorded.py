"""Receipts: kinds beside texts, and older ones that have texts alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.config_file.build import kept, to_json, warnings
from importer.decisions.decision import Chosen
from importer.decisions.parsers import ParserReason
from importer.messages import render
from importer.proof import ParserVerdict, Proof
from importer.proof.result import NO_THINKING, JudgeReason, ProofReason
from importer.reasons import Reason
from importer.signals.evidence import warning
from tests.commandline import BASE, Desk, desk
from tests.hubserver import Repo
from tests.rechecking import imported, one

__all__ = ["desk"]
LOST = Reason(JudgeReason.LOST_ARGUMENT, name="'city'")
REFUTED = Reason(ParserReason.USER_REFUTED, problem=Reason(ProofReason.CASE, case="one-call", problem=LOST))
CHOSEN = Chosen("hermes", "user", (Reason(ParserReason.PROOF_AGREES), warning(REFUTED)))
TEXT = "the proof refutes it: one-call: lost the argument 'city'"
PROOF = Proof(
    "vllm", "9.9", "d1",
    {"tool_parser": (ParserVerdict("hermes", "Hermes", (), {"one-call": LOST}, ("one-call",)),)},
    {"one-call": "<call>"}, {"reasoning_parser": NO_THINKING},
)  # fmt: skip


def older(data: Any) -> Any:
    """The same as a receipt had it that knew texts alone."""
    if isinstance(data, dict):
        return {key: older(value) for key, value in data.items() if key != "reasons"}
    return [older(item) for item in data] if isinstance(data, list) else data


def again(data: Any) -> Any:
    return json.loads(json.dumps(data))


def test_a_warning_is_known_by_its_kind() -> None:
    receipt = again(kept(CHOSEN))
    assert list(warnings(receipt)) == [TEXT]
    assert receipt["why"] == ["the proof agrees", f"warning: {TEXT}"]
    assert list(warnings(receipt | {"why": ["x", "x"]})) == [TEXT], "its text is not read"
    plain = receipt | {"reasons": [{"kind": "ParserReason.proof-agrees"}] * 2}
    assert list(warnings(plain)) == []


def test_a_warning_of_a_newer_importer_is_told_by_its_text() -> None:
    unknown = {"kind": "Severity.warning", "reason": {"kind": "NextReason.unheard-of", "place": "here"}}
    receipt = {"why": ["something newer"], "reasons": [unknown]}
    assert list(warnings(receipt)) == ["something newer"]


def test_warnings_of_an_older_receipt_are_still_told() -> None:
    assert "reasons" not in to_json(CHOSEN)
    assert list(warnings(again(to_json(CHOSEN)))) == [TEXT]


def test_a_proof_of_an_older_receipt_is_read() -> None:
    assert Proof.from_json(again(PROOF.to_json())) == PROOF
    read = Proof.from_json(older(again(PROOF.to_json())))
    [verdict] = read.verdicts["tool_parser"]
    assert not verdict.reads
    assert verdict.failed == {"one-call": Reason(ProofReason.RECORDED, text="lost the argument 'city'")}
    assert render(verdict.reason or LOST) == "one-call: lost the argument 'city'"
    assert read.unasked == {"reasoning_parser": NO_THINKING}, "something was rendered, and no thought in it"
    nothing = older(again(PROOF.to_json())) | {"written": {}, "unasked": {"tool_parser": "it died"}}
    [reason] = Proof.from_json(nothing).unasked.values()
    assert reason == Reason(ProofReason.RECORDED, text="it died")


@pytest.mark.slow
def test_a_recheck_of_an_older_receipt_tells_nothing_new(desk: Desk) -> None:
    """A decision with a warning, whose receipt cannot say of which kind it was."""
    config = {"model_type": "llama", "auto_map": {"AutoConfig": "other/repo--configuration_x.XConfig"}}
    desk.hub.repos["acme/code"] = Repo({**BASE, "config.json": config})
    imported(desk, "acme/code")
    path = desk.folder / "models" / "code.receipt.json"
    data = json.loads(path.read_text())
    assert [r["kind"] for r in data["decisions"]["code"]["reasons"]].count("Severity.warning") == 1
    assert one(desk, 0)["changed"] is False
    path.write_text(json.dumps(older(data)))
    assert one(desk, 0)["changed"] is False
    assert "code of other repositories" in desk("review", "code").out
    data["decisions"]["code"]["reasons"] = [{"kind": "CodeReason.not-needed"}] * 9
    data["decisions"]["code"]["why"] = ["x"] * 9
    path.write_text(json.dumps(data))
    [found] = one(desk, 1)["decisions"]
    assert found["why"] == ["warning: code of other repositories is named, which no commit pins: other/repo"]
