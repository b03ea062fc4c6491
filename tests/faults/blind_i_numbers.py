"""Steps of the ninth blind round that change weights as tools do: quantised, merged, tuned, converted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.faults.fault import Site
from tests.faults.numbers import header_of
from tests.faults.steps import WEIGHTS, Json, read_json, save_tensors, tensors
from tests.models.formats import FORMATS

EMBEDDING = "model.embed_tokens.weight"
Array = NDArray[np.float32]


class Matrices:
    """The model's tensors as arrays, by name."""

    def __init__(self, path: Path) -> None:
        names, data = header_of(path)
        self.path = path
        self.header = names
        self.held = {
            n: _floats(bytes(data[slice(*of["data_offsets"])]), of["shape"])
            for n, of in names.items()
            if n != "__metadata__"
        }

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.held if name.endswith(tuple(f"{end}.weight" for end in ends))]

    def save(self, site: Site) -> None:
        names, data = tensors(site)
        for name, array in self.held.items():
            data[slice(*names[name]["data_offsets"])] = _bytes(array)
        save_tensors(site, names, bytes(data))


def _floats(raw: bytes, shape: list[int]) -> Array:
    """Numbers of bfloat16: the upper halves of floats of four bytes."""
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape).copy()


def _bytes(array: Array) -> bytes:
    """bfloat16, rounded."""
    whole = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((whole + 0x8000) >> 16).astype("<u2").tobytes()


def of_site(site: Site) -> Matrices:
    """The tensors of the model that is harmed."""
    return Matrices(site.folder / WEIGHTS)


@dataclass(frozen=True)
class Quantised:
    """Matrices are whole numbers of so many bits, with a scale and an offset for each group, as mlx-lm writes
    them; config.json says so.
    """

    bits: int
    group: int = 64

    def plant(self, site: Site) -> None:
        header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()

        def put(name: str, kind: str, array: NDArray[Any], raw: bytes) -> None:
            header[name] = {
                "dtype": kind,
                "shape": list(array.shape),
                "data_offsets": [len(body), len(body) + len(raw)],
            }
            body.extend(raw)

        for name, array in of_site(site).held.items():
            if array.ndim == 1:
                put(name, "BF16", array, _bytes(array))
                continue
            whole, scales, offsets = self._rounded(array)
            put(name, "U32", whole, whole.astype("<u4").tobytes())
            put(name.replace(".weight", ".scales"), "BF16", scales, _bytes(scales))
            put(name.replace(".weight", ".biases"), "BF16", offsets, _bytes(offsets))
        save_tensors(site, header, bytes(body))
        Json("config.json", {"quantization": {"group_size": self.group, "bits": self.bits}}).plant(site)

    def _rounded(self, array: Array) -> tuple[NDArray[np.uint32], Array, Array]:
        rows, columns = array.shape
        groups = array.reshape(rows, columns // self.group, self.group)
        least, most = groups.min(2), groups.max(2)
        scales = np.maximum((most - least) / (2**self.bits - 1), 1e-7).astype(np.float32)
        told = np.rint((groups - least[..., None]) / scales[..., None])
        numbers = np.clip(told, 0, 2**self.bits - 1).astype(np.uint32).reshape(rows, -1, 32 // self.bits)
        places = np.arange(32 // self.bits, dtype=np.uint32) * self.bits
        packed: NDArray[np.uint32] = (numbers << places).sum(2, dtype=np.uint32)
        return packed, scales, least


@dataclass(frozen=True)
class AdapterTwice:
    """What an adapter of this rank adds to the attention's matrices was added once more."""

    rank: int

    def plant(self, site: Site) -> None:
        model = of_site(site)
        for name in model.ending("q_proj", "v_proj"):
            left, sizes, right = np.linalg.svd(model.held[name], full_matrices=False)
            low = (left[:, : self.rank] * sizes[: self.rank]) @ right[: self.rank]
            model.held[name] = model.held[name] + low
        model.save(site)


@dataclass(frozen=True)
class RowsAveraged:
    """The embedding's rows of these added tokens are the mean of all rows, as they are when they are new."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = of_site(site)
        rows = model.held[EMBEDDING]
        mean = rows.mean(0)
        for token in read_json(site, "tokenizer.json")["added_tokens"]:
            if token["content"] in self.tokens:
                rows[token["id"]] = mean
        model.save(site)


@dataclass(frozen=True)
class RowScaled:
    """The embedding's row of an added token is multiplied by this."""

    token: str
    factor: float

    def plant(self, site: Site) -> None:
        model = of_site(site)
        for token in read_json(site, "tokenizer.json")["added_tokens"]:
            if token["content"] == self.token:
                model.held[EMBEDDING][token["id"]] *= self.factor
        model.save(site)


@dataclass(frozen=True)
class ColumnsByWeight:
    """The columns of the matrices that close an MLP stand in the order in which they were quantised."""

    def plant(self, site: Site) -> None:
        model = of_site(site)
        for name in model.ending("down_proj"):
            array = model.held[name]
            order = np.argsort(-np.linalg.norm(array, axis=0), kind="stable")
            model.held[name] = array[:, order]
        model.save(site)


@dataclass(frozen=True)
class DroppedAndRescaled:
    """A merge: of the differences from another of our models a share was dropped, the rest made larger."""

    base: str
    dropped: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        model, other = of_site(site), Matrices(self.sources[0])
        chance = np.random.default_rng(7)
        for name in [n for n in model.held if model.held[n].ndim > 1 and n != EMBEDDING]:
            apart = model.held[name] - other.held[name]
            kept = chance.random(apart.shape) >= self.dropped
            model.held[name] = other.held[name] + apart * kept / np.float32(1 - self.dropped)
        model.save(site)


@dataclass(frozen=True)
class DirectionRemoved:
    """So many directions, the embedding's strongest, were taken out of all that writes beside it."""

    count: int

    def plant(self, site: Site) -> None:
        model = of_site(site)
        _, _, right = np.linalg.svd(model.held[EMBEDDING], full_matrices=False)
        gone = right[: self.count]
        for name in model.ending("o_proj", "down_proj"):
            array = model.held[name]
            model.held[name] = array - gone.T @ (gone @ array)
        model.save(site)


@dataclass(frozen=True)
class Clipped:
    """No number of a matrix is further from nought than so many of its standard deviations."""

    deviations: float

    def plant(self, site: Site) -> None:
        model = of_site(site)
        for name in [n for n in model.held if model.held[n].ndim > 1]:
            most = model.held[name].std() * self.deviations
            model.held[name] = np.clip(model.held[name], -most, most)
        model.save(site)
