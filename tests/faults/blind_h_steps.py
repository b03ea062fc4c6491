"""Steps of the round: weights that were damaged in copying, converting or merging, and a machine at odds."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.rebuilt import Tensors
from tests.faults.starting import Module
from tests.faults.steps import WEIGHTS, read_json, save_tensors, tensors

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


@dataclass(frozen=True)
class PagesEmpty:
    """Every so many pages of the weights were never written, as a file looks that was copied around holes."""

    every: int
    size: int = 4096

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for at in range((self.every - 1) * self.size, len(data), self.every * self.size):
            end = min(at + self.size, len(data))
            data[at:end] = bytes(end - at)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class ChunksSwapped:
    """Two neighbouring chunks of a download in parallel were put together in the wrong order."""

    size: int
    first: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        start, middle, end = (self.size * (self.first + n) for n in range(3))
        assert end <= len(data)
        data[start:end] = data[middle:end] + data[start:middle]
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class BitStuck:
    """At each so-manieth byte one bit reads as set, as a broken cell of memory has it in every page."""

    every: int
    offset: int
    bit: int

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = bytearray(path.read_bytes())
        start = 8 + int.from_bytes(data[:8], "little")
        for at in range(start + self.offset, len(data), self.every):
            data[at] |= self.bit
        path.write_bytes(data)


@dataclass(frozen=True)
class AdapterMerged:
    """An adapter of low rank was merged with another scale than it was trained for."""

    scale: float
    ends: tuple[str, ...] = ("q_proj.weight", "v_proj.weight")
    rank: int = 4
    seed: int = 11

    def plant(self, site: Site) -> None:
        rng, model = random.Random(self.seed), Tensors(site)
        for name in [n for end in self.ends for n in model.ending(end)]:
            rows, columns = model.shape(name)
            down = [[rng.gauss(0, columns**-0.5) for _ in range(columns)] for _ in range(self.rank)]
            up = [[rng.gauss(0, self.rank**-0.5) for _ in range(self.rank)] for _ in range(rows)]
            numbers = model.numbers(name)
            for row in range(rows):
                for column in range(columns):
                    moved = sum(up[row][r] * down[r][column] for r in range(self.rank))
                    numbers[row * columns + column] += self.scale * moved
            model.put(name, numbers)
        model.save()


@dataclass(frozen=True)
class RowsMean:
    """The embedding's rows of these added tokens are its mean: new tokens that training never reached."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        mean = [sum(numbers[column::columns]) / rows for column in range(columns)]
        for token in read_json(site, "tokenizer.json")["added_tokens"]:
            if token["content"] in self.tokens:
                numbers[token["id"] * columns : (token["id"] + 1) * columns] = mean
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class HeadTold:
    """The output layer, which is the embedding, lies in the file a second time under its own name."""

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        model.tensors[HEAD] = model.tensors[EMBEDDING]
        model.save()


@dataclass(frozen=True)
class Customised:
    """The engine's Python runs this at its start: an agent's or an administrator's ``sitecustomize``."""

    text: str

    def plant(self, site: Site) -> None:
        Module("sitecustomize", self.text).plant(site)
