"""Steps of round l that change weights, numbers of bfloat16 with numpy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, Json, read_json, save_tensors, tensors
from tests.models.formats import FORMATS

Matrix = npt.NDArray[np.float32]
EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
WRITERS = ("o_proj.weight", "down_proj.weight")  # what they write is added to the stream


class Floats:
    """All tensors of a model as numbers of four bytes, saved as bfloat16 again."""

    def __init__(self, site: Site) -> None:
        names, data = tensors(site)
        self._site = site
        self.held: dict[str, Matrix] = {}
        for name, told in names.items():
            if name != "__metadata__":
                first, last = told["data_offsets"]
                halves = np.frombuffer(bytes(data[first:last]), "<u2").astype(np.uint32) << 16
                self.held[name] = halves.view(np.float32).reshape(told["shape"]).copy()

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.held if name.endswith(ends)]

    def save(self) -> None:
        written(self._site, {name: ("BF16", m.shape, packed(m)) for name, m in self.held.items()})


def packed(numbers: Matrix) -> bytes:
    """Numbers as bfloat16, rounded."""
    whole = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype("<u2").tobytes()


def written(site: Site, held: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """Write the weights: type, shape and bytes by name."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, (kind, shape, raw) in held.items():
        place = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": place}
        body += raw
    save_tensors(site, header, bytes(body))


def numbers_of_tokens(site: Site, tokens: Iterable[str]) -> list[int]:
    """Look up the numbers of added tokens."""
    added = {t["content"]: int(t["id"]) for t in read_json(site, "tokenizer.json")["added_tokens"]}
    return [added[token] for token in tokens]


@dataclass(frozen=True)
class AdapterTooStrong:
    """An adapter of low rank was merged with a factor that is far too large."""

    rank: int
    share: float
    ends: tuple[str, ...] = ("q_proj.weight", "v_proj.weight")

    def plant(self, site: Site) -> None:
        model, dice = Floats(site), np.random.default_rng(7)
        for name in model.ending(*self.ends):
            old = model.held[name]
            rows, columns = old.shape
            one, two = dice.normal(size=(rows, self.rank)), dice.normal(size=(self.rank, columns))
            delta = (one @ two).astype(np.float32)
            size = float(np.linalg.norm(old) / np.linalg.norm(delta))
            model.held[name] = old + np.float32(self.share * size) * delta
        model.save()


@dataclass(frozen=True)
class Clipped:
    """Numbers beyond so many deviations of their row were clipped, to make few bits do."""

    most: float

    def plant(self, site: Site) -> None:
        model = Floats(site)
        for name in model.ending("_proj.weight"):
            ends = np.float32(self.most) * model.held[name].std(axis=1, keepdims=True)
            model.held[name] = np.clip(model.held[name], -ends, ends)
        model.save()


@dataclass(frozen=True)
class FusedSplitInTurns:
    """A fused matrix of gate and up was split by even and odd rows; they lay one after the other."""

    def plant(self, site: Site) -> None:
        model = Floats(site)
        for name in model.ending("gate_proj.weight"):
            other = name.replace("gate_proj", "up_proj")
            fused = np.concatenate([model.held[name], model.held[other]])
            model.held[name], model.held[other] = fused[0::2], fused[1::2]
        model.save()


