"""What no document sets: arguments that load code, open files, name other places, or are set elsewhere.

The rules read names and types, so that they hold for arguments of versions that nobody here has seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from importer.config_file.engine_arguments import Argument, Kind, names
from importer.reasons import Reason


class Refusal(StrEnum):
    """Why a document may not set an argument."""

    CODE = "code"
    FILE = "file"
    LAUNCHER = "launcher"
    OTHER_MODEL = "other-model"
    OWN_PLACE = "own-place"
    PLACE = "place"
    SECRET = "secret"  # noqa: S105 - a word
    TRUSTED_CLIENTS = "trusted-clients"


# Steps of a name, between underscores and dots.
CODE = names(
    "class cls callable code function hook hooks middleware middlewares module plugin plugins sidecar"
)
FILES = names(
    "path paths file files dir dirs directory folder root socket uds keyfile certfile certs location prompts "
    "template"
)
PLACES = names("url urls uri uris endpoint endpoints webhook")
SECRETS = re.compile(r"(?:^|_)(?:api_key|hf_token|auth_token|password|passphrase|secret|credentials?)(?:_|$)")
# A text there may name a class in place of one of the engine's own.
ROLES = names(
    "backend connector executor loader passes policy processor processors publisher scheduler worker"
)
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*")
PATH = re.compile(r"^(?:/|~|\\|[A-Za-z]:\\)|(?:^|/)\.\.?/")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
MODELS = names("model tokenizer adapter lora loras")
# Their names do not give them away: a file that is read, files that are removed.
OPENING = frozenset(("speculative_token_map", "delete_ckpt_after_loading"))
NAMING_CODE = frozenset(("auto_map", "custom_pipelines"))  # of configs of transformers and diffusers
DRAFTER = "speculative_config.model"  # a second repository, at a commit of its own
# A class of the engine's own package: its code is installed with it.
OWN_CLASSES: Mapping[str, re.Pattern[str]] = {
    "vllm.logits_processors": re.compile(r"vllm\.[\w.]+:[A-Za-z_]\w*")
}
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
    "enable_ssl_refresh offline reload enable_http2 hf_config_path"
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


def refusal(engine: str, path: tuple[str, ...], kind: Kind) -> Reason | None:
    """Return why no document sets the argument at ``path`` below ``engine_args``; ``None`` where it may.

    ``path`` has the name of the argument and the keys inside of it.
    """
    name = path[-1]
    if len(path) == 1:
        if name in ADDED.get(engine, {}):
            return None
        place = OWN_PLACES.get(engine, {}).get(name)
        if place is not None and f"{engine}.{name}" not in EITHER:
            return Reason(Refusal.OWN_PLACE, key=name, place=place)
        if f"{engine}.{name}" in CHOICES:
            return None
        if name in LAUNCHER:
            return Reason(Refusal.LAUNCHER, key=name)
        if name in FOR_CLIENTS:
            return Reason(Refusal.TRUSTED_CLIENTS, key=name)
    return _by_name(".".join(path), name, kind) if f"{engine}.{name}" not in OWN_CLASSES else None


def _by_name(dotted: str, name: str, kind: Kind) -> Reason | None:
    """Return what the name gives away of an argument that holds more than a number or a switch."""
    steps = re.split(r"[_.-]", name.lower())
    if name in NAMING_CODE:
        return Reason(Refusal.CODE, key=dotted)
    if name in OPENING:
        return Reason(Refusal.FILE, key=dotted)
    if not _texts(kind):
        return Reason(Refusal.TRUSTED_CLIENTS, key=dotted) if steps[0] == "trust" else None
    if SECRETS.search(name.lower()):
        return Reason(Refusal.SECRET, key=dotted)
    if kind == "code" or CODE & {*steps} or steps[-1] in ("passes", "loader"):
        return Reason(Refusal.CODE, key=dotted)
    # The configuration of another library, as one text: a file, or JSON that nothing here reads.
    if steps[-1] in FILES or kind == "path" or (steps[-1] == "config" and kind == "str"):
        return Reason(Refusal.FILE, key=dotted)
    if PLACES & {*steps} and steps[0] != "disable":
        return Reason(Refusal.PLACE, key=dotted)
    if steps[-1] in MODELS and dotted != DRAFTER:
        return Reason(Refusal.OTHER_MODEL, key=dotted)
    return None


def _texts(kind: Kind) -> bool:
    """Return whether values of the type may hold a free text."""
    if isinstance(kind, str):
        return kind in {"str", "any", "code", "path"}
    if "one_of" in kind:
        return False
    inner = kind.get("any_of") or [v for k, v in kind.items() if k in ("list", "map")]
    return any(_texts(one) for one in inner)


def refused_text(engine: str, path: tuple[str, ...], value: str) -> Reason | None:
    """Return why a text is no value of the argument at ``path``: it names code, a file or another place."""
    dotted = ".".join(path)
    own = OWN_CLASSES.get(f"{engine}.{path[0]}")
    if own is not None:
        return None if own.fullmatch(value) else Reason(Refusal.CODE, key=dotted)
    if ROLES & {*re.split(r"[_.-]", path[-1].lower())} and DOTTED.fullmatch(value):
        return Reason(Refusal.CODE, key=dotted)
    if ADDRESS.match(value):
        return Reason(Refusal.PLACE, key=dotted)
    return Reason(Refusal.FILE, key=dotted) if PATH.search(value) else None
