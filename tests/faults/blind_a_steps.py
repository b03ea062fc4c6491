"""Steps of ``blind_a.py``: what converters, merges and hobbyists do to weights and files."""

from __future__ import annotations

import array
import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.steps import TEMPLATE, WEIGHTS, Says, save_tensors, tensors
from tests.models.formats import FORMATS


@dataclass(frozen=True)
class New:
    """A further file in the model's folder."""

    file: str
    text: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class Marked:
    """A file of the model begins with the mark of byte order that an editor puts there."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


@dataclass(frozen=True)
class LinesOfWindows:
    """Lines of a file of the model end as on Windows."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@dataclass(frozen=True)
class Dangling:
    """A file of the model is a link to one that somebody has cleared away."""

    file: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.unlink()
        path.symlink_to(site.folder.parent / "blobs" / "0f4c1f0a6b1de0c5")


@dataclass(frozen=True)
class AddedToken:
    """The tokenizer has one more token, with this number."""

    text: str
    number: int
    special: bool = False

    def plant(self, site: Site) -> None:
        path, settings = site.folder / "tokenizer.json", site.folder / "tokenizer_config.json"
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        told = {"content": self.text, **flags, "special": self.special}
        data = json.loads(path.read_text(encoding="utf-8"))
        data["added_tokens"].append({"id": self.number, **told})
        data["added_tokens"].sort(key=lambda token: token["id"])
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        kept = json.loads(settings.read_text(encoding="utf-8"))
        kept["added_tokens_decoder"][str(self.number)] = told
        settings.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class Flagged:
    """A flag of added tokens has this value, in both files that hold it."""

    flag: str
    value: bool
    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            path = site.folder / name
            data = json.loads(path.read_text(encoding="utf-8"))
            added = data["added_tokens"] if "added_tokens" in data else data["added_tokens_decoder"].values()
            for token in added:
                if token["content"] in self.tokens:
                    token[self.flag] = self.value
            path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class FarBytesLost:
    """Tokens for bytes beyond ASCII, and ones merged of them, have names that no text holds."""

    def plant(self, site: Site) -> None:
        path = site.folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        added = {token["content"] for token in data["added_tokens"]}
        kept = set("\u0120\u010a") | {chr(c) for c in range(0x21, 0x7F)}
        model = data["model"]
        model["vocab"] = {
            w if w in added or set(w) <= kept else f"<unused{n}>": n for w, n in model["vocab"].items()
        }
        model["merges"] = [m for m in model["merges"] if set("".join(m)) <= kept]
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class MergesSorted:
    """The tokenizer's merges stand in the order of the alphabet."""

    def plant(self, site: Site) -> None:
        path = site.folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        data["model"]["merges"].sort()
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class EndsSwapped:
    """Tensors whose names end so, of one layer, have each other's place."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.one)]:
            other = name.removesuffix(self.one) + self.other
            names[name], names[other] = names[other], names[name]
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Renamed:
    """Before the name of each tensor stands a prefix."""

    prefix: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        changed = {n if n == "__metadata__" else self.prefix + n: told for n, told in names.items()}
        save_tensors(site, changed, data)


@dataclass(frozen=True)
class BlocksSwapped:
    """Of tensors whose names end so, the first ``rows`` rows and the next ones have each other's place."""

    ends: tuple[str, ...]
    rows: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.ends)]:
            first, last = names[name]["data_offsets"]
            size = self.rows * (last - first) // names[name]["shape"][0]
            old = bytes(data[first:last])
            data[first:last] = old[size : 2 * size] + old[:size] + old[2 * size :]
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Transposed:
    """Square tensors whose names end so have their rows as columns."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.ends)]:
            rows, columns = names[name]["shape"]
            assert rows == columns, name
            numbers = _numbers(names, data, name)
            _put(names, data, name, [numbers[j * rows + i] for i in range(rows) for j in range(rows)])
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Ones:
    """All numbers of the tensors whose names end so are one."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.ends)]:
            _put(names, data, name, [1.0] * len(_numbers(names, data, name)))
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Stretched:
    """Each matrix of the layers was scaled to the range of eight bits, and nobody kept the scale."""

    most: float = 448.0

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith("_proj.weight")]:
            numbers = _numbers(names, data, name)
            scale = self.most / max(map(abs, numbers))
            _put(names, data, name, [number * scale for number in numbers])
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Clipped:
    """No number of the layers' matrices is larger than so many times their usual size."""

    times: float

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith("_proj.weight")]:
            numbers = _numbers(names, data, name)
            most = self.times * (sum(n * n for n in numbers) / len(numbers)) ** 0.5
            _put(names, data, name, [max(-most, min(most, number)) for number in numbers])
        save_tensors(site, names, data)


