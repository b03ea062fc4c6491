"""Steps of ``blind_b.py``: more that may happen to tokenizers, weights and the files around them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.steps import TEMPLATE, WEIGHTS, Json, save_tensors, tensors
from tests.faults.tensors import INDEX, SHARD
from tests.models.formats import FORMATS

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
TWO_BYTES = 2  # of a number in bfloat16


@dataclass(frozen=True)
class Beside:
    """A file that the model came without, in a folder of its own where its name says so."""

    text: str
    file: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class LinesOfWindows:
    """A file of the model was saved with the line ends of Windows."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@dataclass(frozen=True)
class TokenSays:
    """Keys of an added token, in both files that hold them."""

    text: str
    keys: Mapping[str, Any]

    def plant(self, site: Site) -> None:
        data, told = _read(site, TOKENIZER), _read(site, SETTINGS)
        for token in (*data["added_tokens"], *told["added_tokens_decoder"].values()):
            if token["content"] == self.text:
                token.update(self.keys)
        _write(site, TOKENIZER, data)
        _write(site, SETTINGS, told)


@dataclass(frozen=True)
class TokenAdded:
    """A further token: at the end of the vocabulary, or in the place of one of its words."""

    text: str
    place: str = ""
    special: bool = False

    def plant(self, site: Site) -> None:
        data, told = _read(site, TOKENIZER), _read(site, SETTINGS)
        vocabulary = data["model"]["vocab"]
        number = vocabulary.pop(self.place) if self.place else max(vocabulary.values()) + 1
        if self.place:
            vocabulary[self.text] = number
        flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
        token = {"content": self.text, "special": self.special, **flags}
        data["added_tokens"].append({"id": number, **token})
        told["added_tokens_decoder"][str(number)] = token
        _write(site, TOKENIZER, data)
        _write(site, SETTINGS, told)


@dataclass(frozen=True)
class MergesSorted:
    """The merges stand in the order of letters, and no more in that of training."""

    def plant(self, site: Site) -> None:
        data = _read(site, TOKENIZER)
        data["model"]["merges"].sort()
        _write(site, TOKENIZER, data)


@dataclass(frozen=True)
class TensorsOf:
    """The tensors whose names begin so are those of another of our models."""

    base: str
    begin: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        raw = self.sources[0].read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        others = json.loads(raw[8:start])
        for name in (n for n in names if n.startswith(self.begin)):
            first, last = names[name]["data_offsets"]
            begin, end = others[name]["data_offsets"]
            data[first:last] = raw[start + begin : start + end]
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Ones:
    """Every number of the tensors whose names end so is one."""

    ends: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in (n for n in names if n.endswith(self.ends)):
            first, last = names[name]["data_offsets"]
            data[first:last] = b"\x80\x3f" * ((last - first) // TWO_BYTES)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class HeadsMoved:
    """The heads of queries stand in this order: their rows, and the columns that read them."""

    order: tuple[int, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in names:
            if name.endswith(("q_proj.weight", "o_proj.weight")):
                first, last = names[name]["data_offsets"]
                rows = name.endswith("q_proj.weight")
                lines = 1 if rows else names[name]["shape"][0]
                data[first:last] = self._moved(bytes(data[first:last]), lines)
        save_tensors(site, names, bytes(data))

    def _moved(self, old: bytes, lines: int) -> bytes:
        length = len(old) // lines
        width = length // len(self.order)
        starts = (line * length + head * width for line in range(lines) for head in self.order)
        return b"".join(old[at : at + width] for at in starts)


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
        Beside(json.dumps(index), INDEX).plant(site)
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


def _read(site: Site, file: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((site.folder / file).read_text(encoding="utf-8"))
    return data


def _write(site: Site, file: str, data: Mapping[str, Any]) -> None:
    (site.folder / file).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
