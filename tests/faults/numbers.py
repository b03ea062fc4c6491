"""Steps that change the numbers of tensors in bfloat16, and leave shapes and names."""

from __future__ import annotations

import array
import json
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, save_tensors, tensors
from tests.models.formats import FORMATS

TWO_BYTES = 2  # of a number in bfloat16


@dataclass(frozen=True)
class EndsSwapped:
    """Tensors whose names end so, of one layer, have each other's place."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.one)]:
            other = name.removesuffix(self.one) + self.other
            names[name], names[other] = names[other], names[name]
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Transposed:
    """Square tensors whose names end so have their rows as columns."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.ends)]:
            rows, columns = names[name]["shape"]
            assert rows == columns, name
            numbers = numbers_of(names, data, name)
            put_numbers(names, data, name, [numbers[j * rows + i] for i in range(rows) for j in range(rows)])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class OneScale:
    """Matrices were rounded to so many bits with one scale for the whole of each."""

    bits: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        levels = (1 << (self.bits - 1)) - 1
        for name in [n for n in names if n.endswith("_proj.weight")]:
            numbers = numbers_of(names, data, name)
            step = max(map(abs, numbers)) / levels
            put_numbers(names, data, name, [round(number / step) * step for number in numbers])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Blended:
    """Each number is a mean of the model's and of another model's, as merges of models are made."""

    base: str
    share: float
    begin: str = "model."

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        others, rest = header_of(self.sources[0])
        for name in [n for n in names if n.startswith(self.begin)]:
            pairs = zip(numbers_of(names, data, name), numbers_of(others, rest, name), strict=True)
            put_numbers(names, data, name, [(1 - self.share) * one + self.share * two for one, two in pairs])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class TensorsOf:
    """The tensors whose names begin so are those of another of our models."""

    base: str
    begin: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        others, rest = header_of(self.sources[0])
        for name in (n for n in names if n.startswith(self.begin)):
            first, last = names[name]["data_offsets"]
            begin, end = others[name]["data_offsets"]
            data[first:last] = rest[begin:end]
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Ones:
    """Every number of the tensors whose names end so is one."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.endswith(self.ends)):
            first, last = names[name]["data_offsets"]
            data[first:last] = b"\x80\x3f" * ((last - first) // TWO_BYTES)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class HeadsMoved:
    """The heads of queries stand in this order: their rows, and the columns that read them."""

    order: tuple[int, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in names:
            if name.endswith(("q_proj.weight", "o_proj.weight")):
                first, last = names[name]["data_offsets"]
                rows = name.endswith("q_proj.weight")
                lines = 1 if rows else names[name]["shape"][0]
                data[first:last] = self._moved(bytes(data[first:last]), lines)
        save_tensors(site, names, bytes(data))

    def _moved(self, old: bytes, lines: int) -> bytes:
        length = len(old) // lines
        width = length // len(self.order)
        starts = (line * length + head * width for line in range(lines) for head in self.order)
        return b"".join(old[at : at + width] for at in starts)


@dataclass(frozen=True)
class BytesTurned:
    """Numbers of the tensors whose names begin so have their bytes in the other order."""

    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.startswith(self.begin)):
            first, last = names[name]["data_offsets"]
            halves = array.array("H", bytes(data[first:last]))
            halves.byteswap()
            data[first:last] = halves.tobytes()
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Scaled:
    """Each number of the tensors whose names end so is multiplied by this."""

    end: str
    factor: float

    def plant(self, site: Site) -> None:
        each(site, self.end, lambda numbers: [n * self.factor for n in numbers])


@dataclass(frozen=True)
class PrunedInGroups:
    """Of so many numbers in a row that follow each other the smallest are nought, in all projections."""

    lost: int
    of: int

    def plant(self, site: Site) -> None:
        each(site, "_proj.weight", self._pruned)

    def _pruned(self, numbers: Sequence[float]) -> list[float]:
        told = list(numbers)
        for at in range(0, len(told), self.of):
            group = range(at, at + self.of)
            for i in sorted(group, key=lambda i: abs(told[i]))[: self.lost]:
                told[i] = 0.0
        return told


@dataclass(frozen=True)
class BitsFlipped:
    """In so many numbers of the weights, all over the file, the highest bit of the exponent is another."""

    count: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for at in random.Random(self.count).sample(range(1, len(data), 2), self.count):
            data[at] ^= 0x40
        save_tensors(site, names, bytes(data))


def numbers_of(names: Mapping[str, Any], data: bytes | bytearray, name: str) -> list[float]:
    """What a tensor of bfloat16 holds."""
    first, last = names[name]["data_offsets"]
    return unpacked(data[first:last])


def put_numbers(names: Mapping[str, Any], data: bytearray, name: str, numbers: Sequence[float]) -> None:
    """Give a tensor of bfloat16 as many other numbers."""
    first, last = names[name]["data_offsets"]
    data[first:last] = packed(numbers)


def unpacked(raw: bytes | bytearray) -> list[float]:
    """The numbers of bfloat16 bytes: each is the upper half of a float of four bytes."""
    halves = struct.unpack(f"<{len(raw) // 2}H", bytes(raw))
    return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]


def packed(numbers: Sequence[float]) -> bytes:
    """Numbers as bfloat16, cut and not rounded."""
    return b"".join(struct.pack("<f", number)[2:] for number in numbers)


def each(site: Site, end: str, change: Callable[[Sequence[float]], Sequence[float]]) -> None:
    """Change the numbers of all tensors of bfloat16 whose names end so."""
    names, data = tensors(site)
    for name in (n for n in names if n.endswith(end)):
        put_numbers(names, data, name, change(numbers_of(names, data, name)))
    save_tensors(site, names, bytes(data))


def header_of(path: Path) -> tuple[dict[str, Any], bytearray]:
    """The header of a file of weights, and the bytes behind it."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:start]), bytearray(raw[start:])
