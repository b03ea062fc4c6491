"""The layouts of a model over devices: what has to divide, within one machine and over several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer import backends
from importer.hub.snapshot import whole
from importer.memory.config_keys import Keys
from importer.memory.devices import Device
from importer.memory.experts import EXPERT_WIDE, count, expert_width, shared_width
from importer.memory.layers import Attention, Cross, Latent, Role, State
from importer.memory.plans import Split
from importer.memory.quantised import scale_block
from importer.memory.shape import Shape
from importer.signals.architecture import text_config

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
