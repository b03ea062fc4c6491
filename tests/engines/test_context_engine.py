"""What we say vLLM derives from a config, against vLLM itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from importer.engines import registries
from importer.engines.install import Installed
from importer.hub.snapshot import Snapshot
from importer.signals import caching, context, overrides
from tests.recordings import RECORDINGS
from tests.waiting import PATIENCE

pytestmark = pytest.mark.engine

SCRIPT = Path(__file__).parents[1].joinpath("lengths_script.py")
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 256,
}  # fmt: skip
LLAMA = {
    **SMALL,
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "max_position_embeddings": 4096,
}
LONG = {"long_factor": [1.0] * 8, "short_factor": [1.0] * 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": LLAMA,
    "linear": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "dynamic": {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    "yarn": {**LLAMA, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}},
    "yarn-smaller": {**LLAMA, "max_position_embeddings": 163840, "rope_scaling": {
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}},
    "llama3": {**LLAMA, "max_position_embeddings": 131072, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0}},
    "new-names": {**LLAMA, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
    "longrope": {**SMALL, "model_type": "phi3", "architectures": ["Phi3ForCausalLM"],
                 "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
                 "pad_token_id": 0, "rope_scaling": {"type": "longrope", **LONG}},
    "class-smaller": {**SMALL, "model_type": "llama", "architectures": ["LlamaForCausalLM"],
                      "seq_length": 8192},
    "no-length": {**SMALL, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"],
                  "head_dim": 16},
    "window": {**SMALL, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
               "max_position_embeddings": 32768, "sliding_window": 4096},
    "decides": {**SMALL, "model_type": "cohere", "architectures": ["CohereForCausalLM"],
                "max_position_embeddings": 8192, "model_max_length": 131072},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_positions": 1024, "n_embd": 64,
             "n_layer": 2, "n_head": 4, "vocab_size": 256},
    "state-space": {**SMALL, "model_type": "mamba", "architectures": ["MambaForCausalLM"], "state_size": 16},
    "hybrid": {**SMALL, "model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"],
               "max_position_embeddings": 8192},
}  # fmt: skip


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
OVERRIDES: dict[str, dict[str, Any]] = {
    "more-positions": {"max_position_embeddings": 16384},
    "yarn-given": {"rope_scaling": YARN},
    "yarn-by-its-new-name": {"rope_parameters": {**YARN, "rope_theta": 10000.0}},
    "linear-given": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
}


@pytest.fixture(scope="module")
def told(vllm_engine: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    files: dict[str, dict[str, Any]] = {name: {"config.json": config} for name, config in CONFIGS.items()}
    for name, completed in _completed(vllm_engine).items():
        files[name] = {"config.json": LLAMA, "overrides.json": completed.settings[overrides.KEY]}

    def ask() -> dict[str, dict[str, Any]]:
        root = tmp_path_factory.mktemp("configs")
        for name, written in files.items():
            (root / name).mkdir()
            for file, data in written.items():
                (root / name / file).write_text(json.dumps(data), encoding="utf-8")
        command = [str(vllm_engine.python), str(SCRIPT), *(str(root / name) for name in files)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return {Path(line.pop("folder")).name: line for line in lines}

    found: dict[str, dict[str, Any]] = RECORDINGS.answer(
        vllm_engine.python, SCRIPT.read_text(), files, ask=ask
    )
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_the_length_is_vllms_own(name: str, told: dict[str, dict[str, Any]], vllm_engine: Installed) -> None:
    able = registries.load_capabilities("vllm", vllm_engine.version)
    snapshot = Snapshot("r", "someone/thing", None, (), {"config.json": json.dumps(CONFIGS[name])})
    found = context.derive(snapshot, able)
    assert found is not None
    assert found.tokens == told[name]["length"], told[name]
    said = {e.key: e.value for e in caching.evidence(snapshot, able)}
    assert said[caching.PREFIX] == told[name]["prefix_caching"]


def _completed(engine: Installed) -> dict[str, overrides.Overrides]:
    able = registries.load_capabilities("vllm", engine.version)
    plain = Snapshot("r", "someone/thing", None, (), {"config.json": json.dumps(LLAMA)})
    return {
        name: overrides.complete(plain, {overrides.KEY: given}, able) for name, given in OVERRIDES.items()
    }


@pytest.mark.parametrize(("name", "length"), [*zip(OVERRIDES, (16384, 16384, 16384, 8192), strict=True)])
def test_complete_overrides_give_the_length(
    name: str, length: int, told: dict[str, dict[str, Any]], vllm_engine: Installed
) -> None:
    found = context.derive(
        _completed(vllm_engine)[name].snapshot, registries.load_capabilities("vllm", vllm_engine.version)
    )
    assert found is not None
    assert found.tokens == told[name].get("length") == length, told[name]
