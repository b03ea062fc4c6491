"""What a document grants an engine: code, folders and hosts, wherever the words stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer import backends
from importer.document import effects, environment
from importer.document.effects import Effect
from importer.document.engine_arguments import load, versions
from importer.document.grants import GrantReason, grants, set_values
from importer.sentences import render


def kinds(data: Mapping[str, Any]) -> set[str]:
    return {grant.kind.value for grant in grants(data)}


HUB: dict[str, Any] = {
    "backend": "vllm",
    "parameters": {"model": "a/b"},
    "importer": {"reference": "a/b", "model_id": "a/b", "revision": "1"},
}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, set()),
        ({"trust_remote_code": False}, set()),
        ({"trust_remote_code": None}, set()),
        ({"trust_remote_code": True}, {"code"}),
        ({"trust_remote_code": "yes"}, {"code"}),
        ({"engine_args": {"trust_remote_code": True}}, {"code"}),
        ({"engine_args": {"trust-remote-code": True}}, {"code", "setting"}),
        ({"engine_args": {"mm": {"trust_remote_code": True}}}, {"code", "setting"}),
        ({"engine_args": {"hostfile": "/etc/hosts"}}, {"setting"}),
        ({"engine_args": {"hostfile": None}}, set()),
        ({"options": ["--trust-remote-code"]}, {"setting"}),
        ({"options": ["tool_parser:hermes"]}, set()),
        ({"engine_args": {"data_parallel_address": "0.0.0.0"}}, {"setting"}),
        ({"engine_args": {"master_addr": "10.0.0.1"}}, {"setting"}),
        ({"env": {"VLLM_HOST_IP": "0.0.0.0"}}, {"setting"}),
        ({"engine_args": {"kv_transfer_config": {"connectors": [{"proxy_ip": "10.0.0.1"}]}}}, {"setting"}),
        ({"engine_args": {"x": {"peer_addresses": ["10.0.0.1"]}}}, {"setting"}),
        ({"engine_args": {"x": [[{"trust_remote_code": True}]]}}, {"code", "setting"}),
        ({"env": {"NCCL_SOCKET_IFNAME": "eth0"}, "engine_args": {"nnodes": 2}}, {"setting"}),
        ({"env": {"NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "0,1"}, "engine_args": {"nnodes": 1}}, set()),
        ({"engine_args": {"nnodes": 2}}, {"setting"}),
        ({"parameters": {"model": "/srv/model"}}, {"folder"}),
        ({"parameters": {"model": " ./model"}}, {"folder"}),
        ({"parameters": {"model": "~/model"}}, {"folder"}),
        ({"parameters": {"model": "word"}}, {"folder"}),
        ({"importer": {"reference": "../model"}}, {"folder"}),
        ({"importer": {"model_id": "/srv/model"}}, {"folder"}),
        ({"parameters": None, "importer": [], "engine_args": "x"}, set()),
    ],
)
def test_what_is_granted(more: dict[str, Any], found: set[str]) -> None:
    assert kinds({**HUB, **more}) == found


def test_another_model_or_commit_is_another_grant() -> None:
    trusted = {**HUB, "trust_remote_code": True}
    assert grants(trusted) == grants({**trusted, "description": "x"})
    for other in ({"parameters": {"model": "e/vil"}}, {"importer": {**HUB["importer"], "revision": "2"}}):
        assert grants({**trusted, **other}) - grants(trusted)


def test_values_that_an_import_sets() -> None:
    assert not set_values({"temperature": 1, "trust_remote_code": False})
    for said in (
        {"trust_remote_code": True},
        {"engine_args.trust_remote_code": 1},
        {"engine_args": {"hostfile": "x"}},
    ):
        assert len(set_values(said)) == 1


@pytest.mark.parametrize("kind", GrantReason)
def test_each_has_a_sentence(kind: GrantReason) -> None:
    drafter = {"model": "acme/Draft", "revision": "0" * 40}
    arguments = {"hostfile": "/h", "master_addr": "a/b", "speculative_config": drafter}
    data = {"trust_remote_code": True, "parameters": {"model": "/m"}, "engine_args": arguments}
    assert "/" in next(render(grant.reason) for grant in grants(data) if grant.kind is kind)


def test_a_name_alone_is_one_of_the_engines_arguments() -> None:
    inner = {"kv_transfer_config": {"kv_connector_extra_config": {"proxy_ip": "10.0.0.1"}}}
    for said in ({"data_parallel_address": "0.0.0.0"}, inner, {"env.VLLM_NIXL_SIDE_CHANNEL_HOST": "a"}):
        assert {g.kind for g in set_values(said)} == {GrantReason.SETTING}
    assert not set_values({"parameters": {"seed": 1}, "importer": {"ip": "a"}, "tool_parser": "hermes"})
    assert not set_values({"description": "x", "chat_template_kwargs.ip": "10.0.0.1"})


WRAPPER = 'native -wrapper \'sh,-c,id>FILE;"$0" "$@"\''
BEYOND: dict[str, Any] = {  # what ran code, named hosts or files, or ended a protection, by dotted path
    "env.TORCHINDUCTOR_CPP_MARCH": WRAPPER,
    "env.FLASHINFER_EXTRA_CUDAFLAGS": "; id > FILE ;",
    "env.TRITON_CACHE_MANAGER": "evil.module:Manager",
    "env.SGLANG_EXTERNAL_MODEL_PACKAGE": "evil",
    "env.TORCH_LOGS": "evil.module",
    "env.NCCL_COMM_ID": "10.0.0.1:9",
    "env.MOONCAKE_MASTER": "evil",
    "env.XLA_FLAGS": "--xla_dump_to=/etc",
    "env.FLASHINFER_CUBIN_CHECKSUM_DISABLED": "1",
    "env.VLLM_ALLOW_INSECURE_SERIALIZATION": 1,
    "env.MLX_TRUST_REMOTE_CODE": "true",
    "env.VLLM_USE_DEEP_GEMM": "1; id",
    "env.OMP_NUM_THREADS": "4 -wrapper",
    "env.CUDA_VISIBLE_DEVICES": "0,\u0661",
    "env.NCCL_DEBUG": "info",
    "engine_args.compilation_config.inductor_compile_config": {"cpp.march": WRAPPER},
    "engine_args.compilation_config.inductor_compile_config.unknown": 1,
    "engine_args.compilation_config": {"inductor_passes": {"x": "a.b"}},
    "engine_args.additional_config.deep": [{"er": {"x": 1}}],
    "engine_args.hf_overrides.auto_map": {"AutoModel": "a.B"},
    "engine_args.hf_overrides.rope_scaling.rope_type": "evil",
    "engine_args.hf_overrides.text_config.architectures": ["A"],
    "engine_args.kv_transfer_config.kv_connector": "evil.Connector",
    "engine_args.worker_cls": "a.B",
    "engine_args.logits_processors": ["a.b:C"],
    "engine_args.download_dir": "x",
    "engine_args.tokenizer": "e/vil",
    "engine_args.master_port": 1,
    "engine_args.served_model_name": ["x"],
    "engine_args.profiler_config.torch_profiler_dir": "/etc",
    # Numbers, switches and listed words, by their effects.
    "engine_args.kv_events_config": {"enable_kv_cache_events": True, "publisher": "zmq"},
    "engine_args.kv_events_config.enable_kv_cache_events": True,
    "engine_args.nnodes": 2,
    "engine_args.distributed_executor_backend": "ray",
    "engine_args.prefix_caching_hash_algo": "xxhash",
    "engine_args.scheduling_policy": "priority",
    "engine_args.speculative_config.rejection_sample_method": "synthetic",
    "engine_args.profiler_config.profiler": "torch",
    "engine_args.max_logprobs": -1,
    "engine_args.h11_max_header_count": 100_000,
    "env.VLLM_REGEX_COMPILATION_TIMEOUT_S": 0,
    "env.VLLM_MAX_N_SEQUENCES": "1000000",
    "env.VLLM_V1_USE_OUTLINES_CACHE": 1,
    "env.VLLM_ENABLE_RESPONSES_API_STORE": True,
    "env.VLLM_LOGGING_LEVEL": "DEBUG",
    "engine_args.uvicorn_log_level": "warning",  # without the record of requests
    "engine_args.config_format": "plugin",
    "engine_args.attention_backend": "CUSTOM",
    "engine_args.attention_config.backend": "CUSTOM",
    "engine_args.api_server_count": 100_000,
    "env.SGLANG_TEST_STUCK_TOKENIZER": 1,
    "env.PYTHONHASHSEED": 0,
    # Keys of LocalAI that importer neither writes nor types.
    "mcp.stdio": "{}",
    "mcp": {"stdio": "{}"},
    "proxy.upstream": "http://e.vil",
    "mitm.hosts": ["e.vil"],
    "download_files": [{"filename": "a", "uri": "http://e.vil"}],
    "template.chat": '{{env "HF_TOKEN"}}',
    "function.response_regex": ["x"],
    "options": ["gpu:1"],
    "reasoning.tag_pairs": [{"start": "a"}],
    "artifacts": [{"name": "model", "source": {"token_env": "HF_TOKEN"}}],
    "load_format": "dummy",
    "cuda": True,
    "draft_model": "x",
    "parameters.tokenizer": "e/vil",
}
LISTED: dict[str, Any] = {
    "env.VLLM_USE_DEEP_GEMM": 0, "env.VLLM_ROCM_USE_AITER": True, "env.VLLM_KV_CACHE_LAYOUT": "HND",
    "env.OMP_NUM_THREADS": "8", "env.VLLM_CPU_OMP_THREADS_BIND": "0-3|4-7",
    "env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "engine_args.compilation_config.cudagraph_mode": "PIECEWISE",
    "engine_args.compilation_config.pass_config.fuse_norm_quant": True,
    "engine_args.hf_overrides": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "engine_args.hf_overrides.text_config.max_position_embeddings": 131072,
    "engine_args.media_io_kwargs.video.num_frames": -1, "engine_args.attention_backend": "FLASH_ATTN",
    "engine_args.max_num_batched_tokens": "8K", "engine_args.kv_cache_dtype": "fp8",
    "engine_args.cudagraph_capture_sizes": [1, 2],
    "engine_args.max_logprobs": 5, "env.VLLM_MAX_N_SEQUENCES": "8", "engine_args.max_num_queued_reqs": 9,
    "engine_args.nnodes": 1, "engine_args.speculative_config": {"method": "ngram", "prompt_lookup_max": 4},
    "parameters.temperature": 0.6, "quantization": "fp8", "load_format": "auto", "reasoning_effort": "low",
    "env.VLLM_LOGGING_LEVEL": "WARNING", "engine_args.config_format": "mistral",
    "engine_args.log_level": "ERROR", "engine_args.api_server_count": 4,
    "template.use_tokenizer_template": True, "options": ["tool_parser:hermes"], "stopwords": ["x"],
}  # fmt: skip


def setting(path: str, value: Any) -> Mapping[str, Any]:
    """Return a document that sets the value."""
    head, *steps = path.split(".")
    nested: Any = value
    for step in reversed(steps):
        nested = {step: nested}
    return {**HUB, head: nested}


@pytest.mark.parametrize("path", BEYOND)
def test_text_that_a_program_reads_is_a_grant_in_every_spelling(path: str) -> None:
    value = BEYOND[path]
    document = setting(path, value)
    assert GrantReason.SETTING in kinds(document), document
    assert kinds({**document, "backend": None}) >= {"setting"}
    assert set_values({path: value})
    assert set_values({path: value}, {"backend": "vllm"})
    assert path.rsplit(".", maxsplit=1)[-1] in render(next(iter(set_values({path: value}))).reason)


@pytest.mark.parametrize("path", LISTED)
def test_numbers_switches_and_choices_on_the_list_are_none(path: str) -> None:
    assert kinds(setting(path, LISTED[path])) == set()
    assert not set_values({path: LISTED[path]}, {"backend": "vllm"})


NAMES = st.one_of(
    st.builds(
        "{}{}".format,
        st.sampled_from([p for p in environment.families() if p.isupper() and p.endswith("_")]),
        st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", min_size=1, max_size=20),
    ),
    st.text(min_size=1, max_size=30),
)


@pytest.mark.hypothesis
@given(engine=st.sampled_from(backends.NAMES), name=NAMES, value=st.sampled_from([1, "1", "true", "a", "/x"]))
def test_no_random_name_is_free(engine: str, name: str, value: Any) -> None:
    """Names of each family: a variable is free by its place on the list alone, and by its type."""
    registry = load(engine)
    assert registry is not None
    granted = kinds({**HUB, "backend": engine, "env": {name: value}})
    assert granted == {"setting"} or name in registry.variables
    assert set_values({f"engine_args.{name}_x": value}, {"backend": engine})


@pytest.mark.parametrize("engine", backends.NAMES)
def test_a_person_has_read_the_effect_of_every_name(engine: str) -> None:
    """Each name of a registry has an effect, no name has two, and a proposal is none."""
    read = effects.table(engine)
    for version in versions(engine):
        registry = load(engine, version)
        assert registry is not None
        rows = {**registry.configs, **registry.maps}
        inner = [f"{of}.{key}" for of, keys in rows.items() for key in keys]
        assert not [n for n in (*registry.arguments, *inner, *registry.variables) if not read.has(n)]
        kinds = filter(None, registry.variables.values())
        assert all(environment.typed("no such text/", kind) is not None for kind in kinds)
    for name in (engine, effects.LIBRARIES, effects.DOCUMENT):
        data = json.loads((effects.FOLDER / f"{name}.json").read_text())
        assert data.keys() - {"schema", "of"} <= {*Effect}, "read these names, and move each to its effect"
        listed = [key for effect in Effect for key in data.get(effect, ())]
        assert len(listed) == len({*listed})


@pytest.mark.parametrize(("engine", "least"), [("vllm", 20), ("mlx", 2)])
def test_a_limit_is_free_downwards_alone(engine: str, least: int) -> None:
    limits = effects.table(engine).most
    assert len(limits) > least
    for name, most in limits.items():
        key = f"env.{name}" if name.isupper() else f"engine_args.{name}"
        assert not set_values({key: 1}, {"backend": engine})
        for wide in (0, -1, *([] if most is None else [most + 1])):
            assert set_values({key: wide}, {"backend": engine}), (key, wide)
