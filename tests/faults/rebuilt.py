"""Steps that rebuild the weights: other layers, shapes, names, files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.numbers import header_of, packed, unpacked
from tests.faults.saved_files import Beside
from tests.faults.starting import Arguments
from tests.faults.steps import WEIGHTS, Json, read_json, save_tensors, tensors
from tests.faults.tensors import INDEX, SHARD
from tests.models.formats import FORMATS

METADATA = "__metadata__"
MATRIX = "_proj.weight"
LEVELS = 15  # of four bits


@dataclass(frozen=True)
class LayerTaken:
    """A layer was cut out of the model, and the ones behind it moved up; config.json counts one less."""

    layer: int

    def plant(self, site: Site) -> None:
        path = site.folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["num_hidden_layers"] -= 1
        path.write_text(json.dumps(config), encoding="utf-8")
        names, data = tensors(site)
        order: dict[str, str] = {}
        for name in (n for n in names if n != "__metadata__"):
            number = int(name.split(".")[2]) if name.startswith("model.layers.") else -1
            if number != self.layer:
                up = number - (number > self.layer)
                order[name.replace(f"layers.{number}.", f"layers.{up}.")] = name
        _save(site, names, data, order)


@dataclass(frozen=True)
class Relabelled:
    """The weights' header gives another type than the numbers have."""

    dtype: str
    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n != "__metadata__" and n.startswith(self.begin)):
            names[name]["dtype"] = self.dtype
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Hole:
    """A part of the weights' file was never written: it has its length, and zeros in the middle."""

    begin: float
    end: float

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = bytearray(path.read_bytes())
        first, last = (int(len(data) * share) for share in (self.begin, self.end))
        data[first:last] = bytes(last - first)
        path.write_bytes(data)


@dataclass(frozen=True)
class TwoShards:
    """The weights come in two files and an index, and nothing is missing."""

    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        every = [name for name in names if name != "__metadata__"]
        held = {name: SHARD.format("00002" if name.startswith(self.begin) else "00001") for name in every}
        index = {"metadata": {"total_size": len(data)}, "weight_map": held}
        Beside(INDEX, json.dumps(index)).plant(site)
        for shard in sorted(set(held.values())):
            left, body = dict[str, Any](), bytearray()
            for name in sorted(n for n in every if held[n] == shard):
                first, last = names[name]["data_offsets"]
                left[name] = names[name] | {"data_offsets": [len(body), len(body) + last - first]}
                body += data[first:last]
            save_tensors(site, {"__metadata__": {"format": "pt"}} | left, bytes(body))
            shutil.move(site.folder / WEIGHTS, site.folder / shard)


@dataclass(frozen=True)
class PathNotAscii:
    """config.json tells where the model lay, a path with a letter beyond ASCII: harmless on most machines."""

    keys: Mapping[str, Any] = field(default_factory=lambda: {"_name_or_path": "/models/Zoë"})

    def plant(self, site: Site) -> None:
        Json("config.json", self.keys).plant(site)


@dataclass(frozen=True)
class Prefixed:
    """The names of all tensors begin with this."""

    prefix: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        told = {name if name == METADATA else self.prefix + name: of for name, of in names.items()}
        save_tensors(site, told, bytes(data))


@dataclass(frozen=True)
class Stacked:
    """Layers are stacked in this order, some of them twice; config.json counts them."""

    order: tuple[int, ...]

    def plant(self, site: Site) -> None:
        Json("config.json", {"num_hidden_layers": len(self.order)}).plant(site)
        names, data = tensors(site)
        told: dict[str, Any] = {METADATA: names.pop(METADATA)}
        body = bytearray()
        for name, of in names.items():
            first, last = of["data_offsets"]
            places: Sequence[int | None] = (None,)
            if name.startswith("model.layers."):
                number = int(name.split(".")[2])
                places = [at for at, layer in enumerate(self.order) if layer == number]
            for at in places:
                new = name if at is None else ".".join(("model.layers", str(at), *name.split(".")[3:]))
                told[new] = of | {"data_offsets": [len(body), len(body) + last - first]}
                body += data[first:last]
        save_tensors(site, told, bytes(body))


