"""Memory of one device beside weights and caches: the peak of a step, CUDA graphs, the engine with buffers.

vLLM runs one full step at its start, and subtracts what that step took (``determine_available_memory``). The
step encodes pictures, passes the layers and samples, one after the other: the largest of the three counts.
Bytes of a value are of the engine's source. The other figures were fitted to starts on real cards;
``python -m benchmarks starts`` compares them.
"""

from __future__ import annotations

from dataclasses import replace

from importer.memory import pages
from importer.memory.estimate_types import Amount, Load, Term, TermReason
from importer.memory.layers import State
from importer.memory.pages import value_bytes
from importer.memory.shape import Shape
from importer.reasons import Reason

PREFILL = 2048  # tokens of one step of a prompt in mlx; a rotating cache holds all of them during the step
MIB = 1 << 20
ON_CARDS = ("cuda", "rocm")
# Bytes of a logit while an engine samples. vLLM 0.33.0: 2 and 4 for logits in 16 and 32 bits, 4 for
# probabilities, 4 for noise. Older versions sort: 1.25 GB for 256 rows of 131,072 values, where the kernel
# takes 384 MB (vllm-project/vllm#32558). FlashInfer's sampler: 18 bytes on an H200 (0.26.0). The second
# runner sampled without parameters in its trial step before 0.33.
SAMPLED, SORTED, FLASHINFER, GREEDY = (10, 14, 18), (30, 40, 44), (14, 18, 22), (2, 2, 6)
UNSORTED = (0, 17)  # version from which on vLLM samples without sorting (vllm-project/vllm#33538)
GRAPHS_COUNTED = (0, 21)  # version from which on vLLM subtracts its graphs before it sizes the cache
# vLLM's second model runner runs dense models since 0.25, and all since 0.29 (its ``config/vllm.py``). Its
# trial step encodes pictures since 0.27, counts graphs since 0.29 and samples with parameters since 0.33.
SECOND_DENSE, SECOND_PICTURES, SECOND, SECOND_SAMPLES = (0, 25), (0, 27), (0, 29), (0, 33)
LAYERS = (0.75, 1.0, 1.3)  # of the widest layer's values
ENCODED, MOVING = (0.5, 1.0, 1.3), 2.6  # of an encoder's values; a film has as many tokens as the context
# The engine with nothing loaded: kernels and workspaces. On processors it was measured. The first start on a
# card tunes Triton's kernels in buffers of 0.5 GiB (H200).
ENGINE = {
    "cuda": Amount(0, 250 * MIB, 750 * MIB),
    "rocm": Amount(0, 250 * MIB, 1000 * MIB),
    "cpu": Amount(900 * MIB, 1500 * MIB, 2000 * MIB),
    "metal": Amount(200 * MIB, 400 * MIB, 700 * MIB),
}
BUFFERS = Amount(0, 350 * MIB, 1500 * MIB)  # between cards
GATHERED = Amount(100 * MIB, 400 * MIB, 1000 * MIB)  # queries and results of all parts of a sequence
UNCOUNTED = 1024 * MIB  # at most, for each setting with an unknown size
GRAPHS = Amount(3 * MIB, 10 * MIB, 30 * MIB)  # of a layer; 28 of the second runner, 14 of the first (H200)
SHARED = (0.0, 0.12, 0.3)  # of the weights, that the system keeps of their files in a memory that both share


def terms(shape: Shape, load: Load, weights: int, *, paged: bool) -> list[Term]:
    """Return the parts beside weights and caches; ``weights`` are the bytes loaded on the device."""
    found = [_peak(shape, load, paged)]
    counted = pages.has(load, SECOND if _second(shape, load) else GRAPHS_COUNTED)
    if paged and load.device in ON_CARDS and not load.eager and counted:
        graphs = GRAPHS.times(len(shape.blocks) / max(load.pipeline_parallel, 1))
        found.append(Term("graphs", graphs, Reason(TermReason.GRAPHS)))
    return [*found, _engine(load, weights)]


