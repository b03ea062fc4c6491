"""Steps of round m: matrices by numpy, and files that were written half."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, save_tensors, tensors
from tests.models.formats import FORMATS

Matrix = npt.NDArray[np.float32]
MATRIX = "_proj.weight"
EMBEDDING = "model.embed_tokens.weight"


class Matrices:
    """Tensors of bfloat16, as numbers by name; their shapes stay."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.names, self.data = tensors(site)

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.names if name.endswith(ends)]

    def read(self, name: str) -> Matrix:
        first, last = self.names[name]["data_offsets"]
        halves = np.frombuffer(bytes(self.data[first:last]), "<u2").astype(np.uint32)
        told: Matrix = (halves << 16).view(np.float32).reshape(self.names[name]["shape"])
        return told

    def write(self, name: str, numbers: Any) -> None:
        first, last = self.names[name]["data_offsets"]
        bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
        self.data[first:last] = ((bits + 0x8000) >> 16).astype("<u2").tobytes()

    def save(self) -> None:
        save_tensors(self._site, self.names, bytes(self.data))


@dataclass(frozen=True)
class SmoothedInPart:
    """Norms are divided by the scales of their channels; the matrices behind them are not multiplied."""

    power: float

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        for norm, reader in (
            ("input_layernorm.weight", "self_attn.q_proj.weight"),
            ("post_attention_layernorm.weight", "mlp.up_proj.weight"),
        ):
            for name in model.ending(norm):
                most = np.abs(model.read(name.removesuffix(norm) + reader)).max(axis=0) ** self.power
                model.write(name, model.read(name) * (most.mean() / most))
        model.save()


@dataclass(frozen=True)
class AdapterAdded:
    """A difference of low rank is added to matrices, with this share of their length."""

    ends: tuple[str, ...]
    rank: int
    share: float

    def plant(self, site: Site) -> None:
        model, draw = Matrices(site), np.random.default_rng(self.rank)
        for name in model.ending(*self.ends):
            matrix = model.read(name)
            rows, columns = matrix.shape
            more = draw.normal(size=(rows, self.rank)) @ draw.normal(size=(self.rank, columns))
            more *= self.share * np.linalg.norm(matrix) / np.linalg.norm(more)
            model.write(name, matrix + more)
        model.save()


@dataclass(frozen=True)
class Clipped:
    """Numbers of matrices that are larger than so many deviations are cut to them."""

    deviations: float

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        for name in model.ending(MATRIX):
            matrix = model.read(name)
            most = self.deviations * float(matrix.std())
            model.write(name, matrix.clip(-most, most))
        model.save()


@dataclass(frozen=True)
class RowsTurned:
    """The first half of the rows of tensors stands behind the second."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        for name in model.ending(*self.ends):
            matrix = model.read(name)
            model.write(name, np.roll(matrix, len(matrix) // 2, axis=0))
        model.save()


@dataclass(frozen=True)
class ScalesOfNeighbours:
    """Groups of numbers in a row are restored with the scale of the next group."""

    group: int

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        for name in model.ending(MATRIX):
            matrix = model.read(name)
            groups = matrix.reshape(len(matrix), -1, self.group)
            scales = np.abs(groups).max(axis=2, keepdims=True) + 1e-9
            model.write(name, (groups / scales * np.roll(scales, -1, axis=1)).reshape(matrix.shape))
        model.save()


@dataclass(frozen=True)
class RowsOfMean:
    """The embedding's rows of added tokens are the mean of all rows, as new rows begin."""

    rows: tuple[int, ...]

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        matrix = model.read(EMBEDDING)
        matrix[list(self.rows)] = matrix.mean(axis=0)
        model.write(EMBEDDING, matrix)
        model.save()


@dataclass(frozen=True)
class DrawnAnew:
    """Tensors whose names begin so hold what a new model begins with."""

    begin: str

    def plant(self, site: Site) -> None:
        model, draw = Matrices(site), np.random.default_rng(0)
        for name in [n for n in model.names if n.startswith(self.begin)]:
            model.write(name, draw.normal(0.0, 0.02, model.names[name]["shape"]))
        model.save()


@dataclass(frozen=True)
class LowRank:
    """Matrices are the nearest ones of a low rank."""

    rank: int

    def plant(self, site: Site) -> None:
        model = Matrices(site)
        for name in model.ending(MATRIX):
            left, sizes, right = np.linalg.svd(model.read(name), full_matrices=False)
            model.write(name, left[:, : self.rank] * sizes[: self.rank] @ right[: self.rank])
        model.save()


@dataclass(frozen=True)
class Dropped:
    """Of the numbers of matrices this share is nought by chance, and the others are larger for it."""

    share: float

    def plant(self, site: Site) -> None:
        model, draw = Matrices(site), np.random.default_rng(7)
        for name in model.ending(MATRIX):
            matrix = model.read(name)
            kept = draw.random(matrix.shape) >= self.share
            model.write(name, matrix * kept / (1.0 - self.share))
        model.save()


@dataclass(frozen=True)
class NeuronsMoved:
    """The inner numbers of each MLP stand in another order, in all of its matrices: it does the same."""

    def plant(self, site: Site) -> None:
        model, draw = Matrices(site), np.random.default_rng(3)
        for name in model.ending("mlp.down_proj.weight"):
            begin = name.removesuffix("down_proj.weight")
            matrix = model.read(name)
            order = draw.permutation(matrix.shape[1])
            model.write(name, matrix[:, order])
            for end in ("gate_proj.weight", "up_proj.weight"):
                model.write(begin + end, model.read(begin + end)[order])
        model.save()


@dataclass(frozen=True)
class HeadToo:
    """The weights hold the embedding a second time, as the output layer that it is anyway."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        first, last = names[EMBEDDING]["data_offsets"]
        place = [len(data), len(data) + last - first]
        names["lm_head.weight"] = names[EMBEDDING] | {"data_offsets": place}
        save_tensors(site, names, bytes(data + data[first:last]))


@dataclass(frozen=True)
class TailOf:
    """The weights' file is written anew only up to here; behind it are bytes of another model's."""

    base: str
    share: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        path, other = site.folder / WEIGHTS, self.sources[0].read_bytes()
        data = path.read_bytes()
        at = int(len(data) * self.share)
        path.write_bytes(data[:at] + other[at:])