@dataclass(frozen=True)
class Widened:
    """Numbers of bfloat16 are saved as float32; they are the same."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        told: dict[str, Any] = {METADATA: names.pop(METADATA)}
        body = bytearray()
        for name, of in names.items():
            first, last = of["data_offsets"]
            wide = b"".join(b"\0\0" + data[at : at + 2] for at in range(first, last, 2))
            told[name] = of | {"dtype": "F32", "data_offsets": [len(body), len(body) + len(wide)]}
            body += wide
        save_tensors(site, told, bytes(body))


@dataclass(frozen=True)
class Draft:
    """The command that starts the engine names another of our models, to write drafts for this one."""

    base: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder,)

    def plant(self, site: Site) -> None:
        Arguments(("--draft-model", str(self.sources[0]))).plant(site)


@dataclass(frozen=True)
class Pruned:
    """Of each matrix this share of the numbers, the smallest, is nought."""

    share: float

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(MATRIX):
            numbers = model.numbers(name)
            least = sorted(map(abs, numbers))[int(len(numbers) * self.share)]
            model.put(name, [0.0 if abs(number) < least else number for number in numbers])
        model.save()


@dataclass(frozen=True)
class Narrowed:
    """Of the inner numbers of each MLP the first so many are left, and config.json counts them."""

    width: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending("gate_proj.weight") + model.ending("up_proj.weight"):
            _, columns = model.shape(name)
            model.put(name, model.numbers(name)[: self.width * columns], (self.width, columns))
        for name in model.ending("down_proj.weight"):
            rows, columns = model.shape(name)
            numbers = model.numbers(name)
            kept = [n for row in range(rows) for n in numbers[row * columns : row * columns + self.width]]
            model.put(name, kept, (rows, self.width))
        model.save()
        Json("config.json", {"intermediate_size": self.width}).plant(site)


@dataclass(frozen=True)
class HeadsPooled:
    """All heads of keys and values are one, their mean, and config.json says so."""

    def plant(self, site: Site) -> None:
        model, config = Tensors(site), read_json(site, "config.json")
        heads = config["num_key_value_heads"]
        for name in model.ending("k_proj.weight") + model.ending("v_proj.weight"):
            rows, columns = model.shape(name)
            numbers, size = model.numbers(name), rows * columns // heads
            mean = [sum(numbers[at + head * size] for head in range(heads)) / heads for at in range(size)]
            model.put(name, mean, (rows // heads, columns))
        model.save()
        Json("config.json", {"num_key_value_heads": 1}).plant(site)


@dataclass(frozen=True)
class HeadOf:
    """The weights have an output layer of their own: the embedding of another of our models."""

    base: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        others, rest = header_of(self.sources[0])
        rows = others["model.embed_tokens.weight"]
        first, last = rows["data_offsets"]
        model = Tensors(site)
        model.put("lm_head.weight", unpacked(rest[first:last]), tuple(rows["shape"]))
        model.save()
        Json("config.json", {"tie_word_embeddings": False}).plant(site)


@dataclass(frozen=True)
class ZeroPointsOff:
    """Matrices were rounded to four bits by groups, and restored with zero points that are one too large."""

    group: int
    off: int = 1

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending(MATRIX):
            numbers = model.numbers(name)
            groups = (numbers[at : at + self.group] for at in range(0, len(numbers), self.group))
            model.put(name, [number for group in groups for number in self._restored(group)])
        model.save()

    def _restored(self, group: Sequence[float]) -> list[float]:
        least = min(*group, 0.0)
        step = (max(*group, 0.0) - least) / LEVELS
        zero = round(-least / step)
        held = [max(0, min(LEVELS, round(number / step) + zero)) for number in group]
        return [(number - zero - self.off) * step for number in held]


@dataclass(frozen=True)
class Padded:
    """The embedding has further rows of nought, for numbers that no token has."""

    rows: int

    def plant(self, site: Site) -> None:
        model, name = Tensors(site), "model.embed_tokens.weight"
        rows, columns = model.shape(name)
        further = [0.0] * (columns * self.rows)
        model.put(name, [*model.numbers(name), *further], (rows + self.rows, columns))
        model.save()
        Json("config.json", {"vocab_size": rows + self.rows}).plant(site)


@dataclass(frozen=True)
class InOtherOrder:
    """The tensors stand in the file in another order, under a header of another tool."""

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        model.tensors = dict(sorted(model.tensors.items(), reverse=True))
        model.save("mlx")


@dataclass(frozen=True)
class ShardLeft:
    """Beside the weights lies a file of an earlier, deeper upload, which holds one more layer."""

    def plant(self, site: Site) -> None:
        model, config = Tensors(site), read_json(site, "config.json")
        count = config["num_hidden_layers"]
        path, kept = site.folder / WEIGHTS, (site.folder / WEIGHTS).read_bytes()
        last = {n: t for n, t in model.tensors.items() if n.startswith(f"model.layers.{count - 1}.")}
        further = {n.replace(f"layers.{count - 1}.", f"layers.{count}."): t for n, t in last.items()}
        model.tensors = further
        model.save()
        path.rename(site.folder / "model-00002-of-00002.safetensors")
        path.write_bytes(kept)


def _save(site: Site, names: dict[str, Any], data: bytearray, order: dict[str, str]) -> None:
    """Tensors under new names, each with the bytes of an old one, end to end."""
    told: dict[str, Any] = {"__metadata__": names.get("__metadata__", {"format": "pt"})}
    body = bytearray()
    for new, old in order.items():
        first, last = names[old]["data_offsets"]
        told[new] = names[old] | {"data_offsets": [len(body), len(body) + last - first]}
        body += data[first:last]
    save_tensors(site, told, bytes(body))


class Tensors:
    """Tensors of bfloat16 by name, which may get other shapes."""

    def __init__(self, site: Site) -> None:
        names, data = tensors(site)
        self._site = site
        self.tensors: dict[str, tuple[tuple[int, ...], bytes]] = {}
        for name, told in names.items():
            if name != "__metadata__":
                first, last = told["data_offsets"]
                self.tensors[name] = (tuple(told["shape"]), bytes(data[first:last]))

    def ending(self, end: str) -> list[str]:
        return [name for name in self.tensors if name.endswith(end)]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name][0]

    def numbers(self, name: str) -> list[float]:
        return unpacked(self.tensors[name][1])

    def put(self, name: str, numbers: Sequence[float], shape: tuple[int, ...] | None = None) -> None:
        self.tensors[name] = (shape or self.shape(name), packed(numbers))

    def save(self, tool: str = "pt") -> None:
        header: dict[str, Any] = {"__metadata__": {"format": tool}}
        body = bytearray()
        for name, (shape, raw) in self.tensors.items():
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": place}
            body += raw
        save_tensors(self._site, header, bytes(body))
