"""Steps of the blind round q: what conversions, quantisers and fine-tunes do to weights and files."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import Site
from tests.faults.numbers import each, numbers_of, packed, put_numbers
from tests.faults.rebuilt import Tensors
from tests.faults.steps import Json, read_json, save_tensors, tensors, write_json

EMBEDDING = "model.embed_tokens.weight"
LAYER = "model.layers."
WORD = 32  # bits of a packed number
GROUP = 64
BITS = 8


@dataclass(frozen=True)
class LowRankAdded:
    """A product of two thin matrices of chance is added to the projections that end so: a foreign adapter."""

    ends: tuple[str, ...]
    rank: int
    scale: float

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        chance = random.Random(self.rank)
        for name in [n for n in names if n.endswith(self.ends)]:
            rows, columns = names[name]["shape"]
            up = [[chance.gauss(0, 1) for _ in range(self.rank)] for _ in range(rows)]
            down = [[chance.gauss(0, 1) for _ in range(columns)] for _ in range(self.rank)]
            numbers = numbers_of(names, data, name)
            for row in range(rows):
                for column in range(columns):
                    product = sum(up[row][k] * down[k][column] for k in range(self.rank))
                    numbers[row * columns + column] += self.scale * product
            put_numbers(names, data, name, numbers)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class FusedTaken:
    """Rows of two matrices came in turns in a fused one, and were taken apart as two halves."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(self.one):
            other = name.removesuffix(self.one) + self.other
            rows, columns = model.shape(name)
            turns: list[float] = []
            for row in range(rows):
                turns += model.numbers(name)[row * columns : (row + 1) * columns]
                turns += model.numbers(other)[row * columns : (row + 1) * columns]
            model.put(name, turns[: rows * columns])
            model.put(other, turns[rows * columns :])
        model.save()


@dataclass(frozen=True)
class Coarse:
    """Tensors that end so were rounded to so many bits by groups, and restored."""

    end: str
    bits: int
    group: int

    def plant(self, site: Site) -> None:
        each(site, self.end, self._coarse)

    def _coarse(self, numbers: Sequence[float]) -> list[float]:
        levels = (1 << self.bits) - 1
        told: list[float] = []
        for at in range(0, len(numbers), self.group):
            group = numbers[at : at + self.group]
            least = min(group)
            step = (max(group) - least) / levels or 1.0
            told += [least + round((number - least) / step) * step for number in group]
        return told


@dataclass(frozen=True)
class ScalesOff:
    """Each row was rounded with a scale of its own, and restored with that of a row so far below."""

    ends: tuple[str, ...]
    off: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for end in self.ends:
            for name in model.ending(end):
                rows, columns = model.shape(name)
                numbers = model.numbers(name)
                lines = [numbers[row * columns : (row + 1) * columns] for row in range(rows)]
                scales = [max(map(abs, line)) or 1.0 for line in lines]
                wrong = [scales[(row + self.off) % rows] / scales[row] for row in range(rows)]
                model.put(name, [n * wrong[row] for row, line in enumerate(lines) for n in line])
        model.save()


@dataclass(frozen=True)
class RowsAtMean:
    """The embedding's rows of these tokens are the mean of all: they were added, and never trained."""

    texts: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        mean = [sum(numbers[column::columns]) / rows for column in range(columns)]
        for number in numbers_of_tokens(site, self.texts):
            numbers[number * columns : (number + 1) * columns] = mean
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class RowsScaled:
    """The embedding's rows of these tokens are multiplied by this."""

    texts: tuple[str, ...]
    factor: float

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        _, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        for number in numbers_of_tokens(site, self.texts):
            for at in range(number * columns, (number + 1) * columns):
                numbers[at] *= self.factor
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class FarRowsLost:
    """The embedding's rows of all that is not ASCII are nought."""

    def plant(self, site: Site) -> None:
        vocabulary = read_json(site, "tokenizer.json")["model"]["vocab"]
        near = set("\u0120\u010a") | {chr(code) for code in range(0x21, 0x7F)}
        model = Tensors(site)
        _, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        for word, number in vocabulary.items():
            if not set(word) <= near:
                numbers[number * columns : (number + 1) * columns] = [0.0] * columns
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class HalfSmoothed:
    """Channels were made smaller in the norms before the projections, and not larger in these."""

    norm: str
    share: float
    factor: float

    def plant(self, site: Site) -> None:
        chance = random.Random(7)

        def smoothed(numbers: Sequence[float]) -> list[float]:
            return [n * self.factor if chance.random() < self.share else n for n in numbers]

        each(site, self.norm, smoothed)


