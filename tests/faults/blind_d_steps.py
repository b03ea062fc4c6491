"""Steps of ``blind_d.py``: what prunes, merges, editors and caches do to a model's folder."""

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
from tests.faults.steps import TEMPLATE, WEIGHTS, Json, save_tensors, tensors
from tests.models.formats import FORMATS

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
MATRIX = "_proj.weight"
LEVELS = 15  # of four bits


@dataclass(frozen=True)
class Marked:
    """A file begins with the byte order mark that some editors write."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


@dataclass(frozen=True)
class ReadAsLatin:
    """A file of UTF-8 was read as Latin-1 and written as UTF-8 again."""

    file: str = TOKENIZER

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(path.read_bytes().decode("latin-1"), encoding="utf-8")


@dataclass(frozen=True)
class Beside:
    """A further file in the model's folder."""

    file: str
    text: str

    def plant(self, site: Site) -> None:
        (site.folder / self.file).write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class Linked:
    """The files are links into a cache's folder of blobs; these blobs were cleared away."""

    cleared: tuple[str, ...] = ()

    def plant(self, site: Site) -> None:
        blobs = site.folder.parent / "blobs"
        blobs.mkdir()
        for number, path in enumerate(sorted(p for p in site.folder.iterdir() if p.is_file())):
            blob = blobs / f"{number:040x}"
            path.rename(blob)
            path.symlink_to(Path("..") / blobs.name / blob.name)
            if path.name in self.cleared:
                blob.unlink()


@dataclass(frozen=True)
class WordsAdded:
    """Pieces of the vocabulary were added as tokens once more: they are found within words, too."""

    pieces: tuple[str, ...]

    def plant(self, site: Site) -> None:
        data, told = _read(site, TOKENIZER), _read(site, SETTINGS)
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        for piece in self.pieces:
            number = data["model"]["vocab"][piece]
            data["added_tokens"].append({"id": number, "content": piece, **flags})
            told["added_tokens_decoder"][str(number)] = {"content": piece, **flags}
        data["added_tokens"].sort(key=lambda token: token["id"])
        _write(site, TOKENIZER, data)
        _write(site, SETTINGS, told)


@dataclass(frozen=True)
class Written:
    """A JSON file was written again, with indents and without letters beyond ASCII."""

    file: str = TOKENIZER

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(json.dumps(_read(site, self.file), indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class OldFiles:
    """Vocabulary and merges lie beside in the files of slow tokenizers, too."""

    def plant(self, site: Site) -> None:
        model = _read(site, TOKENIZER)["model"]
        Beside("vocab.json", json.dumps(model["vocab"], ensure_ascii=False)).plant(site)
        merges = "".join(f"{one} {two}\n" for one, two in model["merges"])
        Beside("merges.txt", f"#version: 0.2\n{merges}").plant(site)


@dataclass(frozen=True)
class Pruned:
    """Of each matrix this share of the numbers, the smallest, is nought."""

    share: float

    def plant(self, site: Site) -> None:
        model = _Weights(site)
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
        model = _Weights(site)
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
        model, config = _Weights(site), _read(site, "config.json")
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
        raw = self.sources[0].read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        rows = json.loads(raw[8:start])["model.embed_tokens.weight"]
        first, last = (start + at for at in rows["data_offsets"])
        model = _Weights(site)
        model.put("lm_head.weight", _numbers(raw[first:last]), tuple(rows["shape"]))
        model.save()
        Json("config.json", {"tie_word_embeddings": False}).plant(site)


@dataclass(frozen=True)
class ZeroPointsOff:
    """Matrices were rounded to four bits by groups, and restored with zero points that are one too large."""

    group: int
    off: int = 1

    def plant(self, site: Site) -> None:
        model = _Weights(site)
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
        model, name = _Weights(site), "model.embed_tokens.weight"
        rows, columns = model.shape(name)
        further = [0.0] * (columns * self.rows)
        model.put(name, [*model.numbers(name), *further], (rows + self.rows, columns))
        model.save()
        Json("config.json", {"vocab_size": rows + self.rows}).plant(site)


@dataclass(frozen=True)
class InOtherOrder:
    """The tensors stand in the file in another order, under a header of another tool."""

    def plant(self, site: Site) -> None:
        model = _Weights(site)
        model.tensors = dict(sorted(model.tensors.items(), reverse=True))
        model.save("mlx")


@dataclass(frozen=True)
class ShardLeft:
    """Beside the weights lies a file of an earlier, deeper upload, which holds one more layer."""

    def plant(self, site: Site) -> None:
        model, config = _Weights(site), _read(site, "config.json")
        count = config["num_hidden_layers"]
        path, kept = site.folder / WEIGHTS, (site.folder / WEIGHTS).read_bytes()
        last = {n: t for n, t in model.tensors.items() if n.startswith(f"model.layers.{count - 1}.")}
        further = {n.replace(f"layers.{count - 1}.", f"layers.{count}."): t for n, t in last.items()}
        model.tensors = further
        model.save()
        path.rename(site.folder / "model-00002-of-00002.safetensors")
        path.write_bytes(kept)


@dataclass(frozen=True)
class BitsFlipped:
    """In so many numbers of the weights, all over the file, the highest bit of the exponent is another."""

    count: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for at in random.Random(self.count).sample(range(1, len(data), 2), self.count):
            data[at] ^= 0x40
        save_tensors(site, names, bytes(data))


class _Weights:
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
        return _numbers(self.tensors[name][1])

    def put(self, name: str, numbers: Sequence[float], shape: tuple[int, ...] | None = None) -> None:
        raw = b"".join(struct.pack("<f", number)[2:] for number in numbers)
        self.tensors[name] = (shape or self.shape(name), raw)

    def save(self, tool: str = "pt") -> None:
        header: dict[str, Any] = {"__metadata__": {"format": tool}}
        body = bytearray()
        for name, (shape, raw) in self.tensors.items():
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": place}
            body += raw
        save_tensors(self._site, header, bytes(body))


def _numbers(raw: bytes) -> list[float]:
    """What a tensor of bfloat16 holds."""
    return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in array.array("H", raw)]


def _read(site: Site, file: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((site.folder / file).read_text(encoding="utf-8"))
    return data


def _write(site: Site, file: str, data: dict[str, Any]) -> None:
    (site.folder / file).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
