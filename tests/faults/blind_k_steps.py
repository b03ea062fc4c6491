"""Steps of the round k: weights that were cut, packed or trained badly, and files that were half copied."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, Json, read_json, save_tensors, tensors
from tests.models.formats import FORMATS

Floats = npt.NDArray[np.float32]
EMBEDDING = "model.embed_tokens.weight"
MATRIX = "_proj.weight"
WORD = 32  # bits


@dataclass(frozen=True)
class LowRank:
    """Of the matrices whose names end so only the largest singular values are kept."""

    ends: tuple[str, ...]
    rank: int

    def plant(self, site: Site) -> None:
        def cut(matrix: Floats) -> Floats:
            left, values, right = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
            kept = (left[:, : self.rank] * values[: self.rank]) @ right[: self.rank]
            return kept.astype(np.float32)

        _each(site, self.ends, cut)


@dataclass(frozen=True)
class Clipped:
    """Numbers of all projections that are further from nought than so many deviations are clipped."""

    deviations: float

    def plant(self, site: Site) -> None:
        def cut(matrix: Floats) -> Floats:
            most = self.deviations * float(matrix.std())
            return np.clip(matrix, -most, most)

        _each(site, (MATRIX,), cut)


@dataclass(frozen=True)
class HeadsTurned:
    """The heads of tensors whose names end so stand in the opposite order."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        size = read_json(site, "config.json")["head_dim"]

        def turned(matrix: Floats) -> Floats:
            heads = matrix.reshape(-1, size, matrix.shape[1])
            return np.ascontiguousarray(heads[::-1]).reshape(matrix.shape)

        _each(site, self.ends, turned)


@dataclass(frozen=True)
class GateUpDealt:
    """Gate and up came fused, half and half, and were taken apart row by row in turns."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for gate in [n for n in names if n.endswith("gate_proj.weight")]:
            up = gate.replace("gate_proj", "up_proj")
            fused = np.concatenate([_read(names, data, gate), _read(names, data, up)])
            _write(names, data, gate, fused[0::2])
            _write(names, data, up, fused[1::2])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class RowsMean:
    """The embedding's rows of these tokens hold the mean of all rows, as new tokens begin with."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        rows = [number for text, number in _added(site).items() if text in self.tokens]

        def meant(matrix: Floats) -> Floats:
            matrix[rows] = matrix.mean(axis=0)
            return matrix

        _each(site, (EMBEDDING,), meant)


@dataclass(frozen=True)
class RowScaled:
    """The embedding's row of this token is so many times as long."""

    token: str
    factor: float

    def plant(self, site: Site) -> None:
        row = _added(site)[self.token]

        def scaled(matrix: Floats) -> Floats:
            matrix[row] *= self.factor
            return matrix

        _each(site, (EMBEDDING,), scaled)


@dataclass(frozen=True)
class Packed:
    """Projections are packed into so few bits as mlx does it, with a scale and a bias for each group."""

    bits: int
    group: int = 32

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()

        def put(name: str, dtype: str, shape: tuple[int, ...], raw: bytes) -> None:
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": place}
            body.extend(raw)

        for name in (n for n in names if n != "__metadata__"):
            if not name.endswith(MATRIX):
                first, last = names[name]["data_offsets"]
                put(name, "BF16", tuple(names[name]["shape"]), bytes(data[first:last]))
                continue
            words, scales, biases = self._packed(_read(names, data, name))
            put(name, "U32", words.shape, words.tobytes())
            put(name.replace(".weight", ".scales"), "BF16", scales.shape, _bytes(scales))
            put(name.replace(".weight", ".biases"), "BF16", biases.shape, _bytes(biases))
        save_tensors(site, header, bytes(body))
        told = {"group_size": self.group, "bits": self.bits}
        Json("config.json", {"quantization": told}).plant(site)

    def _packed(self, matrix: Floats) -> tuple[npt.NDArray[np.uint32], Floats, Floats]:
        rows, columns = matrix.shape
        groups = matrix.reshape(rows, columns // self.group, self.group)
        most = (1 << self.bits) - 1
        biases = _floats(_bytes(groups.min(axis=2)), (rows, columns // self.group))
        wide = (groups.max(axis=2) - biases) / most
        scales = _floats(_bytes(np.maximum(wide, np.float32(1e-6))), biases.shape)
        held = np.rint((groups - biases[..., None]) / scales[..., None]).clip(0, most).astype(np.uint32)
        each = WORD // self.bits
        shifts = (np.arange(each) * self.bits).astype(np.uint32)
        words = (held.reshape(rows, columns // each, each) << shifts).sum(axis=2).astype(np.uint32)
        return words, scales, biases


@dataclass(frozen=True)
class HalfOf:
    """The second half of a file is still that of another of our models: a copy was cut short."""

    base: str
    file: str = WEIGHTS
    share: float = 0.5

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / self.file,)

    def plant(self, site: Site) -> None:
        path, other = site.folder / self.file, self.sources[0].read_bytes()
        new = path.read_bytes()
        at = int(len(new) * self.share)
        path.write_bytes(new[:at] + other[at:])


def _added(site: Site) -> dict[str, int]:
    path = site.folder / "tokenizer.json"
    tokens = json.loads(path.read_text(encoding="utf-8"))["added_tokens"]
    return {token["content"]: token["id"] for token in tokens}


def _each(site: Site, ends: tuple[str, ...], change: Callable[[Floats], Floats]) -> None:
    names, data = tensors(site)
    for name in [n for n in names if n.endswith(ends)]:
        _write(names, data, name, change(_read(names, data, name)))
    save_tensors(site, names, bytes(data))


def _read(names: dict[str, Any], data: bytearray, name: str) -> Floats:
    first, last = names[name]["data_offsets"]
    return _floats(bytes(data[first:last]), tuple(names[name]["shape"]))


def _write(names: dict[str, Any], data: bytearray, name: str, matrix: Floats) -> None:
    first, last = names[name]["data_offsets"]
    data[first:last] = _bytes(matrix)


def _floats(raw: bytes, shape: tuple[int, ...]) -> Floats:
    """Read bfloat16: the upper half of a float of four bytes."""
    wide = np.frombuffer(raw, dtype="<u2").astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).reshape(shape).copy()


def _bytes(numbers: Floats) -> bytes:
    """Write bfloat16, rounded."""
    wide = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    return ((wide + np.uint32(0x8000)) >> np.uint32(16)).astype("<u2").tobytes()
