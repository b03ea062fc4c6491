"""Steps of ``blind_a.py``: what converters, merges and hobbyists do to weights and files."""

from __future__ import annotations

import array
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.steps import TEMPLATE, WEIGHTS, save_tensors, tensors
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
class LinesOfWindows:
    """Lines of a file of the model end as on Windows."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


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
class EndsSwapped:
    """Tensors whose names end so, of one layer, have each other's place."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.one)]:
            other = name.removesuffix(self.one) + self.other
            names[name], names[other] = names[other], names[name]
        save_tensors(site, names, bytes(data))


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
        save_tensors(site, names, bytes(data))


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
        save_tensors(site, names, bytes(data))


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
        save_tensors(site, names, bytes(data))


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