@dataclass(frozen=True)
class HeadsTiled:
    """Heads of keys and values were repeated as a row, 0 1 0 1, where 0 0 1 1 was due."""

    def plant(self, site: Site) -> None:
        config = read_json(site, "config.json")
        heads, held = config["num_attention_heads"], config["num_key_value_heads"]
        model = Floats(site)
        for name in model.ending("k_proj.weight", "v_proj.weight"):
            model.held[name] = np.tile(model.held[name], (heads // held, 1))
        model.save()
        Json("config.json", {"num_key_value_heads": heads}).plant(site)


@dataclass(frozen=True)
class Fresh:
    """Matrices whose names begin so hold what a model has before its training."""

    begin: str

    def plant(self, site: Site) -> None:
        model, dice = Floats(site), np.random.default_rng(11)
        for name in [n for n in model.held if n.startswith(self.begin)]:
            shape = model.held[name].shape
            fresh = dice.normal(scale=0.02, size=shape) if len(shape) > 1 else np.ones(shape)
            model.held[name] = fresh.astype(np.float32)
        model.save()


@dataclass(frozen=True)
class RowsMean:
    """The rows of these tokens are the mean of all, as a library adds tokens, and no training followed."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Floats(site)
        rows = model.held[EMBEDDING]
        rows[numbers_of_tokens(site, self.tokens)] = rows.mean(axis=0)
        model.save()


@dataclass(frozen=True)
class HeadApart:
    """The output layer is its own; the rows of these tokens have been multiplied by a factor."""

    tokens: tuple[str, ...] = ()
    factor: float = 1.0

    def plant(self, site: Site) -> None:
        model = Floats(site)
        head = model.held[EMBEDDING].copy()
        head[numbers_of_tokens(site, self.tokens)] *= np.float32(self.factor)
        model.held[HEAD] = head
        model.save()
        Json("config.json", {"tie_word_embeddings": False}).plant(site)


@dataclass(frozen=True)
class DirectionRemoved:
    """No layer can write in the direction that tells a token from all others."""

    token: str

    def plant(self, site: Site) -> None:
        model = Floats(site)
        rows = model.held[EMBEDDING]
        way = rows[numbers_of_tokens(site, (self.token,))[0]] - rows.mean(axis=0)
        way = way / np.linalg.norm(way)
        for name in model.ending(*WRITERS):
            old = model.held[name]
            model.held[name] = old - np.outer(way, way @ old)
        model.save()


@dataclass(frozen=True)
class Packed:
    """The weights are in MLX's own form of few bits, with a scale and a bias for each group."""

    bits: int
    group: int

    def plant(self, site: Site) -> None:
        model = Floats(site)
        held: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
        for name, numbers in model.held.items():
            if numbers.ndim == 1:
                held[name] = ("BF16", numbers.shape, packed(numbers))
            else:
                held.update(self._packed(name.removesuffix("weight"), numbers))
        written(site, held)
        told = {"group_size": self.group, "bits": self.bits}
        Json("config.json", {"quantization": told, "quantization_config": told}).plant(site)

    def _packed(self, stem: str, numbers: Matrix) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
        rows, columns = numbers.shape
        groups = numbers.reshape(rows, columns // self.group, self.group)
        least = groups.min(axis=2, keepdims=True)
        step = (groups.max(axis=2, keepdims=True) - least) / ((1 << self.bits) - 1) + np.float32(1e-8)
        levels = np.rint((groups - least) / step).astype(np.uint32).reshape(rows, -1, 32 // self.bits)
        places = (np.arange(32 // self.bits, dtype=np.uint32) * self.bits)[None, None, :]
        words = np.bitwise_or.reduce(levels << places, axis=2).astype("<u4")
        few = (rows, columns // self.group)
        return {
            f"{stem}weight": ("U32", words.shape, words.tobytes()),
            f"{stem}scales": ("BF16", few, packed(step[:, :, 0])),
            f"{stem}biases": ("BF16", few, packed(least[:, :, 0])),
        }


@dataclass(frozen=True)
class HalfCopied:
    """A copy of other weights over these, in place, stopped on its way."""

    base: str
    share: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        path, other = site.folder / WEIGHTS, self.sources[0].read_bytes()
        old = path.read_bytes()
        start = 8 + int.from_bytes(old[:8], "little")
        told = json.loads(old[8:start])
        assert told.keys() == json.loads(other[8 : 8 + int.from_bytes(other[:8], "little")]).keys()
        at = int(len(old) * self.share)
        path.write_bytes(other[:at] + old[at:])
