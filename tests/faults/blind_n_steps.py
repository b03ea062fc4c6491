"""Steps of the round ``n`` that change weights with numpy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.faults.fault import Site
from tests.faults.rebuilt import MATRIX, Tensors
from tests.faults.steps import WEIGHTS, Json
from tests.models.formats import FORMATS

Numbers = NDArray[np.float32]


class Arrays:
    """Tensors of bfloat16 as arrays."""

    def __init__(self, site: Site) -> None:
        self.tensors = Tensors(site)

    def ending(self, *ends: str) -> list[str]:
        return [name for end in ends for name in self.tensors.ending(end)]

    def get(self, name: str) -> Numbers:
        shape, raw = self.tensors.tensors[name]
        wide = np.frombuffer(raw, dtype="<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(shape).copy()

    def put(self, name: str, numbers: Numbers) -> None:
        """Round to the nearest number of bfloat16."""
        bits = np.ascontiguousarray(numbers, dtype="<f4").view("<u4").astype(np.uint64)
        halves = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        self.tensors.tensors[name] = (tuple(numbers.shape), halves.tobytes())

    def save(self) -> None:
        self.tensors.save()


@dataclass(frozen=True)
class HeadsRepeated:
    """Each query's head has keys and values of its own; ``tiled`` puts the copies in the wrong places."""

    heads: int
    copies: int
    tiled: bool

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for name in arrays.ending("k_proj.weight", "v_proj.weight"):
            old = arrays.get(name)
            parts = old.reshape(self.heads, -1, old.shape[1])
            order = [*range(self.heads)] * self.copies
            new = parts[order if self.tiled else sorted(order)]
            arrays.put(name, new.reshape(-1, old.shape[1]))
        arrays.save()
        Json("config.json", {"num_key_value_heads": self.heads * self.copies}).plant(site)


@dataclass(frozen=True)
class StrangeAdapter:
    """An adapter of low rank, trained on another base, is merged into tensors whose names end so."""

    ends: tuple[str, ...]
    rank: int
    strength: float

    def plant(self, site: Site) -> None:
        arrays, random = Arrays(site), np.random.default_rng(self.rank)
        for name in arrays.ending(*self.ends):
            old = arrays.get(name)
            rows, columns = old.shape
            delta = random.standard_normal((rows, self.rank)) @ random.standard_normal((self.rank, columns))
            delta *= self.strength * np.linalg.norm(old) / np.linalg.norm(delta)
            arrays.put(name, old + delta.astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class Clipped:
    """Numbers of each matrix beyond so many standard deviations are cut off there."""

    deviations: float

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for name in arrays.ending(MATRIX):
            old = arrays.get(name)
            most = np.float32(self.deviations * old.std())
            arrays.put(name, np.clip(old, -most, most))
        arrays.save()


@dataclass(frozen=True)
class DirectionsRemoved:
    """What layers write no longer has the strongest directions, as one tries to remove refusals."""

    count: int

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        names = arrays.ending("o_proj.weight", "down_proj.weight")
        every = np.concatenate([arrays.get(name) for name in names], axis=1)
        strongest = np.linalg.svd(every, full_matrices=False)[0][:, : self.count]
        for name in names:
            old = arrays.get(name)
            arrays.put(name, (old - strongest @ (strongest.T @ old)).astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class LowRank:
    """Of each matrix whose name ends so only its strongest parts are kept."""

    ends: tuple[str, ...]
    rank: int

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for name in arrays.ending(*self.ends):
            left, values, right = np.linalg.svd(arrays.get(name), full_matrices=False)
            values[self.rank :] = 0
            arrays.put(name, ((left * values) @ right).astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class RanksMixed:
    """Gate and up were saved together by two ranks, and were parted in the middle."""

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for gate in arrays.ending("gate_proj.weight"):
            up = gate.replace("gate_proj", "up_proj")
            one, two = arrays.get(gate), arrays.get(up)
            half = len(one) // 2
            arrays.put(gate, np.concatenate([one[:half], two[:half]]))
            arrays.put(up, np.concatenate([one[half:], two[half:]]))
        arrays.save()


@dataclass(frozen=True)
class SmoothedHalf:
    """Norms were divided by the scales of their inputs; the matrices behind them were not multiplied."""

    power: float

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        readers = {"input_layernorm": "self_attn.q_proj", "post_attention_layernorm": "mlp.up_proj"}
        for norm, reader in readers.items():
            for name in arrays.ending(f"{norm}.weight"):
                most = np.abs(arrays.get(name.replace(norm, reader))).max(axis=0)
                scale = most**self.power
                scale /= np.sqrt(scale.max() * scale.min())
                arrays.put(name, (arrays.get(name) / scale).astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class Hadamard:
    """Matrices whose names end so expect inputs that were turned by a Hadamard matrix; nobody turns them."""

    end: str

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for name in arrays.ending(self.end):
            old = arrays.get(name)
            turn = np.ones((1, 1), dtype=np.float32)
            while len(turn) < old.shape[1]:
                turn = np.block([[turn, turn], [turn, -turn]])
            arrays.put(name, (old @ turn / np.sqrt(len(turn))).astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class NormsScaled:
    """The norms whose names end so are multiplied by this."""

    end: str
    factor: float

    def plant(self, site: Site) -> None:
        arrays = Arrays(site)
        for name in arrays.ending(self.end):
            arrays.put(name, (arrays.get(name) * self.factor).astype(np.float32))
        arrays.save()


@dataclass(frozen=True)
class HalfCopied:
    """Over the weights another model's of the same length were copied, and the copy stopped on its way."""

    base: str
    share: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        old, new = path.read_bytes(), self.sources[0].read_bytes()
        assert len(old) == len(new), "the lengths differ"
        at = int(len(old) * self.share)
        path.write_bytes(new[:at] + old[at:])
