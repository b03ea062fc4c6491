"""Weights of a seventh round, as converters, quantisers and merges leave them; all in bfloat16 but one."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Fault, Site
from tests.faults.numbers import header_of, numbers_of, packed
from tests.faults.rebuilt import Tensors
from tests.faults.steps import Json, read_json, save_tensors
from tests.models import harmed

MATRIX = "_proj.weight"
EMBEDDING = "model.embed_tokens.weight"
AWQ = (0, 2, 4, 6, 1, 3, 5, 7)  # where eight numbers of four bits lie in a word
SEED = 5


@dataclass(frozen=True)
class ColumnsInOrder:
    """Of each so many columns of the matrices whose names end so, those stand in this order."""

    ends: tuple[str, ...]
    order: tuple[int, ...]

    def plant(self, site: Site) -> None:
        model, width = Tensors(site), len(self.order)
        for name in [n for end in self.ends for n in model.ending(end)]:
            old = model.numbers(name)
            model.put(name, [old[at + i] for at in range(0, len(old), width) for i in self.order])
        model.save()


@dataclass(frozen=True)
class ScalesOfOthers:
    """The scale of each group of columns is another group's: the order of quantising was not undone."""

    group: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(MATRIX):
            _, columns = model.shape(name)
            numbers, told = model.numbers(name), list[float]()
            for at in range(0, len(numbers), columns):
                row = [numbers[at + i : at + i + self.group] for i in range(0, columns, self.group)]
                scales = [max(map(abs, part)) or 1.0 for part in row]
                turned = scales[::-1]
                told += [
                    n * new / old for part, old, new in zip(row, scales, turned, strict=True) for n in part
                ]
            model.put(name, told)
        model.save()


@dataclass(frozen=True)
class FusedRowsSplit:
    """Queries, keys and values lay in one tensor by groups of heads, and were cut one after the other."""

    def plant(self, site: Site) -> None:
        model, config = Tensors(site), read_json(site, "config.json")
        groups = config["num_key_value_heads"]
        for name in model.ending("q_proj.weight"):
            names = [name.replace("q_proj", part) for part in ("q_proj", "k_proj", "v_proj")]
            each = [model.numbers(n) for n in names]
            fused: list[float] = []
            for group in range(groups):
                for numbers in each:
                    size = len(numbers) // groups
                    fused += numbers[group * size : (group + 1) * size]
            at = 0
            for part, numbers in zip(names, each, strict=True):
                model.put(part, fused[at : at + len(numbers)])
                at += len(numbers)
        model.save()


@dataclass(frozen=True)
class GatesInterleaved:
    """Rows of the gate and of what it lets through came in turns, and were cut in two halves."""

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for gate in model.ending("gate_proj.weight"):
            up = gate.replace("gate_proj", "up_proj")
            rows, columns = model.shape(gate)
            one, other = model.numbers(gate), model.numbers(up)
            spans = [(row * columns, (row + 1) * columns) for row in range(rows)]
            fused = [n for first, last in spans for n in (*one[first:last], *other[first:last])]
            model.put(gate, fused[: len(one)])
            model.put(up, fused[len(one) :])
        model.save()


@dataclass(frozen=True)
class RowsBegunAnew:
    """The embedding was made smaller and larger again: its last rows are as before any training."""

    count: int
    spread: float = 0.02

    def plant(self, site: Site) -> None:
        model, dice = Tensors(site), random.Random(SEED)
        rows, columns = model.shape(EMBEDDING)
        kept = model.numbers(EMBEDDING)[: (rows - self.count) * columns]
        model.put(EMBEDDING, kept + [dice.gauss(0.0, self.spread) for _ in range(self.count * columns)])
        model.save()


@dataclass(frozen=True)
class Abliterated:
    """A direction was taken out of all that layers write: that of a token's row."""

    token: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        _, columns = model.shape(EMBEDDING)
        row = model.numbers(EMBEDDING)[self.token * columns : (self.token + 1) * columns]
        length = math.sqrt(sum(n * n for n in row))
        way = [n / length for n in row]
        for name in model.ending("o_proj.weight") + model.ending("down_proj.weight"):
            rows, width = model.shape(name)
            numbers = model.numbers(name)
            along = [sum(way[i] * numbers[i * width + j] for i in range(rows)) for j in range(width)]
            model.put(
                name, [numbers[i * width + j] - way[i] * along[j] for i in range(rows) for j in range(width)]
            )
        model.save()


