"""Memory of one device beside weights and caches: the peak of a step, CUDA graphs, adapters, the engine.

vLLM runs one full step at its start, and subtracts what that step took (``determine_available_memory``). The
step encodes pictures, passes the layers and samples, one after the other: the largest of the three counts.
Workspaces of experts and of sparse attention stay beside them (``v1/worker/workspace.py``).
Bytes of a value are of the engine's source. The other figures were fitted to starts on real cards;
``python -m benchmarks starts`` compares them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from importer.memory import pages
from importer.memory.estimate_types import Amount, Load, Term, TermReason
from importer.memory.layers import Latent, State
from importer.memory.pages import value_bytes
from importer.memory.shape import Shape
from importer.reasons import Reason

PREFILL = 2048  # tokens of one step of a prompt in mlx; a rotating cache holds all of them during the step
MIB = 1 << 20
ON_CARDS = ("cuda", "rocm")
# Bytes of a logit while an engine samples. vLLM: 2 and 4 for logits in 16 and 32 bits, 4 for probabilities,
# and 4 for noise without FlashInfer. Older versions sort: 37 bytes more than without
# (vllm-project/vllm#32558). The second runner sampled without parameters in its trial step before 0.33.
SAMPLED, SORTED, GREEDY = (10, 12, 18), (30, 44, 48), (2, 2, 6)
UNSORTED = (0, 17)  # version from which on vLLM samples without sorting (vllm-project/vllm#33538)
GRAPHS_COUNTED = (0, 21)  # version from which on vLLM subtracts its graphs before it sizes the cache
# vLLM's second model runner runs dense models since 0.25, and all since 0.29 (its ``config/vllm.py``). Its
# trial step encodes pictures since 0.27, counts graphs since 0.29 and samples with parameters since 0.33.
SECOND_DENSE, SECOND_PICTURES, SECOND, SECOND_SAMPLES = (0, 25), (0, 27), (0, 29), (0, 33)
# Of the widest layer's values, and of the workspaces of Triton's and Marlin's experts; other kernels have
# their own. Logs of AMD's cards have 2.3 and 4.3 times as much.
LAYERS, EXPERTS = {"rocm": (0.75, 1.0, 3.0)}, {"rocm": (0.2, 1.0, 4.0)}
USUAL_LAYERS, USUAL_EXPERTS = (0.75, 1.0, 1.3), (0.2, 0.8, 1.1)
# Of an encoder's values; a film has as many tokens as the context. Pictures that keep their size: three
# starts of two models before 0.21.
ENCODED, MOVING, ENCODED_OLD, LARGE_PICTURES = (0.5, 1.0, 1.3), 2.6, (0.5, 2.4, 3.2), (0, 21)
# Rows of a sparse layer's indexer for each token of the context, and values of a scale; its logits. vLLM
# 0.33.0: ``mla/indexer.py`` and ``layers/sparse_attn_indexer.py``.
GATHERED_ROWS, SCALE, LOGITS = 40, 4, 512 * MIB
# The engine with nothing loaded: kernels and workspaces. On processors it was measured.
ENGINE = {
    "cuda": Amount(0, 250 * MIB, 750 * MIB),
    "rocm": Amount(0, 250 * MIB, 1000 * MIB),
    "cpu": Amount(900 * MIB, 1500 * MIB, 2000 * MIB),
    "metal": Amount(200 * MIB, 400 * MIB, 700 * MIB),
}
# A first start of the second runner, that compiles; since 0.27 vLLM counts everything that it took, fragments
# and the counts of penalties too (``mem_utils.py``): 0.5 to 1.9 GiB in four logs, beside those counts.
COMPILED, TUNED, CONSUMED = Amount(0, 650 * MIB, 1350 * MIB), Amount(0, 300 * MIB, 800 * MIB), (0, 27)
BUFFERS = Amount(0, 350 * MIB, 1500 * MIB)  # between cards
PARTED = Amount(100 * MIB, 400 * MIB, 1000 * MIB)  # queries and results of all parts of a sequence
UNCOUNTED = 1024 * MIB  # at most, for each setting with an unknown size
# CUDA graphs: all of them, and for each layer and captured size. 0.11 to 1.0 GiB in eight logs.
FIRST_GRAPH, EACH_GRAPH, GRAPHS = 70 * MIB, 0.24 * MIB, (0.4, 1.0, 2.2)
LARGEST_GRAPH = {10: 1024}  # tokens, by the card's major capability, since 0.31; 512 elsewhere
# What the system takes while an engine starts in a memory that both share; until 0.12 cached files, too.
SYSTEM, AVAILABLE, CACHED = Amount(0, 1024 * MIB, 6144 * MIB), (0, 13), (0.0, 0.5, 1.2)
OF_CLUSTERS = 16 * 1024 * MIB  # the most that it takes where several such machines share a model: 0.3 to 17.4
DRIVER = 512 * MIB  # of CUDA's context: 30.86 of 31.36 GiB are free on an RTX 5090
OWN_SYSTEM = 0.88  # of GB10's and Thor's memory: 0.85 starts, 0.9 does not
MATRICES = {"attention": 4, "mlp": 3, "shared": 3, "experts": 3}  # of a layer that adapters change


def terms(shape: Shape, load: Load, weights: int, *, paged: bool) -> list[Term]:
    """Return the parts beside weights and caches; ``weights`` are the bytes loaded on the device."""
    found = [_peak(shape, load, paged)]
    if paged and load.device in ON_CARDS:
        counted = pages.has(load, SECOND if is_second(shape, load) else GRAPHS_COUNTED)
        if counted and not load.eager:
            found.append(Term("graphs", graphs(shape, load), Reason(TermReason.GRAPHS)))
        if load.adapters:
            found.append(
                Term("adapters", _adapters(shape, load), Reason(TermReason.ADAPTERS, rows=load.adapters))
            )
    return [*found, _engine(shape, load, weights)]


def grows(shape: Shape, load: Load) -> bool:
    """Return whether these parts grow with the context: where a sparse layer has an indexer."""
    return load.device in ON_CARDS and bool(_indexers(shape))


def unshared(shape: Shape, load: Load) -> int:
    """Return the most bytes of a card beside the share of an engine: its context, graphs, buffers.

    Graphs count in the share from the releases on that subtract them; before, they are beside it whole.
    """
    size = graphs(shape, load)
    sure = load.version is None or pages.has(load, SECOND) or not pages.has(load, SECOND_DENSE)
    counted = sure and pages.has(load, GRAPHS_COUNTED)
    recorded = 0 if load.eager else size.high - size.likely if counted else size.high
    return DRIVER + recorded // (2 if counted else 1) + (BUFFERS.likely if load.tensor_parallel > 1 else 0)


def free_at_start(load: Load) -> int:
    """Return the bytes of a device that are free once the engine has its context."""
    memory = load.memory or 0
    return int(memory * OWN_SYSTEM) if load.shared and load.device == "cuda" else memory - DRIVER


def graphs(shape: Shape, load: Load) -> Amount:
    """Return the recorded CUDA graphs: for each captured size and layer, and the indexer's logits."""
    layers = len(shape.blocks) / max(load.pipeline_parallel, 1)
    largest = largest_graph(load)
    number = _captured(largest) * (2 if load.adapters else 1)
    size = _range(int(FIRST_GRAPH + EACH_GRAPH * layers * number), GRAPHS)
    context = max((load.context // every for _, every in _indexers(shape)), default=0)
    return Amount.sum((size, _range(4 * largest * context, (0.0, 1.0, 2.0))))


def largest_graph(load: Load) -> int:
    """Return the tokens of the largest graph (``_set_cudagraph_sizes``)."""
    if load.captured is not None:
        return load.captured
    most = LARGEST_GRAPH.get((load.capability or 0) // 10, 512) if pages.has(load, (0, 31)) else 512
    slots = load.slots or pages.slots_default(load)
    batched = load.batched_tokens or pages.batched_default(load)
    return min(slots * (1 + load.drafts) * 2, most, batched)


def _captured(largest: int) -> int:
    """Return the number of captured sizes: 1, 2 and 4, multiples of 8 up to 256, of 16 beyond."""
    small = sum(n <= largest for n in (1, 2, 4))
    return small + min(largest, 248) // 8 + max(largest - 240, 0) // 16


def _indexers(shape: Shape) -> set[tuple[int, int]]:
    """Return the width, and the tokens of one vector, of each kind of indexer that sparse layers have."""
    return {(c.indexer, c.every) for c in shape.caches if isinstance(c, Latent) and c.indexer}


def _adapters(shape: Shape, load: Load) -> Amount:
    """Return LoRA's places: for each matrix two thin ones; vLLM may add those of embedding and head."""
    spread = max(load.tensor_parallel, 1)
    sides = 0
    for block in shape.blocks:
        count: Counter[str] = Counter()
        for part in block.parts:
            count[part.role] += part.count // shape.hidden
        number = {"experts": count["router"]}  # a router has a row for each expert
        sides += sum(
            count[role] // spread + matrices * number.get(role, 1) * shape.hidden
            for role, matrices in MATRICES.items()
            if role in count
        )
    value = 2 * load.adapters
    layers = sides * value // max(load.pipeline_parallel, 1)
    outer = (shape.hidden + shape.vocabulary) * value
    return Amount(layers, layers + outer, layers + 2 * outer)


def _peak(shape: Shape, load: Load, paged: bool) -> Term:
    """Return the largest of three passes: pictures, then layers and sampling beside their workspaces."""
    tokens = (load.batched_tokens or pages.batched_default(load)) if paged else PREFILL
    rows = min((load.slots or pages.slots_default(load)) if paged else max(load.sequences, 1), tokens)
    why = Reason(TermReason.SAMPLING, rows=rows, values=shape.vocabulary)
    beside = _workspaces(shape, load, tokens, paged)
    passes = [
        (Amount.sum((_range(size, factors), *beside)), reason)
        for size, factors, reason in (
            (
                _values(shape, load, tokens),
                LAYERS.get(load.device, USUAL_LAYERS),
                Reason(TermReason.ACTIVATIONS, tokens=tokens),
            ),
            (rows * shape.vocabulary, _sampled(shape, load), why),
        )
    ]
    seen = load.pictures and not (is_second(shape, load) and not pages.has(load, SECOND_PICTURES))
    if paged and shape.pictures is not None and seen and not load.text_only:
        most = max(tokens, shape.pictures.most)
        held = most * (shape.pictures.values + shape.hidden) * value_bytes(shape, load)
        keeps_size = shape.pictures.most > 0
        low, likely, high = ENCODED
        factors = (low, likely, min(MOVING, high * max(load.context / most, 1)) if keeps_size else high)
        factors = ENCODED_OLD if keeps_size and not pages.has(load, LARGE_PICTURES) else factors
        passes.append((_range(held, factors), Reason(TermReason.PICTURES, tokens=most)))
    largest, why = max(passes, key=lambda one: one[0].likely)
    low, high = max(a.low for a, _ in passes), max(a.high for a, _ in passes)
    return Term("activations", Amount(low, largest.likely, high), why)


def _workspaces(shape: Shape, load: Load, tokens: int, paged: bool) -> list[Amount]:
    """Return what stays beside a pass: results of the chosen experts, and keys that an indexer gathers."""
    wide = (
        shape.expert_width if load.expert_parallel > 1 else shape.expert_width // max(load.tensor_parallel, 1)
    )
    each = max(2 * wide, shape.hidden) + max(wide, shape.hidden)
    found = [
        _range(
            tokens * shape.experts * each * value_bytes(shape, load), EXPERTS.get(load.device, USUAL_EXPERTS)
        )
    ]
    if paged and load.device in ON_CARDS and (indexers := _indexers(shape)):
        rows = max((width + SCALE) * (GATHERED_ROWS * load.context // every) for width, every in indexers)
        found.append(_range(rows + LOGITS, (0.5, 1.0, 1.2)))
    return found


def is_second(shape: Shape, load: Load) -> bool:
    """Return whether vLLM's second model runner runs the model by default."""
    states = any(isinstance(cache, State) for cache in shape.caches)
    return pages.has(load, SECOND if shape.experts or states else SECOND_DENSE)


def _sampled(shape: Shape, load: Load) -> tuple[float, float, float]:
    """Return the bytes of a logit; of an unknown version the most is that of the older ones."""
    if load.device not in ON_CARDS:
        return SAMPLED
    if load.version is None:
        return (*SAMPLED[:2], SORTED[1])
    if is_second(shape, load):
        return SAMPLED if pages.has(load, SECOND_SAMPLES) else GREEDY
    return SAMPLED if pages.has(load, UNSORTED) else SORTED


def _values(shape: Shape, load: Load, tokens: int) -> int:
    """Return the bytes of the tokens of one step in the widest layer."""
    widest = max((b.active for b in shape.blocks), default=0)
    spread = max((widest - 3 * shape.hidden) / max(load.tensor_parallel, 1), 0) + 3 * shape.hidden
    return int(tokens * spread * value_bytes(shape, load))


def _engine(shape: Shape, load: Load, weights: int) -> Term:
    """Return the engine with nothing loaded, its buffers, and what the system takes of a shared memory."""
    parts, kind = [ENGINE[load.device]], TermReason.ENGINE
    if load.device in ON_CARDS and is_second(shape, load):
        consumed = pages.has(load, CONSUMED)
        parts += [Amount.exactly(_counts(shape, load))] if consumed else []
        parts += [COMPILED if consumed else TUNED] if not load.eager else []
    devices = max(load.tensor_parallel * load.pipeline_parallel, load.expert_parallel)
    if devices > 1 and load.device in ON_CARDS:
        parts += [BUFFERS, *([PARTED] if load.context_parallel > 1 else [])]
        kind = TermReason.ENGINE_AND_BUFFERS
    if load.shared:
        system = SYSTEM if devices == 1 else replace(SYSTEM, high=OF_CLUSTERS)
        parts += [system, *([] if pages.has(load, AVAILABLE) else [_range(weights, CACHED)])]
        kind = TermReason.ENGINE_AND_SYSTEM
    total, why = Amount.sum(parts), Reason(kind)
    if load.uncounted:
        total = replace(total, high=total.high + UNCOUNTED * len(load.uncounted))
        why = Reason(TermReason.NOT_COUNTED, why=why, keys=load.uncounted)
    return Term("overhead", total, why)


def _counts(shape: Shape, load: Load) -> int:
    """Return the bytes of the second runner's penalties: a count and a bit for each token of each slot."""
    rows = load.slots or pages.slots_default(load)
    return rows * 4 * (shape.vocabulary + -(-shape.vocabulary // 32))


def _range(size: int, factors: tuple[float, float, float]) -> Amount:
    low, likely, high = (int(size * factor) for factor in factors)
    return Amount(low, likely, high)