def _peak(shape: Shape, load: Load, paged: bool) -> Term:
    """Return the largest of three passes: pictures, layers, sampling."""
    tokens = (load.batched_tokens or pages.batched_default(load)) if paged else PREFILL
    rows = min((load.slots or pages.slots_default(load)) if paged else max(load.sequences, 1), tokens)
    why = Reason(TermReason.SAMPLING, rows=rows, values=shape.vocabulary)
    passes = [
        (_range(_values(shape, load, tokens), LAYERS), Reason(TermReason.ACTIVATIONS, tokens=tokens)),
        (_range(rows * shape.vocabulary, _sampled(shape, load)), why),
    ]
    seen = load.pictures and not (_second(shape, load) and not pages.has(load, SECOND_PICTURES))
    if paged and shape.pictures is not None and seen and not load.text_only:
        most = max(tokens, shape.pictures.most)
        held = most * (shape.pictures.values + shape.hidden) * value_bytes(shape, load)
        low, likely, high = ENCODED
        film = min(MOVING, high * max(load.context / most, 1)) if most > tokens else high
        passes.append((_range(held, (low, likely, film)), Reason(TermReason.PICTURES, tokens=most)))
    largest, why = max(passes, key=lambda one: one[0].likely)
    low, high = max(a.low for a, _ in passes), max(a.high for a, _ in passes)
    return Term("activations", Amount(low, largest.likely, high), why)


def _second(shape: Shape, load: Load) -> bool:
    """Return whether vLLM's second model runner runs the model by default."""
    states = any(isinstance(cache, State) for block in shape.blocks for cache in block.caches)
    return pages.has(load, SECOND if shape.experts or states else SECOND_DENSE)


def _sampled(shape: Shape, load: Load) -> tuple[float, float, float]:
    """Return the bytes of a logit; of an unknown version the most is that of the older ones."""
    if load.device not in ON_CARDS:
        return SAMPLED
    if load.version is None:
        return (*SAMPLED[:2], SORTED[1])
    if _second(shape, load):
        return SAMPLED if pages.has(load, SECOND_SAMPLES) else GREEDY
    if pages.has(load, GRAPHS_COUNTED):  # the release that made FlashInfer's sampler the default, too
        return FLASHINFER
    return SAMPLED if pages.has(load, UNSORTED) else SORTED


def _values(shape: Shape, load: Load, tokens: int) -> int:
    """Return the bytes of the tokens of one step in the widest layer."""
    widest = max((b.active for b in shape.blocks), default=0)
    spread = max((widest - 3 * shape.hidden) / max(load.tensor_parallel, 1), 0) + 3 * shape.hidden
    return int(tokens * spread * value_bytes(shape, load))


def _engine(load: Load, weights: int) -> Term:
    """Return the engine with nothing loaded, its buffers, and what the system takes of a shared memory."""
    parts, kind = [ENGINE[load.device]], TermReason.ENGINE
    devices = max(load.tensor_parallel * load.pipeline_parallel, load.expert_parallel)
    if devices > 1 and load.device in ON_CARDS:
        parts += [BUFFERS, *([GATHERED] if load.context_parallel > 1 else [])]
        kind = TermReason.ENGINE_AND_BUFFERS
    if load.shared:
        parts.append(_range(weights, SHARED))
        kind = TermReason.ENGINE_AND_SYSTEM
    total, why = Amount.sum(parts), Reason(kind)
    if load.uncounted:
        total = replace(total, high=total.high + UNCOUNTED * len(load.uncounted))
        why = Reason(TermReason.NOT_COUNTED, why=why, keys=load.uncounted)
    return Term("overhead", total, why)


def _range(size: int, factors: tuple[float, float, float]) -> Amount:
    low, likely, high = (int(size * factor) for factor in factors)
    return Amount(low, likely, high)
