"""Receipts: kinds beside texts; a text alone counts where its kind is unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.proof import ParserVerdict, Proof
from importer.proof.parser_verdict import JudgeReason, ProofReason
from importer.proof.result import NO_THINKING
from importer.reasons import Reason
from importer.sentences import render
from tests.commandline import BASE, Desk, desk
from tests.hubserver import Repo
from tests.rechecking import imported, one

__all__ = ["desk"]
LOST = Reason(JudgeReason.LOST_ARGUMENT, name="'city'")
PROOF = Proof(
    "vllm", "9.9", "d1",
    {"tool_parser": (ParserVerdict("hermes", "Hermes", (), {"one-call": LOST}, ("one-call",)),)},
    {"one-call": "<call>"}, {"reasoning_parser": NO_THINKING},
)  # fmt: skip


def again(data: Any) -> Any:
    return json.loads(json.dumps(data))


def test_a_proof_is_read_back() -> None:
    data = again(PROOF.to_json())
    assert Proof.from_json(data) == PROOF
    data["verdicts"]["tool_parser"][0]["reasons"]["failed"]["one-call"]["kind"] = "NextReason.unheard-of"
    [verdict] = Proof.from_json(data).verdicts["tool_parser"]
    assert not verdict.reads
    assert verdict.failed == {"one-call": Reason(ProofReason.RECORDED, text="lost the argument 'city'")}
    assert render(verdict.reason or LOST) == "one-call: lost the argument 'city'"


@pytest.mark.slow
def test_a_recheck_compares_the_kinds_of_warnings(desk: Desk) -> None:
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "auto_map": {"AutoConfig": "other/repo--configuration_x.XConfig"},
    }  # fmt: skip
    desk.hub.repos["acme/code"] = Repo({**BASE, "config.json": config})
    imported(desk, "acme/code")
    path = desk.folder / "models" / "code.receipt.json"
    data = json.loads(path.read_text())
    assert [r["kind"] for r in data["decisions"]["code"]["reasons"]].count("Severity.warning") == 1
    assert one(desk, 0)["changed"] is False
    assert "code of other repositories" in desk("review", "code").out
    path.write_text(json.dumps(data | {"warnings": []}))
    [found] = one(desk, 1)["warnings"]
    assert (found["kind"], found["key"]) == ("foreign-code", "code")