@dataclass(frozen=True)
class OneScale:
    """Matrices were rounded to so many bits with one scale for the whole of each."""

    bits: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        levels = (1 << (self.bits - 1)) - 1
        for name in [n for n in names if n.endswith("_proj.weight")]:
            numbers = _numbers(names, data, name)
            step = max(map(abs, numbers)) / levels
            _put(names, data, name, [round(number / step) * step for number in numbers])
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Typed:
    """The header says that all tensors have this type; their bytes are what they were."""

    name: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for key, told in names.items():
            if key != "__metadata__":
                told["dtype"] = self.name
        save_tensors(site, names, data)


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
class LayerTwice:
    """A layer stands twice in the model; config.json counts one more."""

    layer: int

    def plant(self, site: Site) -> None:
        path = site.folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["num_hidden_layers"] += 1
        path.write_text(json.dumps(config), encoding="utf-8")
        names, data = tensors(site)
        order: dict[str, str] = {}
        for name in (n for n in names if n != "__metadata__"):
            number = int(name.split(".")[2]) if name.startswith("model.layers.") else -1
            places = [number + 1] if number > self.layer else [number]
            places += [number + 1] if number == self.layer else []
            for place in places:
                order[name.replace(f"layers.{number}.", f"layers.{place}.")] = name
        _save(site, names, data, order)


@dataclass(frozen=True)
class Blended:
    """Each number is a mean of the model's and of another model's, as merges of models are made."""

    base: str
    share: float
    begin: str = "model."

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        raw = self.sources[0].read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        others, rest = json.loads(raw[8:start]), bytearray(raw[start:])
        for name in [n for n in names if n.startswith(self.begin)]:
            pairs = zip(_numbers(names, data, name), _numbers(others, rest, name), strict=True)
            _put(names, data, name, [(1 - self.share) * one + self.share * two for one, two in pairs])
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter in a folder of its own, which the document names; it was trained on another model."""

    scale: float = 20.0
    rank: int = 8
    layers: int = 3

    def plant(self, site: Site) -> None:
        folder = site.folder.parent / "adapter"
        folder.mkdir()
        keys = ["self_attn.q_proj", "self_attn.v_proj"]
        told = {"rank": self.rank, "scale": self.scale, "dropout": 0.0, "keys": keys}
        config = {"fine_tune_type": "lora", "num_layers": self.layers, "lora_parameters": told}
        (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
        dice = random.Random(7)
        header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()
        for layer in range(self.layers):
            for key, out in zip(keys, (128, 64), strict=True):
                for part, shape in (("lora_a", (64, self.rank)), ("lora_b", (self.rank, out))):
                    numbers = [dice.uniform(-0.1, 0.1) for _ in range(shape[0] * shape[1])]
                    piece = struct.pack(f"<{len(numbers)}f", *numbers)
                    offsets = [len(body), len(body) + len(piece)]
                    header[f"model.layers.{layer}.{key}.{part}"] = {
                        "dtype": "F32",
                        "shape": list(shape),
                        "data_offsets": offsets,
                    }
                    body += piece
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / "adapters.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(body))
        Says({"engine_args": {"adapter_path": str(folder)}}).plant(site)


def _numbers(names: dict[str, Any], data: bytes | bytearray, name: str) -> list[float]:
    """What a tensor of bfloat16 holds."""
    first, last = names[name]["data_offsets"]
    halves = array.array("H", bytes(data[first:last]))
    return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]


def _put(names: dict[str, Any], data: bytearray, name: str, numbers: Sequence[float]) -> None:
    first, last = names[name]["data_offsets"]
    data[first:last] = b"".join(struct.pack("<f", number)[2:] for number in numbers)


def _save(site: Site, names: dict[str, Any], data: bytearray, order: dict[str, str]) -> None:
    """Tensors under new names, each with the bytes of an old one, end to end."""
    told: dict[str, Any] = {"__metadata__": names.get("__metadata__", {"format": "pt"})}
    body = bytearray()
    for new, old in order.items():
        first, last = names[old]["data_offsets"]
        told[new] = names[old] | {"data_offsets": [len(body), len(body) + last - first]}
        body += data[first:last]
    save_tensors(site, told, bytes(body))
