"""Runs in the environment of vLLM for cards, on a machine without one: a line of JSON in, a line out.

vLLM's own model classes are built on torch's ``meta`` device for a pretended card: its capability and its
memory come from the arguments. Compiled kernels are stood in for by names, since nothing is calculated. The
layers then give their caches, and vLLM's own functions group them and count the memory of a sequence.

    python vllm_cards_script.py 9.0 141        # capability, GiB
"""

# mypy: ignore-errors
import json
import os
import sys
import types

CAPABILITY = tuple(int(part) for part in sys.argv[1].split("."))
MEMORY = int(float(sys.argv[2]) * (1 << 30))
os.environ.update(
    VLLM_LOGGING_LEVEL="CRITICAL", HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_TARGET_DEVICE="cuda", VLLM_DIST_IDENT="nobody",
)  # fmt: skip
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of libraries is not for our reader

import torch  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402


class Nothing:
    """An object with every method, none of them with an effect."""

    def __init__(self, *_given, **_named):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_given, **_named: None


class Kernel:
    """A compiled kernel that is never run; a question whether it is supported has the answer yes."""

    def __call__(self, *_given, **_named):
        return True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Kernel()


class Kernels:
    """A namespace of torch's operators with every name."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        try:
            return getattr(self.real, name)
        except AttributeError:
            return Kernel()


class Card:
    """The properties that CUDA reports of the pretended card."""

    multi_processor_count, warp_size, max_threads_per_multi_processor = 132, 32, 2048
    shared_memory_per_block_optin, total_memory = 232448, MEMORY
    major, minor = CAPABILITY
    name, gcnArchName = "card", ""  # noqa: N815


for name in ("Event", "Stream"):
    setattr(torch.cuda, name, Nothing)
    setattr(torch, name, Nothing)
torch.cuda.current_device = lambda: 0
torch.accelerator.current_device_index = lambda: 0
torch.accelerator.current_accelerator = lambda *_given: torch.device("cuda")
torch.cuda.current_stream = lambda *_given: Nothing()
torch.cuda.get_device_properties = lambda *_given: Card
torch.cuda.get_device_capability = lambda *_given: CAPABILITY
for name in (
    "_C_stable_libtorch",
    "_C",
    "_moe_C",
    "_moe_C_stable_libtorch",
    "_flashmla_C",
    "_flashmla_extension_C",
    "vllm_flash_attn._vllm_fa2_C",
    "vllm_flash_attn._vllm_fa3_C",
):
    sys.modules[f"vllm.{name}"] = types.ModuleType(f"vllm.{name}")
for name in ("_C", "_moe_C", "_C_cache_ops", "_C_cuda_utils", "_flashmla_C", "_C_custom_ar"):
    setattr(torch.ops, name, Kernels(getattr(torch.ops, name)))
register = torch.library.register_fake


def register_fake(operator, function=None, /, **named):
    """Register what an operator returns, or nothing for one that was never compiled."""

    def decorate(decorated):
        try:
            return register(operator, decorated, **named)
        except RuntimeError:
            return decorated

    return decorate if function is None else decorate(function)


torch.library.register_fake = register_fake

from vllm import platforms  # noqa: E402
from vllm.platforms import cuda  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402


class Pretended(cuda.NonNvmlCudaPlatform):
    """vLLM's platform of NVIDIA cards, with the figures of the arguments."""

    get_device_capability = classmethod(lambda _cls, device_id=0: DeviceCapability(*CAPABILITY))
    get_device_name = classmethod(lambda _cls, device_id=0: "card")
    get_device_total_memory = classmethod(lambda _cls, device_id=0: MEMORY)
    device_count = classmethod(lambda _cls: 64)
    is_fully_connected = classmethod(lambda _cls, _ids: True)
    num_compute_units = classmethod(lambda _cls, device_id=0: 132)
    is_integrated_gpu = classmethod(lambda _cls, device_id=0: False)
    import_kernels = classmethod(lambda _cls: None)
    get_cuda_runtime_major = classmethod(lambda _cls: 13)


platforms._current_platform = Pretended()

import vllm.triton_utils  # noqa: E402
import vllm.utils.deep_gemm  # noqa: E402
import vllm.utils.import_utils  # noqa: E402


class Tuning:
    """One choice of a kernel's compiler: its figures alone."""

    def __init__(self, kwargs=None, num_warps=4, num_stages=2, **_named):
        self.kwargs, self.num_warps, self.num_stages = kwargs or {}, num_warps, num_stages


vllm.triton_utils.triton.Config = Tuning
vllm.utils.import_utils.has_deep_gemm = lambda *_given: True
for name in ("has_deep_gemm", "is_deep_gemm_supported"):
    if hasattr(vllm.utils.deep_gemm, name):
        setattr(vllm.utils.deep_gemm, name, lambda *_given, **_named: True)

