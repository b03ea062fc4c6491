"""Heads for multi-token prediction: what configs declare, what weights hold, what a version drafts with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.decisions.decide import decide
from importer.decisions.decision import Preferences, Target
from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.signals import speculation
from importer.signals.comparison import INDEX
from importer.signals.engine_capabilities import Machine
from tests.facts import whys

VLLM, OLD = registries.load_capabilities("vllm", "0.32.0"), registries.load_capabilities("vllm", "0.14.1")
CPU, H100 = Machine("cpu"), Machine("cuda", 90)
GLM = {"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "num_hidden_layers": 46,
       "num_nextn_predict_layers": 1}  # fmt: skip
QWEN = {"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1}}
DRAFTS = {"method": "mtp", "num_speculative_tokens": 1}


def snapshot(
    config: Any, tensors: list[str] | None = None, files: tuple[str, ...] = (), **info: Any
) -> Snapshot:
    texts = {"config.json": json.dumps(config)}
    if tensors is not None:
        texts[INDEX] = json.dumps({"weight_map": dict.fromkeys(tensors, "model.safetensors")})
    return Snapshot("r", "someone/thing", None, tuple(RepoFile(f) for f in files), texts, info)


def drafted(told: Snapshot, able: Any = VLLM, machine: Machine = CPU) -> Any:
    """Return the value that is offered, ``None`` where there is no offer; nothing is switched on."""
    facts = speculation.evidence(told, able, machine)
    assert [fact.value for fact in facts] in ([], [None])
    return json.loads(str(facts[0].reason.fields["offer"])) if facts else None


@pytest.mark.parametrize(
    ("tensors", "found"),
    [
        (["model.embed_tokens.weight", "mtp.fc.weight"], DRAFTS),
        (["model.layers.45.mlp.gate.weight", "model.layers.46.eh_proj.weight"], DRAFTS),
        (["model.layers.46.self_attn.o_proj.weight"], DRAFTS),  # behind the last of 46
        (["model.layers.45.mlp.gate.weight", "lm_head.weight"], None),
        ([], DRAFTS),  # an index that names nothing says nothing
    ],
)
def test_what_the_weights_hold(tensors: list[str], found: Any) -> None:
    assert drafted(snapshot(GLM, tensors)) == found


@pytest.mark.parametrize(
    ("more", "info"),
    [
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, {}),
        ({}, {"card": {"base_model": "zai-org/GLM-4.5"}}),
    ],
)
def test_a_model_that_was_made_again_may_have_lost_them(more: Any, info: Any) -> None:
    assert drafted(snapshot({**GLM, **more}, **info)) is None
    assert drafted(snapshot({**GLM, **more}, ["mtp.fc.weight"], **info)) == DRAFTS


def test_a_vendors_own_fp8_is_no_sign_of_that() -> None:
    assert drafted(snapshot({**GLM, "quantization_config": {"quant_method": "fp8"}})) == DRAFTS


def test_versions_devices_and_engines_differ() -> None:
    assert drafted(snapshot(GLM), OLD, H100) == DRAFTS
    assert drafted(snapshot(GLM), OLD, CPU) is None  # its runner for processors refuses to draft
    assert drafted(snapshot(QWEN), OLD, H100) is None  # it does not know the type
    assert drafted(snapshot({**GLM, "model_type": "x", "architectures": ["X"]})) is None
    assert drafted(snapshot(GLM), registries.load_capabilities("mlx")) is None


def test_heads_are_offered_with_their_cost_and_switched_on_by_the_user_alone() -> None:
    facts = speculation.evidence(snapshot(GLM, ["mtp.fc.weight"]), VLLM, CPU)
    decided = decide(facts, Preferences(), Target("vllm"))[speculation.KEY]
    assert decided.value is None
    assert "min_p or logit_bias" in whys(decided)[0]
    chosen = decide(facts, Preferences({speculation.KEY: DRAFTS}), Target("vllm"))[speculation.KEY]
    assert (chosen.value, chosen.status) == (DRAFTS, "user")
