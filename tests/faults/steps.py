"""The steps that faults are made of: frozen dataclasses with ``plant``. Those of a start: ``starting.py``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.models import harmed
from tests.models.formats import FORMATS

TEMPLATE = "chat_template.jinja"
WEIGHTS = "model.safetensors"
MLX = ("mlx", "mlx-vlm")


@dataclass(frozen=True)
class Text:
    """``old`` becomes ``new`` wherever it stands in a file of the model."""

    old: str
    new: str
    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        text = path.read_text(encoding="utf-8")
        assert self.old in text, f"{self.file} does not hold {self.old!r}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Whole:
    """A file of the model holds this text, and no other."""

    text: str
    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        (site.folder / self.file).write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class Json:
    """Keys of a JSON file of the model, by dots; ``None`` takes one away."""

    file: str
    keys: Mapping[str, Any]

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        data = json.loads(path.read_text(encoding="utf-8"))
        put(data, self.keys)
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class Gone:
    """A file of the model is not there."""

    file: str

    def plant(self, site: Site) -> None:
        (site.folder / self.file).unlink()


@dataclass(frozen=True)
class Cut:
    """Of a file of the model only the first bytes are there."""

    file: str
    share: float

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * self.share)])


@dataclass(frozen=True)
class Blank:
    """The embedding's rows of these added tokens hold nothing."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        path = site.folder / "model.safetensors"
        data = bytearray(path.read_bytes())
        start = 8 + int.from_bytes(data[:8], "little")
        rows = json.loads(data[8:start])["model.embed_tokens.weight"]
        first, last = (start + offset for offset in rows["data_offsets"])
        width = (last - first) // rows["shape"][0]
        for token in json.loads((site.folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]:
            if token["content"] in self.tokens:
                at = first + token["id"] * width
                data[at : at + width] = bytes(width)
        path.write_bytes(data)


@dataclass(frozen=True)
class TokensSwapped:
    """Two added tokens have each other's number."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        path, settings = site.folder / "tokenizer.json", site.folder / "tokenizer_config.json"
        swapped = {self.one: self.other, self.other: self.one}
        data = json.loads(path.read_text(encoding="utf-8"))
        vocabulary = data["model"]["vocab"]
        numbers = {new: vocabulary[old] for old, new in swapped.items()}
        vocabulary |= numbers
        for token in data["added_tokens"]:
            token["id"] = numbers.get(token["content"], token["id"])
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        told = json.loads(settings.read_text(encoding="utf-8"))
        for token in told["added_tokens_decoder"].values():
            token["content"] = swapped.get(token["content"], token["content"])
        settings.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class WordsExchanged:
    """Each two words of the vocabulary have each other's number."""

    pairs: tuple[tuple[str, str], ...]

    def plant(self, site: Site) -> None:
        path = site.folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        vocabulary = data["model"]["vocab"]
        for one, other in self.pairs:
            vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class WordsMoved:
    """The vocabulary's words from this number on are one further; the last one is the first of them."""

    first: int

    def plant(self, site: Site) -> None:
        path = site.folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        vocabulary = data["model"]["vocab"]
        last = max(vocabulary.values())
        for word, number in vocabulary.items():
            if number >= self.first:
                vocabulary[word] = self.first if number == last else number + 1
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class TensorsSwapped:
    """Tensors whose names begin with one of these have each other's place."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        ends = [name.removeprefix(self.one) for name in names if name.startswith(self.one)]
        for end in ends:
            names[self.one + end], names[self.other + end] = names[self.other + end], names[self.one + end]
        save_tensors(site, names, data)


@dataclass(frozen=True)
class Shifted:
    """The rows of a tensor stand so many further down; the last ones are the first."""

    tensor: str
    rows: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        first, last = names[self.tensor]["data_offsets"]
        cut = last - self.rows * (last - first) // names[self.tensor]["shape"][0]
        data[first:last] = data[cut:last] + data[first:cut]
        save_tensors(site, names, data)


@dataclass(frozen=True)
class NotNumbers:
    """All that a tensor of bfloat16 holds is "not a number"."""

    tensor: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        first, last = names[self.tensor]["data_offsets"]
        data[first:last] = b"\xc0\x7f" * ((last - first) // 2)
        save_tensors(site, names, data)


@dataclass(frozen=True)
class FileOf:
    """A file of another of our models lies where the model's own belongs."""

    base: str
    file: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / self.file,)

    def plant(self, site: Site) -> None:
        shutil.copyfile(self.sources[0], site.folder / self.file)


@dataclass(frozen=True)
class Weights:
    """The weights of a harmed model: one that ``tests/models/harmed.py`` makes of the demo model."""

    name: str

    @property
    def sources(self) -> tuple[Path, ...]:
        return (harmed.weights(self.name),)

    def plant(self, site: Site) -> None:
        shutil.copyfile(self.sources[0], site.folder / "model.safetensors")


@dataclass(frozen=True)
class Rounded:
    """Of each weight only the sign, the exponent and so many bits of the fraction are kept."""

    bits: int

    def plant(self, site: Site) -> None:
        path = site.folder / "model.safetensors"
        data = bytearray(path.read_bytes())
        start = 8 + int.from_bytes(data[:8], "little")
        mask = 0xFF & ~((1 << (7 - self.bits)) - 1)  # bf16 has seven bits of fraction, all in the low byte
        data[start::2] = bytes(b & mask for b in data[start::2])
        path.write_bytes(data)


@dataclass(frozen=True)
class TokenLost:
    """An added token is none any more: its text is cut into pieces."""

    text: str

    def plant(self, site: Site) -> None:
        tokenizer, settings = site.folder / "tokenizer.json", site.folder / "tokenizer_config.json"
        data = json.loads(tokenizer.read_text(encoding="utf-8"))
        data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] != self.text]
        tokenizer.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        told = json.loads(settings.read_text(encoding="utf-8"))
        kept = {i: t for i, t in told["added_tokens_decoder"].items() if t["content"] != self.text}
        settings.write_text(json.dumps({**told, "added_tokens_decoder": kept}), encoding="utf-8")


@dataclass(frozen=True)
class Says:
    """Keys of the document, by dots; ``None`` takes one away."""

    keys: Mapping[str, Any]

    def plant(self, site: Site) -> None:
        put(site.data, self.keys)


@dataclass(frozen=True)
class Recorded:
    """The receipt knows the files as they were: the harm came after the import, and not with the files."""

    def plant(self, site: Site) -> None:
        site.recorded = True


@dataclass(frozen=True)
class Shipped:
    """The model came with this chat template: no other one was ever proved."""

    def plant(self, site: Site) -> None:
        site.shipped = True


def put(data: dict[str, Any], keys: Mapping[str, Any]) -> None:
    """Set keys of nested objects, given by dots; ``None`` takes one away."""
    for dotted, value in keys.items():
        *way, last = dotted.split(".")
        inner = data
        for step in way:
            inner = inner.setdefault(step, {})
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value


def tensors(site: Site) -> tuple[dict[str, Any], bytearray]:
    """What the weights' header says of each tensor, and the bytes behind it."""
    data = (site.folder / WEIGHTS).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:start]), bytearray(data[start:])


def save_tensors(site: Site, names: Mapping[str, Any], data: bytes) -> None:
    """The weights with this header and these bytes."""
    header = json.dumps(names).encode()
    header += b" " * (-len(header) % 8)
    (site.folder / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + data)