from vllm.config import get_layers_from_vllm_config, set_current_vllm_config  # noqa: E402
from vllm.distributed import parallel_state  # noqa: E402
from vllm.engine.arg_utils import EngineArgs  # noqa: E402
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase  # noqa: E402
from vllm.model_executor.model_loader.utils import initialize_model  # noqa: E402
from vllm.model_executor.models import registry  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402
from vllm.usage.usage_lib import UsageContext  # noqa: E402
from vllm.utils.torch_utils import set_default_torch_dtype  # noqa: E402
from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout  # noqa: E402
from vllm.v1.core import kv_cache_planning, kv_cache_utils  # noqa: E402
from vllm.v1.core.kv_cache_config_builder import get_kv_cache_config_builder  # noqa: E402
from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec  # noqa: E402
from vllm.v1.worker.workspace import init_workspace_manager  # noqa: E402


class Meta(TorchFunctionMode):
    """Tensors that a model asks a card for lie on ``meta`` too."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        named = dict(kwargs or {})
        if "cuda" in str(named.get("device")):
            named["device"] = "meta"
        return function(*args, **named)


class Silent:
    """A communicator without methods: nothing is sent."""

    def __init__(self, *_given, **_named):
        pass

    def destroy(self):
        """End nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)


init_workspace_manager(torch.device("meta"))
make_group, new_group = parallel_state.init_model_parallel_group, torch.distributed.new_group
registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(
    self.load_model_cls()
)
parallel_state.in_the_same_node_as = lambda _group, source_rank=0: [source_rank == 0]
parallel_state.init_model_parallel_group = lambda *given, **named: make_group(
    *given, **{**named, "use_message_queue_broadcaster": False}
)
parallel_state.resolve_obj_by_qualname = lambda _name: Silent
torch.distributed.new_group = lambda ranks=None, *_given, **_named: new_group(ranks, backend="fake")


def alone_of(devices, parts):
    """Make this process the first of so many."""
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=devices)
    parallel_state.init_distributed_environment(devices, 0, "env://", 0, "fake")
    parallel_state.initialize_model_parallel(devices, 1, decode_context_model_parallel_size=parts)


def answer(question):
    """Return the weights, and the cache that ``memory`` bytes hold."""
    arguments = {
        "distributed_executor_backend": "mp", "skip_tokenizer_init": True, "load_format": "dummy",
        "enforce_eager": True, **question["arguments"],
    }  # fmt: skip
    made = EngineArgs(model=question["model"], **arguments)
    config = made.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    with set_current_vllm_config(config):
        parallel = config.parallel_config
        alone_of(parallel.tensor_parallel_size, parallel.decode_context_parallel_size)
        with set_default_torch_dtype(config.model_config.dtype), torch.device("meta"), Meta():
            model = initialize_model(config)
            if config.speculative_config:
                draft = config.speculative_config.draft_model_config
                initialize_model(config, model_config=draft, prefix="draft")
        current_platform.update_block_size_for_backend(config)
        specs = get_kv_cache_spec(config)
        layers = get_layers_from_vllm_config(config, AttentionLayerBase).values()
        layouts = get_supported_kv_cache_layouts({layer.get_attn_backend() for layer in layers})
        layout = resolve_kv_cache_layout(config, [[x.name for x in layouts]], specs.values())
        groups = kv_cache_planning.get_global_kv_cache_groups(config, [specs])
        cache = kv_cache_planning.get_kv_cache_configs(config, [specs], [question["memory"]], groups)[0]
        tokens, concurrency = kv_cache_utils.get_kv_cache_capacity(config, cache)
        builder = get_kv_cache_config_builder(config)
        used = cache.kv_cache_groups
        return {
            "weights": sum(p.numel() * p.element_size() for p in model.parameters()),
            "block": kv_cache_planning._pool_bytes_per_block_from_builder(builder, config, used),
            "sequence": kv_cache_planning._max_memory_usage_bytes_from_groups(builder, config, used),
            "tokens": tokens, "concurrency": concurrency, "context": config.model_config.max_model_len,
            "block_size": config.cache_config.block_size, "kv_dtype": config.cache_config.cache_dtype,
            "layout": layout.name, "parts": config.parallel_config.decode_context_parallel_size,
            "devices": config.parallel_config.tensor_parallel_size,
            "drafts": config.speculative_config.num_speculative_tokens if config.speculative_config else 0,
            "batched": config.scheduler_config.max_num_batched_tokens,
            "pages": sorted({(type(s).__name__, s.block_size, s.page_size_bytes) for s in specs.values()}),
        }  # fmt: skip


for line in sys.stdin:
    question = json.loads(line)
    try:
        result = answer(question)
    except Exception as error:
        words = " ".join(str(error).partition("Value error, ")[2].split() or str(error).split())
        cause = type(error).__name__
        result = {"refused": f"{cause}: {words.partition(' [type=')[0]}"[:200], "cause": cause}
    print(json.dumps(result), file=answers, flush=True)
