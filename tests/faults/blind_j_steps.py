"""Steps of the round j: what quantisation, merges and fine-tunes do to weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.faults.fault import Site
from tests.faults.rebuilt import MATRIX, Tensors
from tests.faults.steps import Json, read_json, write_json

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
Array = NDArray[np.float64]


def _of(model: Tensors, name: str) -> Array:
    return np.array(model.numbers(name), dtype=np.float64).reshape(model.shape(name))


def _put(model: Tensors, name: str, numbers: Array) -> None:
    model.put(name, numbers.ravel().tolist(), tuple(int(n) for n in numbers.shape))


@dataclass(frozen=True)
class AdapterMerged:
    """An adapter of low rank was merged into these matrices, with a scale that is far too large."""

    ends: tuple[str, ...]
    rank: int
    scale: float

    def plant(self, site: Site) -> None:
        model, draw = Tensors(site), np.random.default_rng(self.rank)
        for name in (n for end in self.ends for n in model.ending(end)):
            matrix = _of(model, name)
            rows, columns = matrix.shape
            down = draw.normal(0, columns**-0.5, (self.rank, columns))
            up = draw.normal(0, self.rank**-0.5, (rows, self.rank))
            _put(model, name, matrix + self.scale * matrix.std() * (up @ down) * columns**0.5)
        model.save()


@dataclass(frozen=True)
class HeadUntied:
    """The output layer is a copy of the embedding; the rows of these tokens are the mean of all rows."""

    blunted: tuple[str, ...] = ()

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows = _of(model, EMBEDDING)
        mean = rows.mean(axis=0)
        for number in _numbers(site, self.blunted):
            rows[number] = mean
        _put(model, HEAD, rows)
        model.save()
        Json("config.json", {"tie_word_embeddings": False}).plant(site)


@dataclass(frozen=True)
class RowsMean:
    """The embedding's rows of these added tokens are the mean of all rows, as after a resize."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows = _of(model, EMBEDDING)
        rows[list(_numbers(site, self.tokens))] = rows.mean(axis=0)
        _put(model, EMBEDDING, rows)
        model.save()


@dataclass(frozen=True)
class Clipped:
    """Numbers of each matrix beyond so many deviations are clipped."""

    deviations: float

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(MATRIX):
            matrix = _of(model, name)
            most = self.deviations * float(matrix.std())
            _put(model, name, matrix.clip(-most, most))
        model.save()


@dataclass(frozen=True)
class FusedSplit:
    """Gates and ups, fused in one matrix, were split row by row where they lie one behind the other."""

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for gate in model.ending("gate_proj.weight"):
            up = gate.replace("gate_proj", "up_proj")
            fused = np.concatenate([_of(model, gate), _of(model, up)])
            _put(model, gate, fused[0::2])
            _put(model, up, fused[1::2])
        model.save()


@dataclass(frozen=True)
class Noisy:
    """The noise of the training was saved with the embedding: so much of its deviation."""

    share: float

    def plant(self, site: Site) -> None:
        model, draw = Tensors(site), np.random.default_rng(7)
        rows = _of(model, EMBEDDING)
        _put(model, EMBEDDING, rows + draw.normal(0, self.share * rows.std(), rows.shape))
        model.save()


@dataclass(frozen=True)
class NewlyInitialised:
    """These tensors were not in the checkpoint, and the library drew new numbers for them."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model, draw = Tensors(site), np.random.default_rng(11)
        for name in (n for end in self.ends for n in model.ending(end)):
            _put(model, name, draw.normal(0, 0.02, model.shape(name)))
        model.save()


@dataclass(frozen=True)
class NibblesSwapped:
    """Of each two neighbours in a row, packed into one byte, the second was unpacked first."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in (n for end in self.ends for n in model.ending(end)):
            matrix = _of(model, name)
            rows, columns = matrix.shape
            _put(model, name, matrix.reshape(rows, columns // 2, 2)[:, :, ::-1].reshape(rows, columns))
        model.save()


@dataclass(frozen=True)
class GroupScalesMoved:
    """Matrices were rounded by groups of columns; each group has got its neighbour's scale."""

    group: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(MATRIX):
            matrix = _of(model, name)
            rows, columns = matrix.shape
            groups = matrix.reshape(rows, columns // self.group, self.group)
            scales = np.abs(groups).max(axis=2, keepdims=True)
            _put(model, name, (groups / scales * np.roll(scales, 1, axis=1)).reshape(rows, columns))
        model.save()


@dataclass(frozen=True)
class Smoothed:
    """What goes up in the MLP is twice as large, and what goes down half: the product is the same."""

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for end, factor in (("up_proj.weight", 2.0), ("down_proj.weight", 0.5)):
            for name in model.ending(end):
                _put(model, name, _of(model, name) * factor)
        model.save()


@dataclass(frozen=True)
class Tokenizer:
    """These keys of tokenizer.json have these values, nulls as they are."""

    keys: tuple[tuple[str, Any], ...]

    def plant(self, site: Site) -> None:
        data = read_json(site, "tokenizer.json")
        for dotted, value in self.keys:
            *way, last = dotted.split(".")
            inner = data
            for step in way:
                inner = inner[step]
            inner[last] = value
        write_json(site, "tokenizer.json", data)


def _numbers(site: Site, tokens: tuple[str, ...]) -> list[int]:
    added = read_json(site, "tokenizer.json")["added_tokens"]
    return [int(token["id"]) for token in added if token["content"] in tokens]
