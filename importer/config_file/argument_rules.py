"""Arguments that no document sets, those that have a place of their own, and those that need an approver."""

from __future__ import annotations

import re
from collections.abc import Mapping

from importer.config_file.engine_arguments import Argument, names
from importer.reasons import Fields, Reason, ReasonKind


def _own_place(fields: Fields) -> str:
    """The place of an argument with a key of its own; of the same name it is the key alone."""
    if fields["key"] == fields["place"]:
        return f"it is not set here; use {fields['key']} at the top level"
    return f"{fields['key']} is not set here; use {fields['place']}"


class Refusal(ReasonKind):
    """Why a document may not set an argument."""

    LAUNCHER = "launcher", "{key} belongs to the command that starts the server, so no document sets it"
    OWN_PLACE = "own-place", _own_place
    SECRET = "secret", "{key} is a secret, so no document sets it"
    TRUSTED_CLIENTS = "trusted-clients", "{key} trusts what clients send, so no document sets it"


SECRETS = re.compile(r"(?:^|_)(?:api_key|hf_token|auth_token|password|passphrase|secret|credentials?)(?:_|$)")
DRAFTER = "speculative_config.model"  # a second repository, at a commit of its own
# Numbers, switches and choices that an approver decides on, for what they do.
WITHHELD: Mapping[str, str] = {
    **dict.fromkeys(
        ("allow_credentials", "enable_tokenizer_info_endpoint", "enable_log_requests", "enable_log_outputs",
         "enable_log_deltas", "log_requests", "log_requests_level", "enable_trace"), "protection",
    ),
    **dict.fromkeys(
        ("data_parallel_supervisor_port", "data_parallel_rpc_port", "master_port", "kv_port", "ec_port",
         "nccl_port", "gated_launch_port", "smg_http_sidecar_port", "disaggregation_bootstrap_port",
         "encoder_bootstrap_port", "engine_info_bootstrap_port", "dist_init_port", "load_balance_port",
         "remote_instance_weight_loader_seed_instance_service_port", "remote_instance_weight_loader_backend",
         "remote_instance_weight_loader_start_seed_via_transfer_engine"), "place",
    ),
    **dict.fromkeys(("delete_ckpt_after_loading", "export_metrics_to_file"), "file"),
}  # fmt: skip
# The values of an argument that may hold more: the name of a class, or of a folder.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "vllm.generation_config": ("auto", "vllm"),
    "vllm.distributed_executor_backend": ("mp", "ray", "uni"),
    "sglang.speculative_algorithm": ("EAGLE", "NEXTN", "NGRAM"),  # others need a second model, or a file
    "vllm.compilation_config.backend": ("", "eager", "inductor"),
    "sglang.model_impl": ("auto", "sglang", "transformers", "mindspore"),
}
# Arguments of ``mlx.launch``, that starts mlx-lm's server in several processes.
ADDED: Mapping[str, Mapping[str, Argument]] = {
    "mlx": {
        "pipeline_parallel_size": Argument("pipeline_parallel_size", "int", limits={"ge": 1}),
        "distributed_executor_backend": Argument(
            "distributed_executor_backend", {"one_of": ["ring", "mpi", "jaccl", "jaccl-ring", "nccl"]}
        ),
        "hostfile": Argument("hostfile", "str"),
    }
}
# The command of importer sets them: address, model, commit, keys, certificates; or they end the server.
LAUNCHER = names(
    "host port root_path fastapi_root_path grpc grpc_port grpc_mode smg_grpc_mode headless config model "
    "model_path model_weights revision code_revision tokenizer_revision ssl_ciphers ssl_cert_reqs "
    "enable_ssl_refresh offline reload enable_http2 hf_config_path tool_parser_plugin reasoning_parser_plugin"
)
# The server would do for its clients what only its owner may decide.
FOR_CLIENTS = names(
    "enable_prompt_embeds enable_mm_embeds enable_custom_logit_processor enable_scale_out tool_server "
    "allowed_local_media_path"
)
# Arguments with a key of their own in a document.
_COMMON = {
    "chat_template": "importer.chat_template",
    "tool_call_parser": "tool_parser",
    "reasoning_parser": "reasoning_parser",
    "enable_auto_tool_choice": "tool_parser",
    "trust_remote_code": "trust_remote_code",
    "default_chat_template_kwargs": "chat_template_kwargs",
}
# Switches with a key of their own that documents for LocalAI have below ``engine_args``, too.
EITHER = ("vllm.enforce_eager", "vllm.disable_log_stats")
_VLLM = ("dtype", "max_model_len", "load_format", "gpu_memory_utilization", "enforce_eager",
         "tensor_parallel_size", "disable_log_stats", "limit_mm_per_prompt")  # fmt: skip
OWN_PLACES: Mapping[str, Mapping[str, str]] = {
    "vllm": _COMMON
    | {key: key for key in _VLLM}
    | {"override_generation_config": "parameters", "spec_method": "engine_args.speculative_config",
       "spec_model": "engine_args.speculative_config", "spec_tokens": "engine_args.speculative_config"},
    "sglang": _COMMON
    | {"served_model_name": "name", "dtype": "dtype", "quantization": "quantization",
       "load_format": "load_format", "tp_size": "tensor_parallel_size",
       "limit_mm_data_per_request": "limit_mm_per_prompt"},
    "mlx": _COMMON
    | {"temp": "parameters.temperature", "top_p": "parameters.top_p", "top_k": "parameters.top_k",
       "min_p": "parameters.min_p", "max_tokens": "parameters.max_tokens",
       "chat_template_args": "chat_template_kwargs", "use_default_chat_template": "importer.chat_template",
       "pipeline": "engine_args.pipeline_parallel_size"},
    "mlx-vlm": _COMMON
    | {"max_tokens": "parameters.max_tokens", "enable_thinking": "chat_template_kwargs.enable_thinking"},
    "vllm-mlx": _COMMON
    | {"served_model_name": "name", "max_tokens": "parameters.max_tokens",
       "max_request_tokens": "parameters.max_tokens",
       "default_temperature": "parameters.temperature", "default_top_p": "parameters.top_p",
       "default_top_k": "parameters.top_k", "default_min_p": "parameters.min_p",
       "default_presence_penalty": "parameters.presence_penalty",
       "default_repetition_penalty": "parameters.repeat_penalty"},
}  # fmt: skip


def refusal(engine: str, name: str) -> Reason | None:
    """Return why no document sets the argument ``name`` of ``engine_args``; ``None`` where one may."""
    place = OWN_PLACES.get(engine, {}).get(name)
    if name in ADDED.get(engine, {}):
        return None
    if place is not None and f"{engine}.{name}" not in EITHER:
        return Reason(Refusal.OWN_PLACE, key=name, place=place)
    if name in LAUNCHER:
        return Reason(Refusal.LAUNCHER, key=name)
    if name in FOR_CLIENTS or name.startswith("trust_"):
        return Reason(Refusal.TRUSTED_CLIENTS, key=name)
    return Reason(Refusal.SECRET, key=name) if SECRETS.search(name.lower()) else None
