"""Runs in vLLM's environment, as a file: what vLLM itself makes of a config, a line of JSON in, a line out.

The model is built on torch's ``meta`` device, so that no weights are needed, and its layers are asked for
their caches; vLLM's own functions group them and say what a sequence takes. What vLLM refuses is an answer
with ``refused``.
"""

# mypy: ignore-errors
import json
import os
import sys

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is not for our reader

import torch  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from vllm.config import get_layers_from_vllm_config, set_current_vllm_config  # noqa: E402
from vllm.distributed import parallel_state  # noqa: E402
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator  # noqa: E402
from vllm.engine.arg_utils import EngineArgs  # noqa: E402
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase  # noqa: E402
from vllm.model_executor.model_loader.utils import initialize_model  # noqa: E402
from vllm.model_executor.models import registry  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402
from vllm.utils.torch_utils import set_default_torch_dtype  # noqa: E402
from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout  # noqa: E402
from vllm.v1.core import kv_cache_utils  # noqa: E402
from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec  # noqa: E402


def inspect(self):
    """What vLLM otherwise asks a new process for, ten seconds for each architecture."""
    return registry._ModelInfo.from_model_cls(self.load_model_cls())


make_group, new_group = parallel_state.init_model_parallel_group, torch.distributed.new_group
registry._LazyRegisteredModel.inspect_model_cls = inspect
# The first of several devices, with nobody at the other end: layers are cut, and nothing is ever sent.
os.environ["VLLM_DIST_IDENT"] = "nobody"
CpuCommunicator._all_group_ranks_share_shm_group_name = lambda _self: False
parallel_state.in_the_same_node_as = lambda _group, source_rank=0: [source_rank == 0]
parallel_state.init_model_parallel_group = lambda *given, **named: make_group(
    *given, **{**named, "use_message_queue_broadcaster": False}
)
torch.distributed.new_group = lambda ranks=None, *_given, **_named: new_group(ranks, backend="fake")


def alone_of(devices):
    """This process as the first of so many."""
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=devices)
    parallel_state.init_distributed_environment(devices, 0, "env://", 0, "fake")
    parallel_state.initialize_model_parallel(devices, 1)


def answer(question):
    """Weights, and the cache that ``memory`` bytes hold."""
    arguments = {
        "distributed_executor_backend": "mp", "skip_tokenizer_init": True, "load_format": "dummy",
        "enforce_eager": True, **question["arguments"],
    }  # fmt: skip
    config = EngineArgs(model=question["model"], **arguments).create_engine_config()
    block = config.cache_config.block_size
    with set_current_vllm_config(config):
        alone_of(config.parallel_config.tensor_parallel_size)
        with set_default_torch_dtype(config.model_config.dtype), torch.device("meta"):
            model = initialize_model(config)
            if config.speculative_config:  # its layers register themselves beside the others
                draft = config.speculative_config.draft_model_config
                initialize_model(config, model_config=draft, prefix="draft")
        current_platform.update_block_size_for_backend(config)
        specs = get_kv_cache_spec(config)
        layers = get_layers_from_vllm_config(config, AttentionLayerBase).values()
        layouts = get_supported_kv_cache_layouts({layer.get_attn_backend() for layer in layers})
        resolve_kv_cache_layout(config, [[layout.name for layout in layouts]], specs.values())
        made = kv_cache_utils.get_kv_cache_configs(config, [specs], [question["memory"]])[0]
        tokens, _ = kv_cache_utils.get_kv_cache_capacity(config, made)
        return {
            "weights": sum(p.numel() * p.element_size() for p in model.parameters()),
            "block": kv_cache_utils._pool_bytes_per_block(config, made.kv_cache_groups),
            "sequence": kv_cache_utils._max_memory_usage_bytes_from_groups(config, made.kv_cache_groups),
            "tokens": tokens, "context": config.model_config.max_model_len, "block_size": block,
            "state_dtype": config.cache_config.mamba_ssm_cache_dtype,
            "batched": config.scheduler_config.max_num_batched_tokens,
        }  # fmt: skip


for line in sys.stdin:
    asked = json.loads(line)
    try:
        told = answer(asked)
    except Exception as error:
        words = " ".join(str(error).partition("Value error, ")[2].split() or str(error).split())
        cause = type(error).__name__
        told = {"refused": f"{cause}: {words.partition(' [type=')[0]}"[:200], "cause": cause}
    print(json.dumps(told), file=answers, flush=True)
