"""What files say, from a repository on a Hub to the document, the receipt and the terminal."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import yaml

from importer.decisions.decision import Chosen
from importer.document import schema
from importer.document.build import build
from importer.document.build_text import to_text
from importer.reasons import Reason
from importer.signals.reasons import DraftReason
from tests.commandline import BASE, Desk
from tests.document.test_document import ENGINE, SUBJECT, decisions
from tests.facts import as_reason
from tests.hubserver import Repo


def config(**more: Any) -> dict[str, Any]:
    return {**BASE, "config.json": {**dict(BASE["config.json"]), **more}}  # type: ignore[arg-type]


def test_code_is_listed_with_the_hubs_own_hashes(desk: Desk) -> None:
    text = "raise SystemExit\n"
    files = config(auto_map={"AutoConfig": "configuration_x.X"}) | {"configuration_x.py": text}
    desk.hub.repos["acme/code"] = Repo(files)
    ran = desk("acme/code", "--json")
    assert ran.code == 0
    decision = ran.line["decisions"]["code"]
    git = hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()
    assert decision["value"] == {"configuration_x.py": git}
    assert not [entry for entry in desk.hub.log if "configuration_x" in str(entry)]  # never fetched
    assert "trust_remote_code" not in ran.line["document"]
    again = json.loads((desk.folder / "models" / "code.receipt.json").read_text())
    kept = {name: value for name, value in again["decisions"]["code"].items() if name != "reasons"}
    assert kept == decision
    assert "code" not in ran.line["document"]["importer"]


@pytest.mark.parametrize("backend", ["auto", "vllm"])
def test_a_document_that_cannot_run_is_never_written_silently(desk: Desk, backend: str) -> None:
    desk.hub.repos["acme/mlx"] = Repo(config(quantization={"group_size": 64, "bits": 4}))
    ran = desk("acme/mlx", "--json", "--backend", backend)
    assert ran.code == 0
    assert ran.line["document"]["backend"] == ("mlx" if backend == "auto" else "vllm")
    assert ("does not read mlx (affine-4bit)" in ran.err) is (backend == "vllm")


def test_usecases_follow_from_what_goes_in() -> None:
    def usecases(*takes: str) -> Any:
        more = {"modalities": Chosen([*takes], "vendor", (as_reason("config.json"),))} if takes else {}
        built = build(SUBJECT, decisions(**more), ENGINE, {})
        schema.check("document", built.data, "x")
        return built.data["known_usecases"]

    assert usecases() == ["chat"]
    assert usecases("image") == usecases("image", "video") == ["chat", "vision"]
    assert usecases("image", "audio") == ["chat", "vision", "multimodal"]
    assert usecases("audio") == ["chat", "multimodal"]


def test_maps_have_their_reason_and_defaults_are_not_written() -> None:
    drafts = {"method": "mtp", "num_speculative_tokens": 1}
    key = "engine_args.enable_prefix_caching"
    drafted = Reason(DraftReason.OFFERED, quote="x", how="y", offer="z")
    more = {
        "engine_args.speculative_config": Chosen(drafts, "vendor", (drafted,)),
        key: Chosen(True, "engine-default", (as_reason("on by itself"),)),
    }
    text = to_text(build(SUBJECT, decisions(**more), ENGINE, {}))
    assert "method: mtp  # vendor: config.json" in text
    assert yaml.safe_load(text)["engine_args"] == {"speculative_config": drafts}
    more[key] = Chosen(False, "user", (as_reason("set by the user"),))
    told = build(SUBJECT, decisions(**more), ENGINE, {}).data["engine_args"]
    assert told == {"speculative_config": drafts, "enable_prefix_caching": False}


def test_speculation_is_offered_in_a_line_with_its_cost_and_how_to_ask(desk: Desk) -> None:
    heads = {"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "num_nextn_predict_layers": 1}
    desk.hub.repos["acme/heads"] = Repo(config(**heads))
    given = ("acme/heads", "--backend", "vllm", "--device", "H200", "--dry-run", "--no-validate")
    (offer,) = [line for line in desk(*given).out.splitlines() if line.startswith("speculation:")]
    assert "--set speculative_config=mtp" in offer
    assert "min_p" in offer
    assert len(offer) <= 80
    assert "speculation: off" not in desk(*given, "--set", "speculative_config=mtp").out
