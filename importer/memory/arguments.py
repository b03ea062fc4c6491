"""What the arguments of an engine do to the memory of a device, beside those that every engine has.

After vLLM 0.33.0 (``config/offload.py``, ``config/multimodal.py``, ``config/compilation.py``,
``model_executor/layers/quantization``) and SGLang 0.5.23 (``server_args.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, Protocol

from importer.frozen import frozen
from importer.memory.devices import GIB

EAGER = ("enforce_eager", "engine_args.enforce_eager")  # without CUDA graphs, at either place
ONE_FLOAT8 = Fraction(8)  # a scale for each tensor or channel is nothing beside it


class Values(Protocol):
    """Values by dotted keys."""

    def get(self, key: str) -> Any:
        """Return the value, ``None`` without one."""


@frozen
class MemoryArguments:
    """The keys of an engine that move memory.

    ``share``      the part of a card that it fills. ``offloads``  GiB of the weights that stay outside.
    ``text_only``  keys under which it loads no tower.
    ``no_graphs``  keys, each with the values under which it records no CUDA graphs.
    ``online``     methods that quantise plain weights while they load, with the bits of a value.
    ``uncounted``  keys with a size that no estimate knows.
    """

    share: str | None = None
    offloads: str | None = None
    text_only: tuple[str, ...] = ()
    no_graphs: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    online: Mapping[str, Fraction] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()

    def offloaded(self, values: Values) -> int:
        """Return the bytes of the weights that one device leaves in the machine's memory."""
        size = values.get(self.offloads) if self.offloads else None
        number = isinstance(size, int | float) and not isinstance(size, bool)
        return int(max(size, 0) * GIB) if number and size is not None else 0

    def loads_text_only(self, values: Values) -> bool:
        """Return whether towers of vision and sound stay unloaded."""
        return any(values.get(key) is True for key in self.text_only)

    def is_eager(self, values: Values) -> bool:
        """Return whether no CUDA graphs are recorded."""
        return any(values.get(key) in without for key, without in self.no_graphs.items())

    def online_bits(self, values: Values) -> Fraction | None:
        """Return the bits of a value that is quantised while it loads."""
        return self.online.get(str(values.get("quantization") or values.get("engine_args.quantization")))

    def not_counted(self, values: Values) -> tuple[str, ...]:
        """Return the keys that are set and have no known size."""
        return tuple(key for key in self.uncounted if values.get(key) not in (None, False, 0, "", {}, []))


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
            "engine_args.compilation_config.mode": (0, "NONE", "none"),
        },
        online={
            **dict.fromkeys(("fp8", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block"), ONE_FLOAT8),
            "int8_per_channel_weight_only": ONE_FLOAT8,
            "mxfp8": Fraction(33, 4),
            "nvfp4_per_token": Fraction(9, 2),
        },
        uncounted=_keys(
            "kv_transfer_config kv_offloading_size ec_transfer_config enable_lora enable_eplb enable_dbo "
            "max_cudagraph_capture_size cudagraph_capture_sizes compilation_config "
            "mm_ipc_gpu_memory_gb mamba_cache_dtype mamba_ssm_cache_dtype mamba_cache_mode mamba_block_size "
            "offload_group_size cpu_offload_params offload_params quantization_config "
            "prefill_context_parallel_size speculative_config.model"
        ),
    ),
    "sglang": MemoryArguments(
        share="engine_args.mem_fraction_static",
        offloads="engine_args.cpu_offload_gb",
        no_graphs=dict.fromkeys(_keys("disable_cuda_graph disable_decode_cuda_graph"), (True,)),
        online={"fp8": ONE_FLOAT8, "mxfp8": Fraction(33, 4)},
        uncounted=_keys(
            "cuda_graph_bs_decode cuda_graph_max_bs_decode cuda_graph_config enable_torch_compile "
            "ep_num_redundant_experts enable_eplb enable_lora mamba_full_memory_ratio mamba_ssm_dtype "
            "max_mamba_cache_size "
            "enable_hierarchical_cache speculative_draft_model_path offload_group_size max_total_tokens "
            "language_only enable_paged_experts"
        ),
    ),
}  # fmt: skip


def of(backend: str) -> MemoryArguments:
    """Return the keys of the engine behind a backend; none for engines that have none."""
    return OF_ENGINES.get(backend, NONE)
