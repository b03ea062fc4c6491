"""Steps of ``blind_c.py``: what else may happen to templates, tokenizers, weights and files."""

from __future__ import annotations

import array
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.starting import Arguments
from tests.faults.steps import TEMPLATE, Json, save_tensors, tensors
from tests.models.formats import FORMATS

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
METADATA = "__metadata__"


@dataclass(frozen=True)
class Encoded:
    """A file of the model was saved in another encoding."""

    encoding: str
    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_text(encoding="utf-8").encode(self.encoding))


@dataclass(frozen=True)
class ReadAs:
    """A file of the model in UTF-8 was read as if it were in another encoding, and saved again."""

    encoding: str
    file: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(path.read_bytes().decode(self.encoding), encoding="utf-8")


@dataclass(frozen=True)
class OneLine:
    """Line breaks of a file of the model are spaces."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(path.read_text(encoding="utf-8").replace("\n", " "), encoding="utf-8")


@dataclass(frozen=True)
class LinkedToNothing:
    """A file of the model is a link to one that is not there."""

    file: str
    to: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.unlink()
        path.symlink_to(self.to)


@dataclass(frozen=True)
class NumberOf:
    """An added token has another one's number, in both files that hold them."""

    text: str
    other: str

    def plant(self, site: Site) -> None:
        data, told = _read(site, TOKENIZER), _read(site, SETTINGS)
        number = data["model"]["vocab"][self.other]
        data["model"]["vocab"].pop(self.text)
        for token in data["added_tokens"]:
            if token["content"] == self.text:
                token["id"] = number
        kept = told["added_tokens_decoder"]
        told["added_tokens_decoder"] = {i: t for i, t in kept.items() if t["content"] != self.text}
        _write(site, TOKENIZER, data)
        _write(site, SETTINGS, told)


@dataclass(frozen=True)
class TokenFor:
    """A text is an added token now, and has the number of a word that is in few texts."""

    text: str
    word: str

    def plant(self, site: Site) -> None:
        data, told = _read(site, TOKENIZER), _read(site, SETTINGS)
        number = data["model"]["vocab"].pop(self.word)
        flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word", "special"), False)
        token = {"content": self.text, **flags}
        data["model"]["vocab"][self.text] = number
        data["model"]["merges"] = [m for m in data["model"]["merges"] if self.word not in (*m, "".join(m))]
        data["added_tokens"].append({"id": number, **token})
        told["added_tokens_decoder"][str(number)] = token
        _write(site, TOKENIZER, data)
        _write(site, SETTINGS, told)


@dataclass(frozen=True)
class MergesAsText:
    """Merges are written as older libraries did: two words and a space between them."""

    def plant(self, site: Site) -> None:
        data = _read(site, TOKENIZER)
        data["model"]["merges"] = [" ".join(merge) for merge in data["model"]["merges"]]
        _write(site, TOKENIZER, data)


@dataclass(frozen=True)
class Prefixed:
    """The names of all tensors begin with this."""

    prefix: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        told = {name if name == METADATA else self.prefix + name: of for name, of in names.items()}
        save_tensors(site, told, bytes(data))


@dataclass(frozen=True)
class BytesTurned:
    """Numbers of the tensors whose names begin so have their bytes in the other order."""

    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.startswith(self.begin)):
            first, last = names[name]["data_offsets"]
            halves = array.array("H", bytes(data[first:last]))
            halves.byteswap()
            data[first:last] = halves.tobytes()
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Scaled:
    """Each number of the tensors whose names end so is multiplied by this."""

    end: str
    factor: float

    def plant(self, site: Site) -> None:
        _each(site, self.end, lambda numbers, _width: [n * self.factor for n in numbers])


@dataclass(frozen=True)
class Pruned:
    """Of so many numbers in a row that follow each other the smallest are nought, in all projections."""

    lost: int
    of: int

    def plant(self, site: Site) -> None:
        _each(site, "_proj.weight", lambda numbers, _width: self._pruned(numbers))

    def _pruned(self, numbers: Sequence[float]) -> list[float]:
        told = list(numbers)
        for at in range(0, len(told), self.of):
            group = range(at, at + self.of)
            for i in sorted(group, key=lambda i: abs(told[i]))[: self.lost]:
                told[i] = 0.0
        return told


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


def _each(site: Site, end: str, change: Callable[[Sequence[float], int], Sequence[float]]) -> None:
    """Change the numbers of all tensors of bfloat16 whose names end so, given how many a row has."""
    names, data = tensors(site)
    for name in (n for n in names if n.endswith(end)):
        first, last = names[name]["data_offsets"]
        told = change(_numbers(names, data, name), names[name]["shape"][-1])
        data[first:last] = b"".join(_short(number) for number in told)
    save_tensors(site, names, bytes(data))


def _numbers(names: Mapping[str, Any], data: bytes | bytearray, name: str) -> list[float]:
    """What a tensor of bfloat16 holds."""
    first, last = names[name]["data_offsets"]
    halves = struct.unpack(f"<{(last - first) // 2}H", bytes(data[first:last]))
    return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]


def _short(number: float) -> bytes:
    """A number as bfloat16, rounded to the nearest."""
    (whole,) = struct.unpack("<I", struct.pack("<f", number))
    return int(min(whole + 0x8000, 0xFFFFFFFF) >> 16).to_bytes(2, "little")


def _read(site: Site, file: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((site.folder / file).read_text(encoding="utf-8"))
    return data


def _write(site: Site, file: str, data: Mapping[str, Any]) -> None:
    (site.folder / file).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