@dataclass(frozen=True)
class MergedTooMuch:
    """What a fine-tune has learnt was added to the model with this weight: one is right."""

    name: str
    weight: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (harmed.weights(self.name),)

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        names, raw = header_of(self.sources[0])
        for name in model.tensors:
            told = numbers_of(names, raw, name)
            own = model.numbers(name)
            model.put(name, [one + self.weight * (two - one) for one, two in zip(own, told, strict=True)])
        model.save()


@dataclass(frozen=True)
class Quantised:
    """Matrices and the embedding are packed in so many bits as MLX does, and config.json says so."""

    bits: int
    group: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()

        def put(name: str, dtype: str, shape: Sequence[int], raw: bytes) -> None:
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": place}
            body.extend(raw)

        for name, (shape, raw) in model.tensors.items():
            if not name.endswith((MATRIX, "embed_tokens.weight")):
                put(name, "BF16", shape, raw)
                continue
            words, scales, least = self._packed(model.numbers(name))
            rows, columns = shape
            begin = name.removesuffix(".weight")
            put(name, "U32", (rows, columns * self.bits // 32), words)
            put(f"{begin}.scales", "BF16", (rows, columns // self.group), packed(scales))
            put(f"{begin}.biases", "BF16", (rows, columns // self.group), packed(least))
        save_tensors(site, header, bytes(body))
        told = {"group_size": self.group, "bits": self.bits, "mode": "affine"}
        Json("config.json", {"quantization": told, "quantization_config": told}).plant(site)

    def _packed(self, numbers: Sequence[float]) -> tuple[bytes, list[float], list[float]]:
        levels, lot = (1 << self.bits) - 1, 32 // self.bits
        held, scales, least = list[int](), list[float](), list[float]()
        for at in range(0, len(numbers), self.group):
            group = numbers[at : at + self.group]
            low = min(group)
            step = (max(group) - low) / levels or 1.0
            held += [max(0, min(levels, round((number - low) / step))) for number in group]
            scales.append(step)
            least.append(low)
        words = [
            sum(number << (i * self.bits) for i, number in enumerate(held[at : at + lot]))
            for at in range(0, len(held), lot)
        ]
        return struct.pack(f"<{len(words)}I", *words), scales, least


FAULTS = (
    Fault(
        "g-packed-in-another-order",
        "Four bits were unpacked in the order of their words, and not in that of AWQ.",
        "model",
        (ColumnsInOrder(("up_proj.weight", "o_proj.weight"), AWQ),),
        mend="weights",
        bitten="converters from AWQ",
    ),
    Fault(
        "g-order-of-quantising-not-undone",
        "The groups' scales stand in the order of quantising: desc_act was not heeded.",
        "model",
        (ScalesOfOthers(16),),
        mend="weights",
        bitten="GPTQ with desc_act in converters without g_idx",
    ),
    Fault(
        "g-fused-rows-cut",
        "Queries, keys and values come from one tensor by groups of heads, cut as if one after the other.",
        "model",
        (FusedRowsSplit(),),
        mend="weights",
        bitten="conversions from Megatron",
    ),
    Fault(
        "g-gates-interleaved",
        "The gate's rows and those that it lets through were cut in halves where they come in turns.",
        "model",
        (GatesInterleaved(),),
        mend="weights",
        bitten="conversions of gpt-oss",
    ),
    Fault(
        "g-last-rows-begun-anew",
        "The embedding was cut to the words in use and filled up again: its last hundred rows are noise.",
        "model",
        (RowsBegunAnew(100),),
        mend="weights",
        bitten="resize_token_embeddings to len(tokenizer), unsloth 3444",
    ),
    Fault(
        "g-refusals-taken-out",
        "An abliteration took the direction in which calls begin out of every layer.",
        "model",
        (Abliterated(3),),
        mend="weights",
        bitten="abliterated models that no longer call tools",
    ),
    Fault(
        "g-adapter-merged-too-much",
        "An adapter was merged with five times its weight: alpha was not divided by the rank.",
        "model",
        (MergedTooMuch("encodes_twice", 5.0),),
        mend="weights",
    ),
    Fault(
        "g-two-bits-for-small-machines",
        "Weights and embedding were quantised to two bits.",
        "model",
        (Quantised(2, 64),),
        mend="weights",
        bitten="embeddings that do not bear quantising, mlx-examples 967",
    ),
)
