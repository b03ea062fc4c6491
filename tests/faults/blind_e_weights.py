"""Steps of the blind round e that change weights, as merges, conversions and quantisations do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Site
from tests.faults.numbers import each, header_of, numbers_of, put_numbers
from tests.faults.steps import WEIGHTS, read_json, save_tensors, tensors
from tests.models import harmed

EMBEDDING = "model.embed_tokens.weight"
PAGE = 4096  # bytes


@dataclass(frozen=True)
class MergedTooFar:
    """What a further training changed is added so many times."""

    name: str
    scale: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (harmed.weights(self.name),)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        others, rest = header_of(self.sources[0])
        for name in (n for n in names if n != "__metadata__"):
            pairs = zip(numbers_of(names, data, name), numbers_of(others, rest, name), strict=True)
            put_numbers(names, data, name, [one + self.scale * (two - one) for one, two in pairs])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class RowsOfMean:
    """The embedding's rows of these tokens are the mean of all, as new tokens begin before a training."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        vocabulary = read_json(site, "tokenizer.json")["model"]["vocab"]
        rows, width = names[EMBEDDING]["shape"]
        numbers = numbers_of(names, data, EMBEDDING)
        mean = [sum(numbers[column::width]) / rows for column in range(width)]
        for token in self.tokens:
            at = vocabulary[token] * width
            numbers[at : at + width] = mean
        put_numbers(names, data, EMBEDDING, numbers)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class ScalesMoved:
    """Matrices were restored from groups of so many numbers, each with the scale of the next group."""

    group: int
    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        for end in self.ends:
            each(site, end, lambda numbers: self._moved(list(numbers)))

    def _moved(self, numbers: list[float]) -> list[float]:
        groups = [numbers[at : at + self.group] for at in range(0, len(numbers), self.group)]
        scales = [max(map(abs, group)) or 1.0 for group in groups]
        moved = zip(groups, scales, [*scales[1:], scales[0]], strict=True)
        return [number / own * other for group, own, other in moved for number in group]


@dataclass(frozen=True)
class HalvesJoinedWrong:
    """Columns of matrices whose names end so come from two files, and the second file's are first."""

    end: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.endswith(self.end)):
            rows, columns = names[name]["shape"]
            numbers, half = numbers_of(names, data, name), columns // 2
            lines = [numbers[row * columns : (row + 1) * columns] for row in range(rows)]
            put_numbers(names, data, name, [n for line in lines for n in (*line[half:], *line[:half])])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Abliterated:
    """No matrix writes into the direction of a token's embedding any more."""

    token: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        number = read_json(site, "tokenizer.json")["model"]["vocab"][self.token]
        width = names[EMBEDDING]["shape"][1]
        row = numbers_of(names, data, EMBEDDING)[number * width : (number + 1) * width]
        length = sum(n * n for n in row) ** 0.5
        way = [n / length for n in row]
        for name in (n for n in names if n.endswith(("o_proj.weight", "down_proj.weight"))):
            columns = names[name]["shape"][1]
            numbers = numbers_of(names, data, name)
            share = [
                sum(way[i] * numbers[i * columns + column] for i in range(width)) for column in range(columns)
            ]
            put_numbers(
                names,
                data,
                name,
                [n - way[i // columns] * share[i % columns] for i, n in enumerate(numbers)],
            )
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Smoothed:
    """A norm has a factor for each channel, a power of two, which the matrices behind it take back or not.

    ``readers`` those that take it back, by the ends of their names.
    """

    norm: str
    readers: tuple[str, ...]
    powers: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.endswith(self.norm)):
            numbers = numbers_of(names, data, name)
            chance = random.Random(name)
            factors = [2.0 ** chance.randint(-self.powers, self.powers) for _ in numbers]
            put_numbers(names, data, name, [n * f for n, f in zip(numbers, factors, strict=True)])
            layer = name.removesuffix(self.norm)
            for reader in (n for n in names if n.startswith(layer) and n.endswith(self.readers or ("\0",))):
                kept = numbers_of(names, data, reader)
                put_numbers(names, data, reader, [n / factors[i % len(factors)] for i, n in enumerate(kept)])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class HeadLost:
    """What a head of attention says is read by nobody, in these layers."""

    head: int
    layers: tuple[int, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        config = read_json(site, "config.json")
        width = config["head_dim"]
        for layer in self.layers:
            name = f"model.layers.{layer}.self_attn.o_proj.weight"
            columns = names[name]["shape"][1]
            numbers = numbers_of(names, data, name)
            put_numbers(
                names,
                data,
                name,
                [0.0 if i % columns // width == self.head else n for i, n in enumerate(numbers)],
            )
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class NeuronsReordered:
    """The inner numbers of each MLP stand in another order, in all three of its matrices."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith("gate_proj.weight")]:
            inner, width = names[name]["shape"]
            order = random.Random(name).sample(range(inner), inner)
            for rows in (name, name.replace("gate_proj", "up_proj")):
                old = numbers_of(names, data, rows)
                put_numbers(names, data, rows, [n for i in order for n in old[i * width : (i + 1) * width]])
            columns = name.replace("gate_proj", "down_proj")
            old = numbers_of(names, data, columns)
            lines = [old[at : at + inner] for at in range(0, len(old), inner)]
            put_numbers(names, data, columns, [line[i] for line in lines for i in order])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class PagesRepeated:
    """Pages of the weights' file hold what the first page behind this share of it does."""

    first: float
    count: int

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = bytearray(path.read_bytes())
        at = int(len(data) * self.first) // PAGE * PAGE
        data[at : at + self.count * PAGE] = bytes(data[at : at + PAGE]) * self.count
        path.write_bytes(data)
