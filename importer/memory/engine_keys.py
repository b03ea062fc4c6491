"""The keys of an engine that move memory, and a request with their values.

After vLLM 0.33.0 (``config/offload.py``, ``config/multimodal.py``, ``config/compilation.py``,
``model_executor/layers/quantization``) and SGLang 0.5.23 (``server_args.py``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field
from typing import Any

from importer.frozen import frozen
from importer.memory.devices import GIB

CONTEXT, DTYPE = "max_model_len", "dtype"
SHARE, CACHE = "gpu_memory_utilization", "engine_args.kv_cache_memory_bytes"
BLOCKS = "engine_args.num_gpu_blocks_override"  # of the cache, in place of a size
TENSOR, PIPELINE = "tensor_parallel_size", "engine_args.pipeline_parallel_size"
DATA, EXPERTS = "engine_args.data_parallel_size", "engine_args.enable_expert_parallel"
LOCAL = "engine_args.data_parallel_size_local"  # copies of one machine, where one server has several
PARTS = {TENSOR: "tensor", PIPELINE: "pipeline", DATA: "data", EXPERTS: "experts"}  # of a layout
LAYOUT = (*PARTS,)
PARTED = "engine_args.decode_context_parallel_size"
KV_DTYPE, SLOTS = "engine_args.kv_cache_dtype", "engine_args.max_num_seqs"
BATCHED, RUNNER = "engine_args.max_num_batched_tokens", "engine_args.runner"
ENCODER = "engine_args.mm_encoder_tp_mode"
BLIND = "engine_args.skip_mm_profiling"  # no encoder runs at the start
LORAS, RANK = "engine_args.max_loras", "engine_args.max_lora_rank"
CAPTURED = tuple(
    f"engine_args.{where}{name}"
    for where in ("", "compilation_config.")
    for name in ("cudagraph_capture_sizes", "max_cudagraph_capture_size")
)
EAGER = ("enforce_eager", "engine_args.enforce_eager")  # without CUDA graphs, at either place
FP8 = "fp8"
# What vLLM asserts beside a cache in 8 bits, by the model's type (``models/kimi_k3/nvidia/mla.py``);
# the setting needs a prefill of Blackwell's, so no plan writes it.
FP8_NEEDS = {"kimi_k3": "engine_args.attention_config.use_prefill_query_quantization"}
ONE_FLOAT8 = 8.0  # a scale for each tensor or channel is nothing beside it
COUNTED = {"cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size"}


@frozen
class FitRequest:
    """The values decided so far, by key, and the keys that the user fixed.

    ``version``  of the engine where the user named it; ``None``: the newest rules, and the range of any.
    """

    values: Mapping[str, object]
    fixed: Container[str] = ()
    version: str | None = None

    def get(self, key: str) -> Any:
        """Return the value under a dotted key, set under that key or inside its map."""
        if key in self.values:
            return self.values[key]
        head, _, last = key.rpartition(".")
        inner = self.get(head) if head else None
        return inner.get(last) if isinstance(inner, Mapping) else None

    def count(self, key: str) -> int | None:
        """Return a whole number above zero."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def is_fixed(self, key: str) -> bool:
        """Return whether the user fixed the key or the map that holds it."""
        return key in self.fixed or key.partition(".")[0] in self.fixed


