"""How long a context the files say, and what bears on it; vLLM itself is asked in test_context_engine.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.decisions.decide import decide
from importer.decisions.decision import Preferences, Target
from importer.engines import registries
from importer.hub.snapshot import Snapshot
from importer.sentences import render
from importer.signals import caching, context, overrides
from importer.signals.engine_capabilities import UNKNOWN, Abilities
from tests.facts import whys

NEW, OLD = registries.load_capabilities("vllm", "0.32.0"), registries.load_capabilities("vllm", "0.14.1")
YARN = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 8192}


def snapshot(config: Any, card: str | None = None, **tokenizer: Any) -> Snapshot:
    texts = {"config.json": json.dumps(config), "tokenizer_config.json": json.dumps(tokenizer)}
    if card is not None:
        texts["README.md"] = card
    return Snapshot("r", "someone/thing", None, (), texts)


def length(config: Any, able: Abilities = UNKNOWN) -> int | None:
    found = context.derive(snapshot(config), able)
    return None if found is None else found.tokens


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"n_positions": 1024}, 1024),
        ({"max_position_embeddings": 1, "text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"max_position_embeddings": 4096, "text_config": {"hidden_size": 8}}, 4096),
        ({"thinker_config": {"text_config": {"max_position_embeddings": 2048}}}, 2048),
        ({"max_position_embeddings": True}, None),
        ({"max_position_embeddings": -1}, None),
        ({"max_position_embeddings": 10**30}, None),
        ({"text_config": "text", "max_position_embeddings": 512}, 512),
        ({"max_position_embeddings": 8192, "seq_length": 4096}, 4096),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),
        ({}, None),
    ],
)
def test_context_length(given: dict[str, Any], found: int | None) -> None:
    assert length(given) == found


@pytest.mark.parametrize(
    ("rope", "old", "new"),
    [
        ({"type": "linear", "factor": 2.0}, 65536, 65536),
        ({"rope_type": "dynamic", "factor": 8}, 262144, 262144),
        ({"type": "mrope", "mrope_section": [1]}, 32768, 32768),
        ({"rope_type": "llama3", "factor": 8.0}, 32768, 32768),
        (YARN, 32768, 32768),
        ({**YARN, "factor": 16}, 131072, 32768),  # vLLM changed its mind
        ({**YARN, "type": "vendor-yarn"}, 131072, 32768),
        ({"full_attention": {"rope_type": "linear", "factor": 4}, "sliding_attention": {"type": "default"}},
         131072, 131072),
        ({"type": "linear", "factor": "$(id)"}, 32768, 32768),
        ("yarn", 32768, 32768),
    ],
)  # fmt: skip
def test_rope_scaling_as_the_version_has_it(rope: Any, old: int, new: int) -> None:
    config = {"model_type": "llama", "max_position_embeddings": 32768, "rope_scaling": rope}
    assert (length(config, OLD), length(config, NEW)) == (old, new)


def test_longrope_starts_with_the_original_length() -> None:
    config = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
              "rope_scaling": {"type": "su", "factor": 32}}  # fmt: skip
    found = context.derive(snapshot(config), NEW)
    assert found is not None
    assert found.tokens == 4096
    assert "up to 131072" in render(found.notes[0])


def test_gemma3_is_scaled_already_and_has_a_length_by_its_class() -> None:
    inner = {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    config = {"model_type": "gemma3", "text_config": inner}
    assert length(config, NEW) == 131072
    facts = context.evidence(snapshot(config), NEW)
    decided = decide(facts, Preferences(), Target("vllm"))["max_model_len"]
    assert (decided.value, decided.status) == (131072, "engine-default")


def test_a_config_without_any_length_gets_what_vllm_assumes() -> None:
    assert length({"model_type": "never-heard-of"}, NEW) == 2048
    assert length({"model_type": "never-heard-of"}, registries.load_capabilities("mlx")) is None
    assert context.derive(Snapshot("r", "a/b", None, (), {}), NEW) is None


def reasons(told: Snapshot) -> tuple[str, ...]:
    return whys(decide(context.evidence(told, NEW), Preferences(), Target("vllm"))["max_model_len"])


# what vLLM does by itself with prompts


@pytest.mark.parametrize(
    ("config", "old", "new"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, True, True),
        ({"architectures": ["FalconH1ForCausalLM"]}, False, True),
        ({"architectures": ["GraniteMoeHybridForCausalLM"], "layer_types": ["attention"]}, True, True),
        ({"architectures": ["MambaForCausalLM"]}, False, False),
        ({"architectures": ["NeverHeardOf"]}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_prefix_caching_by_the_class_of_attention(config: Any, old: Any, new: Any) -> None:
    for able, found in ((OLD, old), (NEW, new)):
        facts = caching.evidence(snapshot(config), able)
        assert {e.key: e.value for e in facts} == ({} if found is None else {caching.PREFIX: found})
        assert {e.rule for e in facts} <= {"engine"}


ROBERTA = {"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}


@pytest.mark.parametrize(
    ("architecture", "more", "tokenizer", "tokens"),
    [
        ("XLMRobertaForSequenceClassification", {}, None, 512),
        ("RobertaModel", {"max_position_embeddings": 8194}, None, 8192),
        ("RobertaModel", {"pad_token_id": 0}, None, 513),
        ("RobertaModel", {"position_embedding_type": "absolute"}, 128, 128),
        ("RobertaModel", {"position_embedding_type": "rotary"}, 128, 514),
        ("BertModel", {"position_embedding_type": "absolute"}, 510, 510),
        ("BertModel", {}, 510, 514),  # vLLM reads the tokenizer's length for absolute positions alone
        ("LlamaForCausalLM", {"position_embedding_type": "absolute"}, 128, 514),
    ],
)
def test_a_table_of_positions_limits_a_model_that_pools(
    architecture: str, more: dict[str, Any], tokenizer: int | None, tokens: int
) -> None:
    texts = {"config.json": json.dumps({"architectures": [architecture], **ROBERTA, **more})}
    texts |= (
        {} if tokenizer is None else {"tokenizer_config.json": json.dumps({"model_max_length": tokenizer})}
    )
    told = Snapshot("r", "a/b", None, (), texts)
    found = context.derive(told, NEW)
    assert found is not None
    assert (found.tokens, context.longest(told, NEW)) == (tokens, tokens)
    assert context.evidence(told, NEW)[0].source == (
        "tokenizer_config.json" if tokens in (128, 510) else "config.json"
    )


QWEN = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "max_position_embeddings": 40960,
    "rope_theta": 1000000,
}  # fmt: skip
SEES = {
    "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
    "text_config": {
        "model_type": "qwen3_5_text", "max_position_embeddings": 262144,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "mrope_section": [11, 11, 10]},
    },
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
YARN_SEEN = {**YARN, "original_max_position_embeddings": 262144}
LONG = "max_position_embeddings"


@pytest.mark.parametrize(
    ("config", "given", "old", "new", "told"),
    [
        (QWEN, {"rope_scaling": YARN}, 131072, 131072, ["completed"]),
        (QWEN, {"rope_scaling": {**YARN, "factor": 1.0}}, 32768, 40960, []),
        (QWEN, {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, 163840, 163840, []),
        (QWEN, {"rope_scaling": YARN, LONG: 131072}, 131072, 131072, []),
        (QWEN, {"rope_scaling": YARN, LONG: 262144}, 131072, 262144, ["unscaled"]),
        (QWEN, {LONG: 131072}, 131072, 131072, ["unscaled"]),
        (SEES, {"text_config": {"rope_parameters": YARN_SEEN}}, 1048576, 1048576, ["completed"]),
        (SEES, {"rope_parameters": YARN_SEEN}, 1048576, 1048576, ["below", "completed"]),
        (SEES, {"text_config": {LONG: 1000000}}, 1000000, 1000000, ["unscaled"]),
    ],
)
def test_overrides_lengthen_the_context_as_the_version_reads_them(
    config: dict[str, Any], given: dict[str, Any], old: int, new: int, told: list[str]
) -> None:
    """0.27.1 multiplies by YaRN's factor; 0.33.0 takes the positions alone, so they are written, too."""
    for version, tokens in (("0.27.1", old), ("0.33.0", new)):
        able = registries.load_capabilities("vllm", version)
        made = overrides.complete(snapshot(config), {overrides.KEY: given}, able)
        found = context.derive(made.snapshot, able)
        assert found is not None
        assert found.tokens == tokens, version
        assert context.longest(overrides.overridden(snapshot(config), overrides.given(made.settings)), able)
    assert [e.reason.fields["reason"].kind.value for e in made.evidence] == told
    written: Any = made.settings[overrides.KEY]
    assert all(written[key] == value for key, value in given.items() if key != "text_config")
    dotted = {f"{overrides.KEY}.{key}": value for key, value in given.items()}
    assert overrides.complete(snapshot(config), dotted, able).snapshot == made.snapshot


def test_a_rope_written_below_keeps_what_it_leaves_open() -> None:
    able = registries.load_capabilities("vllm", "0.33.0")
    made = overrides.complete(snapshot(SEES), {overrides.KEY: {"rope_parameters": YARN_SEEN}}, able)
    written: Any = made.settings[overrides.KEY]
    assert written["text_config"]["rope_parameters"] == {
        **SEES["text_config"]["rope_parameters"],
        **YARN_SEEN,  # type: ignore[dict-item, index]
    }
    assert overrides.complete(snapshot(SEES), {"max_model_len": 8}, able).settings == {"max_model_len": 8}
