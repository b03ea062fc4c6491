"""Steps of this round: weights that a copy, a disk or a script damaged."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.numbers import numbers_of, put_numbers
from tests.faults.steps import WEIGHTS, read_json, save_tensors, tensors

EMBEDDING = "model.embed_tokens.weight"
MATRIX = 2  # dimensions


@dataclass(frozen=True)
class Resumed:
    """A download went on at a wrong place: so many bytes before it came twice, and the last ones never."""

    share: float
    again: int

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = path.read_bytes()
        place = int(len(data) * self.share)
        twice = data[:place] + data[place - self.again :]
        path.write_bytes(twice[: len(data)])


@dataclass(frozen=True)
class StripesLost:
    """A disk of a striped set is gone: each ``every``-th stripe, behind the first, holds nothing."""

    size: int
    every: int

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = bytearray(path.read_bytes())
        for at in range(self.size * (self.every - 1), len(data), self.size * self.every):
            end = min(at + self.size, len(data))
            data[at:end] = bytes(end - at)
        path.write_bytes(data)


@dataclass(frozen=True)
class RowsAveraged:
    """Rows of these added tokens are the mean of all, as when a vocabulary is resized."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        added = read_json(site, "tokenizer.json")["added_tokens"]
        names, data = tensors(site)
        rows, width = names[EMBEDDING]["shape"]
        numbers = numbers_of(names, data, EMBEDDING)
        mean = [sum(numbers[column::width]) / rows for column in range(width)]
        for token in added:
            if token["content"] in self.tokens:
                at = token["id"] * width
                numbers[at : at + width] = mean
        put_numbers(names, data, EMBEDDING, numbers)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class HalfGathered:
    """Of each matrix whose name begins so only the first half of the rows was saved."""

    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name, told in names.items():
            if name.startswith(self.begin) and len(told["shape"]) == MATRIX:
                first, last = told["data_offsets"]
                middle = first + (last - first) // 2
                data[middle:last] = bytes(last - middle)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Clipped:
    """No number of the tensors whose names end so is further from nought than this."""

    end: str
    most: float

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.endswith(self.end)):
            numbers = numbers_of(names, data, name)
            put_numbers(names, data, name, [max(-self.most, min(self.most, n)) for n in numbers])
        save_tensors(site, names, bytes(data))
