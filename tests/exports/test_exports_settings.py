"""Settings of an engine's own arguments: what the check accepts, every export of that engine writes."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.settings import refused
from benchmarks.settings import settings as random_settings
from importer import backends
from importer.document import argument_check, check, engine_data, schema
from importer.document.argument_check import arguments_of
from importer.document.build import put
from importer.document.engine_arguments import load, version_of
from importer.engines.base import Address
from importer.engines.vllm import VllmCuda
from importer.reasons import Reason
from importer.sentences import render
from importer.validation.expectations import promise_of
from tests.exporting import DOCUMENTS, VLLM, export, text


@pytest.mark.slow
@given(st.sampled_from(sorted(DOCUMENTS)), st.randoms(use_true_random=False))
def test_every_export_writes_what_the_check_accepts(engine: str, draw: Any) -> None:
    document = DOCUMENTS[engine]
    for more in random_settings(draw, engine, version_of(document), 1):
        made = {**document, **more}
        if next(check.faults(made), None) is None:
            assert [*refused(made)] == []


@pytest.mark.parametrize("engine", sorted(DOCUMENTS))
def test_most_settings_of_the_right_types_are_accepted(engine: str) -> None:
    """Else the test above would compare nothing."""
    draw, accepted = random.Random(7), 0
    for more in random_settings(draw, engine, version_of(DOCUMENTS[engine]), 200):
        accepted += next(check.faults({**DOCUMENTS[engine], **more}), None) is None
    assert accepted > 40


@pytest.mark.parametrize("engine", sorted(DOCUMENTS))
def test_every_argument_has_a_word_of_its_own(engine: str) -> None:
    flags = [a.flag or a.off for a in arguments_of(engine).values() if engine != "mlx" or a.flag]
    assert len(flags) == len({*flags})
    assert all(flag and flag.startswith("--") for flag in flags)


def test_further_names_variables_and_lists_reach_vllm_in_every_form() -> None:
    more = {
        "engine_args": {"served_model_name": ["other"], "cudagraph_capture_sizes": [1, 2]},
        "env": {"VLLM_USE_V2_MODEL_RUNNER": True, "VLLM_LOGGING_PREFIX": "a b"},
    }
    document = VLLM | more
    words = VllmCuda().settings(document, Address())
    assert words[words.index("--served-model-name") :][:3] == ["--served-model-name", "tiny-8b", "other"]
    assert words[words.index("--cudagraph-capture-sizes") :][:3] == ["--cudagraph-capture-sizes", "1", "2"]
    assert "env VLLM_USE_V2_MODEL_RUNNER=1 'VLLM_LOGGING_PREFIX=a b' vllm serve" in text(
        "vllm-command", document
    )
    assert "VLLM_LOGGING_PREFIX=a b" in text("compose", document)
    assert "VLLM_USE_V2_MODEL_RUNNER" in text("kserve", document)
    assert "\n- other\n" in text("vllm-config", document)
    lost = " ".join(map(render, export("localai", document).lost))
    assert "VLLM_USE_V2_MODEL_RUNNER" in lost


EAGLE: dict[str, Any] = {"method": "eagle3", "num_speculative_tokens": 3}
BESIDE: dict[str, dict[str, Any]] = {
    "engine_args.data_parallel_hybrid_lb": {"data_parallel_external_lb": True},
    "engine_args.attention_backend": {"attention_config": {"backend": "FLASH_ATTN"}},
}
DRAFTED: dict[str, Any] = {"engine_args": {"speculative_config": {"method": "mtp"}}}


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("engine_args.max_num_sqs", 1, "did you mean max_num_seqs"),
        ("engine_args.max_num_seqs", 0, "0 is not >= 1"),
        ("engine_args.compilation_config.cudagraf_mode", "NONE", "did you mean cudagraph_mode"),
        ("engine_args.max_model_len", 9, "use max_model_len at the top level"),
        ("engine_args.api_key", ["x"], "secret"),
        ("engine_args.speculative_config", EAGLE, "needs a second repository"),
        ("engine_args.speculative_config.model", "a/b", "name its commit"),
        ("engine_args.enable_eplb", True, "requires enable_expert_parallel"),
        ("engine_args.decode_context_parallel_size", 3, "does not divide tensor_parallel_size"),
        ("engine_args.data_parallel_hybrid_lb", True, "not both"),
        ("engine_args.data_parallel_external_lb", True, "requires data_parallel_rank, or data_parallel_size"),
        ("engine_args.kv_transfer_config.kv_connector", "x", "requires kv_transfer_config.kv_role"),
        ("max_model_len", -1, "on vLLM auto is the longest context that fits"),
        ("engine_args.attention_backend", "FLASH_ATTN", "not both"),
        ("engine_args.config_format", "plugin", "not one of auto, hf, mistral"),
        ("engine_args.tool_parser_plugin", "x", "belongs to the command"),
        ("load_format", "safetensor", "none of its 15 values, such as safetensors"),
        ("engine_args.swap_space", 4, "has no argument of this name any more; leave it out"),
        ("engine_args.rope-scaling", {}, "it is engine_args.hf_overrides.rope_parameters now"),
        ("env.VLLM_USE_V2_MODEL_RUNNERS", 1, "did you mean VLLM_USE_V2_MODEL_RUNNER"),
        ("env.LD_PRELOAD", "a", "no variable of an engine"),
        ("env.VLLM_API_KEY", "x", "secret"),
        ("env.NCCL_DEBUG", "/etc/x", "is not one of VERSION"),
        ("parameters.temprature", 1, "did you mean temperature"),
    ],
)
def test_what_the_engine_refuses_is_refused_with_its_place(path: str, value: Any, problem: str) -> None:
    document = {**VLLM, "engine_args": dict(BESIDE.get(path, {})), "parameters": dict(VLLM["parameters"])}
    put(document, tuple(path.split(".")), value)
    assert problem in faults(document).get(path, "")


def faults(document: Any) -> dict[str, str]:
    found = schema.faults("document", document)
    return {
        ".".join(map(str, f.path)): render(f.message) if isinstance(f.message, Reason) else f.message
        for f in found
    }


@pytest.mark.parametrize("mode", ["hf", "from_a_plugin"])
def test_a_list_that_the_engine_leaves_open_takes_further_names(mode: str) -> None:
    assert [*argument_check.faults("vllm", None, {"tokenizer_mode": mode})] == []


def test_arguments_of_earlier_releases_have_present_names() -> None:
    """No release that is known has both; each present name is an argument, or one of its members."""
    assert engine_data.load(backends.VLLM.name).renamed
    for engine in backends.NAMES:
        names = engine_data.load(engine).renamed
        registry = load(engine, None)
        assert registry is not None
        for before, after in names.items():
            head, _, member = after.partition(".")
            assert registry.get(before) is None, before
            assert not head or registry.get(head) is not None, after
            free = head == "hf_overrides"
            assert not member or free or any(member in fields for fields in registry.configs.values()), after


@pytest.mark.parametrize("switch", ["enforce_eager", "disable_log_stats"])
def test_a_switch_starts_the_engine_from_either_place(switch: str) -> None:
    for document in (VLLM | {switch: True}, VLLM | {"engine_args": {switch: True}}):
        assert faults(document) == {}
        words = VllmCuda().settings(document, Address())
        assert words.count(f"--{switch.replace('_', '-')}") == 1


def test_values_together_are_checked() -> None:
    least = {"parameters": {"model": "a/b", "min_p": 0.1}}
    assert "refuses every request with min_p" in faults(VLLM | DRAFTED | least)["parameters.min_p"]
    assert faults(VLLM | DRAFTED | {"parameters": {"model": "a/b", "min_p": 0.0}}) == {}
    batch = {"engine_args": {"max_num_seqs": 9, "max_num_batched_tokens": 8}}
    assert "more than max_num_batched_tokens, 8" in faults(VLLM | batch)["engine_args.max_num_seqs"]


@pytest.mark.parametrize(
    ("document", "entry", "problem"),
    [
        (VLLM, "tool_parsr:hermes", "did you mean tool_parser"),
        (DOCUMENTS["mlx"], "--host:0.0.0.0", "under engine_args"),
        (VLLM, "tool_parser:hermes", None),
        (VLLM, "--enable-eplb:false", "under engine_args"),
    ],
)
def test_options_that_no_engine_reads_as_they_are_meant(
    document: dict[str, Any], entry: str, problem: str | None
) -> None:
    found = faults({**document, "options": [entry]})
    assert found == {} if problem is None else problem in found["options.0"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"attention_backend": "flash_attn"},
        {"compilation_config": {"mode": 3, "cudagraph_mode": "full_and_piecewise"}},
        {"enable_expert_parallel": True, "enable_eplb": True},
        {"all2all_backend": "deepep_high_throughput", "moe_backend": "triton"},
        {"kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": "kv_both"}},
    ],
)
def test_members_of_enumerations_are_accepted_as_vllm_reads_them(arguments: dict[str, Any]) -> None:
    assert faults(VLLM | {"engine_args": arguments}) == {}


def test_variables_are_numbers_where_the_engine_reads_numbers() -> None:
    taken = {"VLLM_USE_DEEP_GEMM": True, "VLLM_KV_CACHE_LAYOUT": "HND"}
    assert faults(VLLM | {"env": taken}) == {}


def test_vllm_chooses_the_longest_context_by_itself() -> None:
    document = VLLM | {"max_model_len": "auto"}
    assert faults(document) == {}
    assert "--max-model-len=auto" in VllmCuda().settings(document, Address())
    assert "max-model-len: auto" in text("vllm-config", document)
    exported = export("localai", document)
    assert "max_model_len auto is left out" in " ".join(map(render, exported.lost))
    assert promise_of(document).context is None
    assert "only vLLM" in faults(DOCUMENTS["mlx"] | {"max_model_len": "auto"})["max_model_len"]


def test_a_kind_of_input_has_near_names_and_on_vllm_sizes() -> None:
    sizes = {"image": {"count": 4, "width": 512, "height": 512}, "video": 0}
    odd = faults(VLLM | {"limit_mm_per_prompt": {"immage": 4}})
    assert "did you mean image" in odd["limit_mm_per_prompt.immage"]
    assert faults(VLLM | {"limit_mm_per_prompt": sizes}) == {}
    assert "limit_mm_per_prompt.image" in faults(DOCUMENTS["sglang"] | {"limit_mm_per_prompt": sizes})
    written = yaml.safe_load(text("localai", VLLM | {"limit_mm_per_prompt": sizes}))
    assert written["engine_args"]["limit_mm_per_prompt"] == sizes
    assert "limit_mm_per_prompt" not in written


def test_the_ngrams_of_speculation_have_an_order() -> None:
    lookup = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 5, "prompt_lookup_max": 2}
    found = faults(VLLM | {"engine_args": {"speculative_config": lookup}})
    assert "more than" in found["engine_args.speculative_config.prompt_lookup_min"]


def test_a_drafter_at_a_commit_is_accepted() -> None:
    pinned = EAGLE | {"model": "acme/Draft", "revision": "0" * 40}
    assert faults(VLLM | {"engine_args": {"speculative_config": pinned}}) == {}
