"""Quantised repositories on the Hub beside a plan: requested for a device, and no news of a recheck."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.config_file import schema
from tests.cli.test_cli_fit import CONFIG
from tests.commandline import Desk, desk
from tests.hubserver import Fault, Repo

__all__ = ["desk"]
BASE = "acme/anvil"
WIDE = {
    **CONFIG, "num_hidden_layers": 64, "hidden_size": 5120, "intermediate_size": 25600, "vocab_size": 150_000,
    "num_attention_heads": 64, "max_position_embeddings": 32768,
}  # fmt: skip
LISTING = "/api/models?"


def sister(name: str, method: str, bits: int, downloads: int) -> Repo:
    info = {
        "tags": ["safetensors", f"base_model:quantized:{BASE}"],
        "downloads": downloads,
        "config": {"quantization_config": {"quant_method": method, "bits": bits}},
    }
    return Repo({"config.json": WIDE}, info=info)


@pytest.fixture(autouse=True)
def repositories(desk: Desk) -> None:
    desk.hub.repos[BASE] = Repo({"config.json": WIDE}, info={"tags": ["conversational"]})
    desk.hub.repos["b/anvil-awq"] = sister("b/anvil-awq", "awq", 4, 50)
    desk.hub.repos["acme/anvil-gptq"] = sister("acme/anvil-gptq", "gptq", 4, 5)


def requests(desk: Desk) -> list[str]:
    return [path for path in desk.hub.paths() if path.startswith(LISTING)]


def receipt(desk: Desk) -> dict[str, Any]:
    data = json.loads((desk.folder / "models" / "anvil.receipt.json").read_text())
    schema.check("receipt", data, "anvil")
    return dict(data)


def test_a_neutral_import_sends_no_such_request(desk: Desk) -> None:
    assert desk(BASE, "--yes", "--no-validate").code == 0
    assert requests(desk) == []
    assert "listed_sisters" not in receipt(desk)["decisions"]


def test_a_device_has_those_that_hold_it_on_fewer_cards(desk: Desk) -> None:
    ran = desk(BASE, "--device", "2xa100-40g", "--yes", "--no-validate")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if line.startswith("worth knowing: on ")]
    assert lines == [
        f"worth knowing: on a100-40g, by the Hub's list and not checked: {name}"
        for name in ("acme/anvil-gptq (gptq, 4 bits)", "b/anvil-awq (awq, 4 bits)")
    ]
    assert len(requests(desk)) == 1
    kept = receipt(desk)
    assert len(kept["fit"]["advice"]) == 2
    listed = kept["decisions"]["listed_sisters"]
    assert [row["repo"] for row in listed["value"]] == ["acme/anvil-gptq", "b/anvil-awq"]
    text = (desk.folder / "models" / "anvil.yaml").read_text()
    assert "awq" not in text, "another repository is no part of the document"
    assert lines[0] in desk("show", "anvil").out


@pytest.mark.slow
def test_another_list_is_no_news_of_the_model(desk: Desk) -> None:
    desk(BASE, "--device", "a100-40g", "--yes", "--no-validate")
    before = (desk.folder / "models" / "anvil.yaml").read_text()
    for kept in desk.folder.parent.rglob("quantised.json"):
        kept.unlink()
    del desk.hub.repos["b/anvil-awq"]
    ran = desk("recheck", "anvil")
    assert ran.code == 0, ran.out + ran.err
    assert "sisters" not in ran.out
    desk(BASE, "--yes", "--no-validate")
    assert (desk.folder / "models" / "anvil.yaml").read_text() == before


def test_a_hub_without_the_list_fails_no_import(desk: Desk) -> None:
    desk.hub.faults.append(Fault(LISTING, 404, times=9))
    ran = desk(BASE, "--device", "2xa100-40g", "--yes", "--no-validate")
    assert ran.code == 0
    assert "worth knowing: on " not in ran.out
    decision = receipt(desk)["decisions"]["listed_sisters"]
    assert decision["value"] is None
    assert "unknown" in json.dumps(decision)