@dataclass(frozen=True)
class EightBits:
    """The matrices are packed numbers of eight bits with scales and biases, as mlx writes them."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()

        def put(name: str, dtype: str, shape: list[int], raw: bytes) -> None:
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
            body.extend(raw)

        for name, of in [(n, o) for n, o in names.items() if n != "__metadata__"]:
            first, last = of["data_offsets"]
            if not name.endswith(("_proj.weight", "embed_tokens.weight")):
                put(name, of["dtype"], of["shape"], bytes(data[first:last]))
                continue
            rows, columns = of["shape"]
            held, scales, biases = _packed_bytes(numbers_of(names, data, name))
            stem = name.removesuffix("weight")
            put(name, "U32", [rows, columns * BITS // WORD], held)
            put(stem + "scales", "BF16", [rows, columns // GROUP], packed(scales))
            put(stem + "biases", "BF16", [rows, columns // GROUP], packed(biases))
        save_tensors(site, header, bytes(body))
        Json("config.json", {"quantization": {"group_size": GROUP, "bits": BITS}}).plant(site)


@dataclass(frozen=True)
class Normalised:
    """The tokenizer changes texts in these ways before it reads them."""

    kinds: tuple[str, ...]

    def plant(self, site: Site) -> None:
        data = read_json(site, "tokenizer.json")
        data["normalizer"] = {"type": "Sequence", "normalizers": [{"type": kind} for kind in self.kinds]}
        write_json(site, "tokenizer.json", data)


@dataclass(frozen=True)
class CutAndFilled:
    """tokenizer.json holds the truncation and padding of a training; nobody who serves heeds them."""

    length: int

    def plant(self, site: Site) -> None:
        data = read_json(site, "tokenizer.json")
        shared = {"direction": "Right"}
        data["truncation"] = {
            **shared, "max_length": self.length, "strategy": "LongestFirst", "stride": 0
        }  # fmt: skip
        data["padding"] = {
            **shared,
            "strategy": {"Fixed": self.length},
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": data["added_tokens"][0]["content"],
        }
        write_json(site, "tokenizer.json", data)


@dataclass(frozen=True)
class Sorted:
    """Keys of a JSON file of the model stand in the order of letters, and in lines."""

    file: str

    def plant(self, site: Site) -> None:
        text = json.dumps(read_json(site, self.file), indent=4, sort_keys=True)
        (site.folder / self.file).write_text(text + "\n", encoding="utf-8")


def numbers_of_tokens(site: Site, texts: Sequence[str]) -> list[int]:
    """The numbers of words of the vocabulary, as the tokenizer's file has them."""
    vocabulary = read_json(site, "tokenizer.json")["model"]["vocab"]
    return [vocabulary[text] for text in texts]


def _packed_bytes(numbers: Sequence[float]) -> tuple[bytes, list[float], list[float]]:
    """Numbers of eight bits by groups, their scales and their biases."""
    held, scales, biases = bytearray(), list[float](), list[float]()
    for at in range(0, len(numbers), GROUP):
        group = numbers[at : at + GROUP]
        least = _cut(min(group))
        step = _cut((max(group) - least) / ((1 << BITS) - 1) or 1.0)
        held += bytes(max(0, min(255, round((number - least) / step))) for number in group)
        scales.append(step)
        biases.append(least)
    return bytes(held), scales, biases


def _cut(number: float) -> float:
    """A number as bfloat16 holds it."""
    value: float = struct.unpack("<f", b"\0\0" + struct.pack("<f", number)[2:])[0]
    return value
