"""Placement of a model on a device: number of cards, share of each, and the longest context.

What the arguments of an engine do to the memory of a device, beside those that every engine has.

After vLLM 0.33.0 (``config/offload.py``, ``config/multimodal.py``, ``config/compilation.py``,
``model_executor/layers/quantization``) and SGLang 0.5.23 (``server_args.py``).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any, Literal, Protocol

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import whole
from importer.memory import pages, rest
from importer.memory.config_keys import Keys
from importer.memory.devices import GIB, Device, known
from importer.memory.estimate import copied_encoder, estimate, longest
from importer.memory.estimate_types import CACHES, Amount, Fit, Load, Longest
from importer.memory.experts import EXPERT_WIDE, count, expert_width, shared_width
from importer.memory.layers import Attention, Cross, Latent, Role, State
from importer.memory.measured import Measured
from importer.memory.parameters import sees
from importer.memory.plans import NO_AIM, TYPICAL, Aim, Split
from importer.memory.rest import MIB
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.signals.architecture import text_config

EAGER = ("enforce_eager", "engine_args.enforce_eager")  # without CUDA graphs, at either place
ONE_FLOAT8 = Fraction(8)  # a scale for each tensor or channel is nothing beside it


Caution = Literal["whole", "half", "least"]


class Values(Protocol):
    """Values by dotted keys."""

    def get(self, key: str) -> Any:
        """Return the value, ``None`` without one."""


COUNTED = {"cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size"}


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

    def records_states(self, values: Values) -> bool:
        """Return whether a CUDA graph has attention and states in it."""
        parts = any(values.get(key) in some for key, some in self.part_graphs.items())
        return not (parts or self.is_eager(values))

    def online_bits(self, values: Values) -> Fraction | None:
        """Return the bits of a value that is quantised while it loads."""
        return self.online.get(str(values.get("quantization") or values.get("engine_args.quantization")))

    def not_counted(self, values: Values) -> tuple[str, ...]:
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
            "mxfp8": Fraction(33, 4),
            "nvfp4_per_token": Fraction(9, 2),
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


def memory_arguments(backend: str) -> MemoryArguments:
    """Return the keys of the engine behind a backend; none for engines that have none."""
    return OF_ENGINES.get(backend, NONE)


WIDTHS = (
    "intermediate_size", "ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size",
    "expert_ffn_hidden_size",
)  # fmt: skip


def divides(
    config: Mapping[str, object], shape: Shape, number: int, *, experts: bool = False, copies: int = 1
) -> bool:
    """Return whether vLLM can spread every layer over ``number`` cards; ``experts`` stay whole.

    Shared experts are spread with one copy of attention; beside further ``copies`` they are whole, too.

    The number must divide the heads, and those of keys and values too, unless each card has a copy of one.
    The same holds for the scale blocks of quantised weights (vLLM's ``validate_fp8_block_shape``).
    """
    from importer.memory.quantised import scale_block

    if shape.heads % number:
        return False
    for cached in shape.caches:
        if isinstance(cached, Attention | Cross) and cached.kv_heads % number and number % cached.kv_heads:
            return False
        if isinstance(cached, State) and not cached.divides(number):
            return False
    block = scale_block(config)
    keys = [key for key in WIDTHS if not (experts and key in _expert_keys(config, shape))]
    widths = [w for key in keys if (w := whole(text_config(config).get(key), 1))]
    if experts and copies == 1 and number > 1 and _shared_are_quantised(shape):
        keys_of = Keys.of(text_config(config))
        widths.append(shared_width(keys_of, expert_width(keys_of)))
    return block is None or all(w % (number * block) == 0 for w in widths if w % block == 0)


def _shared_are_quantised(shape: Shape) -> bool:
    return _has(shape, "shared") and shape.scheme is not None and shape.scheme.left.get("shared", 0) == 0


def _expert_keys(config: Mapping[str, object], shape: Shape) -> tuple[str, ...]:
    """Return the keys with the width of one expert: the general ones, too, where no layer is dense."""
    dense = _has(shape, "mlp")
    named = any(text_config(config).get(key) for key in EXPERT_WIDE)
    return EXPERT_WIDE if dense or named else WIDTHS


def most(shape: Shape, tensor: int) -> int:
    """Return the most cards of ``tensor`` that can each keep a part of the tokens; 1 where none can."""
    caches = shape.caches
    if caches and all(isinstance(c, Latent) and _keeps_all(c) for c in caches):
        return tensor
    heads = {(c.heads, c.kv_heads) for c in caches if isinstance(c, Attention) and not (c.window or c.chunk)}
    if len(heads) != 1 or not all(isinstance(c, Attention) and not (c.window or c.chunk) for c in caches):
        return 1
    return max(copies_divided(*heads.pop(), tensor))


def copies_divided(queries: int, keys: int, tensor: int) -> tuple[int, ...]:
    """Return the numbers of cards that can each keep a part of a sequence: 1, and divisors of the copies."""
    if not keys or tensor % keys or queries % keys:
        return (1,)
    return tuple(n for n in range(1, tensor // keys + 1) if tensor % n == (queries // keys) % n == 0)


def _keeps_all(cache: Latent) -> bool:
    """Return whether a latent layer keeps one vector for each token: no window, no selection, no packing."""
    return cache.every == 1 and not (cache.window or cache.indexer or cache.sparse or cache.packed)


# Shares of a card; the second is tried where the default is at least the first.
USUAL, FULLER_SHARE = 0.9, 0.95
TENSOR, PIPELINE = "tensor_parallel_size", "engine_args.pipeline_parallel_size"
DATA, EXPERTS = "engine_args.data_parallel_size", "engine_args.enable_expert_parallel"
LOCAL = "engine_args.data_parallel_size_local"  # copies of one machine, where one server has several
PARTS = {TENSOR: "tensor", PIPELINE: "pipeline", DATA: "data", EXPERTS: "experts"}  # of a layout
LAYOUT = (*PARTS,)
BLIND = "engine_args.skip_mm_profiling"  # no encoder runs at the start
KV_DTYPE, SLOTS = "engine_args.kv_cache_dtype", "engine_args.max_num_seqs"
BATCHED = "engine_args.max_num_batched_tokens"
ENCODER = "engine_args.mm_encoder_tp_mode"
LORAS, RANK = "engine_args.max_loras", "engine_args.max_lora_rank"
CAPTURED = tuple(
    f"engine_args.{where}{name}"
    for where in ("", "compilation_config.")
    for name in ("cudagraph_capture_sizes", "max_cudagraph_capture_size")
)
PARTED = "engine_args.decode_context_parallel_size"
FP8 = "fp8"
# What vLLM asserts beside a cache in 8 bits, by the model's type (``models/kimi_k3/nvidia/mla.py``);
# the setting needs a prefill of Blackwell's, so no plan writes it.
FP8_NEEDS = {"kimi_k3": "engine_args.attention_config.use_prefill_query_quantization"}
CPU_SEQUENCES, CPU_PART = 8, 8  # that a processor's cache holds at most; of the memory, one in so many
SMALL = 0.05  # of a card, that copies of an encoder may take beside the part that the card has anyway
BATCHED_LATENCY, BATCHED_THROUGHPUT = 2048, 16384  # tokens of a step, after vLLM's guide to optimisation
MOST_SLOTS = 1024  # sequences, where one takes no memory
SHORTEST = 1024  # tokens; a shorter context is of no use
RUNNER = "engine_args.runner"
UNEVEN = 8  # sequences that one copy runs, where the copies together have to run as many
CONTEXT = "max_model_len"
SHARE, CACHE = "gpu_memory_utilization", "engine_args.kv_cache_memory_bytes"
BLOCKS = "engine_args.num_gpu_blocks_override"  # of the cache, in place of a size


def layouts(config: Mapping[str, object], shape: Shape, device: Device, backend: str) -> list[Split]:
    """Return the layouts of a model over all devices: within one machine, and over several machines.

    Tensor parallelism stays within a machine; stages, whole servers or experts take the others.
    """
    if not backends.of(backend).on_cards:
        return [Split()]
    if device.kind == "cpu":
        counts = dict.fromkeys([*(2**n for n in range(device.count.bit_length())), device.count])
        return [Split(n) for n in counts if n <= device.count and divides(config, shape, n)]
    cards = inside(device)
    machines = device.count // cards
    made = dict.fromkeys(
        split for tensor in _divisors(cards) for split in _layouts(config, shape, tensor, cards // tensor)
    )
    found = [replace(split, replicas=split.replicas * machines) for split in made]
    if machines > 1:
        found += [
            replace(split, pipeline=split.pipeline * machines)
            for split in made
            if split.copies == 1 and split.pipeline * machines <= len(shape.layers)
        ]
    if machines > 1 and device.link is not None:
        number = count(Keys.of(text_config(config)))  # 0 without experts
        found += dict.fromkeys(
            replace(split, data=split.data * machines, experts=True)
            for split in made
            if split.pipeline == split.replicas == 1 and device.count <= number
        )
    if backends.of(backend).shares_evenly:  # else as servers beside each other
        plain = [s for s in found if s.pipeline == 1 and not s.experts]
        servers = dict.fromkeys(replace(s, data=1, replicas=s.copies) for s in plain)
        found = [s for s in plain if s.data == 1] or [*servers]
    return found


def inside(device: Device) -> int:
    """Return the number of its cards in one machine: all machines have equally many."""
    return max(n for n in _divisors(device.count) if n <= max(device.node, 1))


def spread(device: Device, split: Split) -> bool:
    """Return whether the copies of one server stand in several machines."""
    return split.tensor * split.data > inside(device) and split.data > 1


def _layouts(config: Mapping[str, object], shape: Shape, tensor: int, rest: int) -> Iterator[Split]:
    """Yield the layouts with this tensor parallelism, and ``rest`` devices beside each group."""
    routed = has_experts(shape)
    if divides(config, shape, tensor):
        for stages in _divisors(rest):
            if stages > len(shape.layers):
                continue
            copies = rest // stages
            if not routed or copies == 1:
                yield Split(tensor, stages, copies)
            else:  # vLLM deals the experts of copies in one server out over all of them
                yield Split(tensor, stages, copies, experts=True)
                yield Split(tensor, stages, replicas=copies)
    elif routed and divides(config, shape, tensor, experts=True, copies=rest):
        yield Split(tensor, 1, rest, experts=True)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def has_experts(shape: Shape) -> bool:
    """Return whether any layer has experts."""
    return _has(shape, "experts")


def _has(shape: Shape, role: Role) -> bool:
    return any(part.role == role for part in shape.parts)


@frozen
class FitRequest:
    """The values decided so far, by key, and the keys that the user fixed.

    ``arguments``  names of the arguments that the engine's version has; empty where unknown.
    ``version``    of the engine where the user named it; ``None``: the newest rules, and the range of any.
    """

    values: Mapping[str, object]
    fixed: Container[str] = ()
    arguments: Container[str] = ()
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
class Placed:
    """One way to place a model: its split, the share of each card, and the longest context with them.

    ``budget`` is the bytes of one card that may be filled; the likely total keeps ``spare`` of them free.
    """

    split: Split
    share: float
    budget: int
    spare: int
    longest: Longest


@frozen
class LoadCase:
    """A model, a device and the requested settings; ``dtype`` is the engine's argument.

    ``caution``         whether the whole range stays free, half of it, or nothing: even less than the likely
                        total, where the start may fail.
    ``measured``        on this device, in place of the estimate of the settings that it covers.
    ``memo``            devices that hold the model, found once for all devices that are compared.
    """

    config: Mapping[str, object]
    shape: Shape
    weights: Weights
    device: Device
    backend: str
    request: FitRequest
    context: int
    dtype: str = "auto"
    aim: Aim = NO_AIM
    caution: Caution = "whole"
    measured: Measured | None = None
    memo: dict[tuple[object, ...], tuple[Device, ...]] | None = field(default=None, repr=False, compare=False)
    _fits: dict[tuple[int, Split, int], Fit] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _loads: dict[Split, Load] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """Return the tokens of each of the sequences that are to be held at the same time."""
        return self.context if self.aim.context else min(TYPICAL, self.context)

    @property
    def pools(self) -> bool:
        """Return whether each text is read in one step, without steps of decoding after it."""
        return bool(self.request.get(RUNNER) == "pooling")

    def fit(self, context: int, split: Split, sequences: int = 1) -> Fit:
        """Return the estimate at this context, with so many sequences in each copy."""
        key = (context, split, sequences)
        if key not in self._fits:
            load = replace(self.load(context, split), sequences=sequences)
            fit = estimate(self.shape, self.weights, load, self.backend)
            known = self.measured is not None and self.measured.difference(load) is None
            self._fits[key] = self.measured.applied(fit) if self.measured and known else fit
        return self._fits[key]

    def held(self, tokens: int, split: Split, share: float) -> int:
        """Return how many sequences of ``tokens`` all copies hold together."""
        one, two = self.fit(tokens, split), self.fit(tokens, split, 2)
        each = cache_bytes(two) - cache_bytes(one)
        free = self._room(share, one) - one.total.likely
        if free < 0:
            return 0
        return (1 + (free // each if each > 0 else MOST_SLOTS)) * split.copies

    def processor_cache(self, placed: Placed) -> int:
        """Return the bytes that a document gives the cache on a processor: for the wanted sequences at least,
        else for a few of the whole context within a part of the memory.
        """
        fit = self.fit(min(placed.longest.context, self.context) or self.context, placed.split)
        one, wanted = cache_bytes(fit), self.aim.concurrency or 1
        free = max(one, placed.budget - placed.spare - fit.total.likely + one)
        most = max(one * wanted, (self.device.memory or 0) // CPU_PART)
        empty = pages.pool(self.shape, fit.load).block  # that vLLM keeps of any cache
        return -(-(min(free, max(CPU_SEQUENCES, wanted) * one, most) + empty) // MIB) * MIB

    @property
    def planned(self) -> bool:
        """Return whether the engine's cache, layouts and steps can be chosen."""
        return backends.of(self.backend).planned

    def batched(self) -> int | None:
        """Return the tokens of one step that suit the goal; ``None`` leaves vLLM's own number."""
        if not self.planned or not self.device.is_card or self.pools:
            return None
        usual = pages.batched_default(self._plain_load(Split()))
        if self.aim.goal == "throughput":
            most = BATCHED_THROUGHPUT if usual > BATCHED_LATENCY else 2 * usual
            return most if most > usual else None
        waits = (self.aim.concurrency or 1) > 1 and not self.shape.tower  # a picture may need the larger step
        return BATCHED_LATENCY if self.aim.goal == "latency" and waits and usual > BATCHED_LATENCY else None

    def encodes_whole(self, split: Split) -> bool:
        """Return whether each card has the whole encoder and reads pictures of its own.

        vLLM calls it ``mm_encoder_tp_mode: data``; for a model without it vLLM spreads the encoder as usual.
        """
        if not self.planned or split.tensor == 1 or not self.shape.tower:
            return False
        if self.request.is_fixed(ENCODER):
            return bool(self.request.get(ENCODER) == "data")
        has = ENCODER.rpartition(".")[2] in self.request.arguments and sees(self.config)
        if not (has and self.device.is_card):
            return False
        return self.encoder_copies(split) <= SMALL * (self.device.memory or 0)

    def encoder_copies(self, split: Split) -> int:
        """Return the bytes of a whole encoder beyond the part of it that one card has anyway."""
        return copied_encoder(self.shape, Load(self.context, tensor_parallel=split.tensor))

    def slots(self, split: Split) -> int | None:
        """Return the sequences that one copy has to run at the same time; ``None`` without a request.

        A few may all come to one copy, since nothing deals them out evenly. Pooled texts do not stay.
        """
        wanted = self.aim.concurrency if self.planned and not self.pools else None
        if wanted is None:
            return None
        return min(max(-(-wanted // split.copies), min(wanted, UNEVEN)), self.step_tokens(split))

    def running(self, split: Split) -> int:
        """Return the sequences that one copy runs at the same time: the set number, or vLLM's own."""
        load = self.load(self.context, split)
        return load.slots or min(pages.slots_default(load), self.step_tokens(split))

    def state_blocks(self, placed: Placed, fit: Fit) -> int | None:
        """Return the safe number of blocks, where vLLM requires one for each sequence; ``None`` elsewhere.

        So it does for graphs of a model with states, and pooled texts have no such graphs.
        """
        states = any(isinstance(cached, State) for cached in self.shape.caches)
        if not self.planned or not self.device.is_card or self.device.memory is None or not states:
            return None
        graphs = not self.pools and memory_arguments(self.backend).records_states(self.request)
        if not (graphs and pages.has(fit.load, pages.BLOCK_EACH)):
            return None
        free = self.space(fit)
        if free is None:
            free = placed.budget - placed.spare - fit.total.likely + cache_bytes(fit)
        return max(free // pages.pool(self.shape, fit.load).block, 1)

    def step_tokens(self, split: Split) -> int:
        """Return the tokens of one step: vLLM runs no more sequences at the same time."""
        usual = pages.batched_default(self._plain_load(split))
        return self.request.count(BATCHED) or self.batched() or usual

    def _plain_load(self, split: Split) -> Load:
        """Return what decides on the engine's own defaults."""
        return Load(
            self.context, device=_like(self.device), memory=self.device.memory,
            capability=pages.compute_number(self.device.capability), version=self._version,
            shared=self.device.shared, tensor_parallel=split.tensor, pipeline_parallel=split.pipeline,
        )  # fmt: skip

    @property
    def _version(self) -> str | None:
        return self.request.version if self.planned else None

    def load(self, context: int, split: Split) -> Load:
        """Return the engine's settings; those that the document leaves open are the engine's defaults."""
        if split not in self._loads:
            self._loads[split] = self._load(split)
        return replace(self._loads[split], context=context)

    def _load(self, split: Split) -> Load:
        speculation = self.request.get("engine_args.speculative_config")
        drafts = speculation.get("num_speculative_tokens") if isinstance(speculation, Mapping) else 0
        moves = memory_arguments(self.backend)
        return replace(
            self._plain_load(split),
            slots=self.request.count(SLOTS) or self.slots(split),
            batched_tokens=self.request.count(BATCHED) or self.batched(),
            block_size=self.request.count("engine_args.block_size"),
            dtype=self.dtype,
            kv_dtype=str(self.request.get(KV_DTYPE) or "auto"),
            expert_parallel=split.tensor * split.data if split.experts else 1,
            context_parallel=self._parts(split),
            encoder_whole=self.encodes_whole(split),
            rotating=self.request.count("engine_args.max_kv_size"),
            drafts=drafts if isinstance(drafts, int) else 0,
            prefix_caching=self.request.get("engine_args.enable_prefix_caching") is not False,
            pictures=self.request.get(BLIND) is not True,
            eager=moves.is_eager(self.request),
            offloaded=moves.offloaded(self.request),
            text_only=moves.loads_text_only(self.request),
            online_bits=self._online_bits(),
            adapters=self._adapters(),
            captured=self._captured(),
            uncounted=moves.not_counted(self.request),
            version=self._version,
        )

    def _online_bits(self) -> float | None:
        """Return the bits of values that are plain in the files, and quantised while they load."""
        bits = memory_arguments(self.backend).online_bits(self.request)
        return None if bits is None or self.shape.scheme is not None else float(bits)

    def _adapters(self) -> int:
        """Return the ranks of all places of adapters together; vLLM's own are one place of rank 16."""
        if not self.planned or self.request.get("engine_args.enable_lora") is not True:
            return 0
        return (self.request.count(LORAS) or 1) * (self.request.count(RANK) or 16)

    def _captured(self) -> int | None:
        """Return the tokens of the largest CUDA graph that the user lists or names."""
        for key in CAPTURED:
            sizes = self.request.get(key)
            listed = [n for n in sizes if isinstance(n, int)] if isinstance(sizes, list) else []
            if number := (max(listed, default=0) or self.request.count(key)):
                return number
        return None

    def _parts(self, split: Split) -> int:
        """Return the cards that each keep a part of a sequence: the set number where vLLM divides it."""
        number = (self.request.count(PARTED) if self.planned else None) or 1
        return number if most(self.shape, split.tensor) % number == 0 else 1

    def pool(self, fit: Fit) -> dict[str, int] | None:
        """Return vLLM's cache: bytes of one block, and the blocks of one full sequence; else ``None``."""
        if not self.planned:
            return None
        pool = pages.pool(self.shape, fit.load)
        return {"block": pool.block, "blocks": pool.blocks(pages.kept(fit.load), pages.in_flight(fit.load))}

    def would_hold(self) -> tuple[Device, ...]:
        """Return named devices that hold the whole context: the fewest cards, and the least total memory."""
        key = (self.context, self.dtype, self.caution)
        if self.memo is not None and key in self.memo:
            return self.memo[key]
        kinds = {"cuda", "rocm"} if backends.of(self.backend).on_cards else {"metal"}
        free = FitRequest({k: v for k, v in self.request.values.items() if k not in {*LAYOUT, SHARE}})
        able = [d for d in known().values() if d.kind in kinds and "bf16" in d.native]
        several = [replace(d, count=n) for d in able for n in (1, 2, 4, 8) if n == 1 or d.node >= n]
        several.sort(key=lambda d: ((d.memory or 0) * d.count, d.count))
        holds = cache(lambda device: replace(self, device=device, request=free, measured=None).holds_all())
        small = next(filter(holds, several), None)
        few = next(filter(holds, sorted(several, key=lambda d: d.count)), None)
        found = tuple(dict.fromkeys(d for d in (few, small) if d is not None))
        if self.memo is not None:
            self.memo[key] = found
        return found

    def holds_all(self) -> bool:
        """Return whether all cards together, each with its default share, hold the whole context."""
        if self.weights.amount.low > self._budget(self.device.share) * self.device.count:
            return False  # no estimate is required
        widest = [s for s in self.splits() if s.copies == 1]
        for split in sorted(widest, key=lambda s: s.pipeline)[:1]:
            whole = self.fit(self.context, split)
            return whole.total.likely <= self._room(self.device.share, whole)
        return False

    def placed(self, split: Split, share: float) -> Placed:
        """Return the placement with this layout and this share of each card."""
        whole = self.fit(self.context, split)
        room = self._room(share, whole)
        context = longest(self.shape, whole, room)
        return Placed(split, share, self._budget(share), self._spare(share, whole), context)

    def splits(self) -> list[Split]:
        """Return the layouts that the request leaves open.

        Where none has the user's sizes without further stages, they stand alone, as often as there are cards.
        """
        found = layouts(self.config, self.shape, self.device, self.backend)
        fixed = [key for key in LAYOUT if self.request.is_fixed(key)]
        if not backends.of(self.backend).on_cards or not fixed:
            return found
        tensor, pipeline, data = (self.request.count(key) or 1 for key in (TENSOR, PIPELINE, DATA))
        exact = Split(tensor, pipeline, data, self.request.get(EXPERTS) is True)
        found = [s for s in found if all(getattr(s, PARTS[k]) == getattr(exact, PARTS[k]) for k in fixed)]
        if not any(split.pipeline <= pipeline for split in found):
            servers = self.device.count // exact.cards if self.device.is_card else 1
            found.append(replace(exact, replicas=max(servers, 1)))
        return found

    def shares(self) -> tuple[float, ...]:
        """Return the shares of a card to try, the default one first."""
        key = memory_arguments(self.backend).share
        fixed = None if key is None else self.request.get(key)
        if isinstance(fixed, int | float) and not isinstance(fixed, bool) and 0 < fixed <= 1:
            return (float(fixed),)
        raised = self.planned and self.device.is_card and USUAL <= self.device.share < FULLER_SHARE
        raised = raised and self.shape.pictures is None  # their encoder needs what the share leaves
        raised = raised and self.most_share(self.load(self.context, Split())) >= FULLER_SHARE
        return (self.device.share, FULLER_SHARE) if raised else (self.device.share,)

    def most_share(self, load: Load) -> float:
        """Return the largest share of a card that is free at a start and leaves the rest its room."""
        memory = self.device.memory or 1
        most = min(rest.free_at_start(load), memory - rest.unshared(self.shape, load))
        if self.device.free is not None:
            most = min(most, self.device.free - rest.DRIVER)  # another program has the rest
        return max(most * 100 // memory / 100, 0.01)

    def _spare(self, share: float, fit: Fit) -> int:
        """Return the bytes to keep free: what the estimate may lack, and what an assumed device may lack."""
        if self.caution == "least":
            return fit.total.low - fit.total.likely
        whole = isqrt(spare(fit) ** 2 + int(self.device.doubt * share) ** 2)
        return whole if self.caution == "whole" else whole // 2

    def _budget(self, share: float) -> int:
        return int((self.device.memory or 0) * share)

    def _room(self, share: float, fit: Fit) -> int:
        """Return the bytes for the likely total of one device; fewer where the user limits the cache."""
        room = self._budget(share) - self._spare(share, fit)
        space = self.space(fit)
        return room if space is None else min(room, fit.total.likely - cache_bytes(fit) + space)

    def fp8_needs(self) -> str | None:
        """Return the setting that vLLM asserts beside a cache in 8 bits, if there is one."""
        return FP8_NEEDS.get(str(self.config.get("model_type")))

    def space(self, fit: Fit) -> int | None:
        """Return the bytes of the whole cache, where the request sets them or the number of blocks."""
        if not self.planned:
            return None
        blocks = self.request.count(BLOCKS)
        return blocks * pages.pool(self.shape, fit.load).block if blocks else self.request.count(CACHE)


def _like(device: Device) -> Literal["cuda", "rocm", "metal", "cpu"]:
    """Return the kind with the same rules of memory; cards that no engine was read for count as AMD's."""
    return device.kind if device.kind in {"cuda", "metal", "cpu"} else "rocm"


def spare(fit: Fit) -> int:
    """Return the difference between high and likely, over the parts that are only estimated."""
    guessed = Amount.sum(t.amount for t in fit.terms if t.part not in CACHES)
    return guessed.high - guessed.likely


def cache_bytes(fit: Fit) -> int:
    """Return the bytes of one full sequence: keys, values and states."""
    return sum(t.amount.likely for t in fit.terms if t.part in CACHES)