@frozen
class MemoryArguments:
    """The keys of an engine that move memory.

    ``share``      the part of a card that it fills. ``offloads``  GiB of the weights that stay outside.
    ``text_only``  keys under which it loads no tower.
    ``no_graphs``  keys, each with the values under which it records no CUDA graphs.
    ``part_graphs``  the same for graphs without attention and states.
    ``online``     methods that quantise plain weights while they load, with the bits of a value.
    ``uncounted``  keys with a size that no estimate knows.
    """

    share: str | None = None
    offloads: str | None = None
    text_only: tuple[str, ...] = ()
    no_graphs: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    part_graphs: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    online: Mapping[str, float] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()

    def offloaded(self, values: FitRequest) -> int:
        """Return the bytes of the weights that one device leaves in the machine's memory."""
        size = values.get(self.offloads) if self.offloads else None
        number = isinstance(size, int | float) and not isinstance(size, bool)
        return int(max(size, 0) * GIB) if number and size is not None else 0

    def loads_text_only(self, values: FitRequest) -> bool:
        """Return whether towers of vision and sound stay unloaded."""
        return any(values.get(key) is True for key in self.text_only)

    def is_eager(self, values: FitRequest) -> bool:
        """Return whether no CUDA graphs are recorded."""
        return any(values.get(key) in without for key, without in self.no_graphs.items())

    def records_states(self, values: FitRequest) -> bool:
        """Return whether a CUDA graph has attention and states in it."""
        parts = any(values.get(key) in some for key, some in self.part_graphs.items())
        return not (parts or self.is_eager(values))

    def online_bits(self, values: FitRequest) -> float | None:
        """Return the bits of a value that is quantised while it loads."""
        return self.online.get(str(values.get("quantization") or values.get("engine_args.quantization")))

    def not_counted(self, values: FitRequest) -> tuple[str, ...]:
        """Return the keys that are set and have no known size, maps with a part that has none among them."""
        given = {key: values.get(key) for key in self.uncounted}
        rest = {k: v.keys() - COUNTED if isinstance(v, Mapping) else v for k, v in given.items()}
        return tuple(key for key, value in rest.items() if value)


def _keys(names: str) -> tuple[str, ...]:
    return tuple(f"engine_args.{name}" for name in names.split())


NONE = MemoryArguments()
OF_ENGINES: Mapping[str, MemoryArguments] = {
    "vllm": MemoryArguments(
        share="gpu_memory_utilization",
        offloads="engine_args.cpu_offload_gb",
        text_only=_keys("language_model_only"),
        no_graphs=dict.fromkeys(EAGER, (True,))
        | {
            "engine_args.compilation_config.cudagraph_mode": ("NONE", "none", 0),
            "engine_args.optimization_level": (0, "0", "O0"),
        },
        part_graphs={
            "engine_args.compilation_config.cudagraph_mode": ("PIECEWISE", "piecewise", 1),
            "engine_args.optimization_level": (1, "1", "O1"),
        },
        online={
            **dict.fromkeys(("fp8", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block"), ONE_FLOAT8),
            "int8_per_channel_weight_only": ONE_FLOAT8,
            "mxfp8": 8.25,
            "nvfp4_per_token": 4.5,
        },
        uncounted=_keys(
            "kv_transfer_config kv_offloading_size ec_transfer_config enable_eplb enable_dbo "
            "compilation_config "
            "mm_ipc_gpu_memory_gb mamba_cache_dtype mamba_ssm_cache_dtype mamba_cache_mode mamba_block_size "
            "offload_group_size cpu_offload_params offload_params quantization_config "
            "prefill_context_parallel_size speculative_config.model"
        ),
    ),
    "sglang": MemoryArguments(
        share="engine_args.mem_fraction_static",
        offloads="engine_args.cpu_offload_gb",
        no_graphs=dict.fromkeys(_keys("disable_cuda_graph disable_decode_cuda_graph"), (True,)),
        online={"fp8": ONE_FLOAT8, "mxfp8": 8.25},
        uncounted=_keys(
            "cuda_graph_bs_decode cuda_graph_max_bs_decode cuda_graph_config enable_torch_compile "
            "ep_num_redundant_experts enable_eplb enable_lora mamba_full_memory_ratio mamba_ssm_dtype "
            "max_mamba_cache_size "
            "enable_hierarchical_cache speculative_draft_model_path offload_group_size max_total_tokens "
            "language_only enable_paged_experts"
        ),
    ),
}  # fmt: skip


def memory_arguments(backend: str) -> MemoryArguments:
    """Return the keys of the engine behind a backend; none for engines that have none."""
    return OF_ENGINES.get(backend, NONE)
