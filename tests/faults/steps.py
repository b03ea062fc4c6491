"""The steps that faults are made of: frozen dataclasses with ``plant``. Those of a start: ``starting.py``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
        with edited(site, self.file) as data:
            put(data, self.keys)


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
        with weights_of(site) as (names, data), edited(site, "tokenizer.json") as tokenizer:
            rows = names["model.embed_tokens.weight"]
            first, last = rows["data_offsets"]
            width = (last - first) // rows["shape"][0]
            for token in tokenizer["added_tokens"]:
                if token["content"] in self.tokens:
                    at = first + token["id"] * width
                    data[at : at + width] = bytes(width)


@dataclass(frozen=True)
class TokensSwapped:
    """Two added tokens have each other's number."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        swapped = {self.one: self.other, self.other: self.one}
        with edited(site, "tokenizer.json") as data, edited(site, "tokenizer_config.json") as settings:
            vocabulary = data["model"]["vocab"]
            numbers = {new: vocabulary[old] for old, new in swapped.items()}
            vocabulary |= numbers
            for token in data["added_tokens"]:
                token["id"] = numbers.get(token["content"], token["id"])
            for token in settings["added_tokens_decoder"].values():
                token["content"] = swapped.get(token["content"], token["content"])


@dataclass(frozen=True)
class WordsExchanged:
    """Each two words of the vocabulary have each other's number."""

    pairs: tuple[tuple[str, str], ...]

    def plant(self, site: Site) -> None:
        with edited(site, "tokenizer.json") as data:
            vocabulary = data["model"]["vocab"]
            for one, other in self.pairs:
                vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]


@dataclass(frozen=True)
class WordsMoved:
    """The vocabulary's words from this number on are one further; the last one is the first of them."""

    first: int

    def plant(self, site: Site) -> None:
        with edited(site, "tokenizer.json") as data:
            vocabulary = data["model"]["vocab"]
            last = max(vocabulary.values())
            for word, number in vocabulary.items():
                if number >= self.first:
                    vocabulary[word] = self.first if number == last else number + 1


@dataclass(frozen=True)
class TensorsSwapped:
    """Tensors whose names begin with one of these have each other's place."""

    one: str
    other: str

    def plant(self, site: Site) -> None:
        with weights_of(site) as (names, _):
            ends = [name.removeprefix(self.one) for name in names if name.startswith(self.one)]
            for end in ends:
                one, other = self.one + end, self.other + end
                names[one], names[other] = names[other], names[one]


@dataclass(frozen=True)
class Shifted:
    """The rows of a tensor stand so many further down; the last ones are the first."""

    tensor: str
    rows: int

    def plant(self, site: Site) -> None:
        with weights_of(site) as (names, data):
            first, last = names[self.tensor]["data_offsets"]
            cut = last - self.rows * (last - first) // names[self.tensor]["shape"][0]
            data[first:last] = data[cut:last] + data[first:cut]


@dataclass(frozen=True)
class NotNumbers:
    """All that a tensor of bfloat16 holds is "not a number"."""

    tensor: str

    def plant(self, site: Site) -> None:
        with weights_of(site) as (names, data):
            first, last = names[self.tensor]["data_offsets"]
            data[first:last] = b"\xc0\x7f" * ((last - first) // 2)


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
        mask = 0xFF & ~((1 << (7 - self.bits)) - 1)  # bf16 has seven bits of fraction, all in the low byte
        with weights_of(site) as (_, data):
            data[::2] = bytes(b & mask for b in data[::2])


@dataclass(frozen=True)
class TokenLost:
    """An added token is none any more: its text is cut into pieces."""

    text: str

    def plant(self, site: Site) -> None:
        with edited(site, "tokenizer.json") as data, edited(site, "tokenizer_config.json") as settings:
            data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] != self.text]
            known = settings["added_tokens_decoder"]
            settings["added_tokens_decoder"] = {i: t for i, t in known.items() if t["content"] != self.text}


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


@contextmanager
def edited(site: Site, file: str) -> Iterator[dict[str, Any]]:
    """A JSON file of the model, written as the block leaves it."""
    path = site.folder / file
    data = json.loads(path.read_text(encoding="utf-8"))
    yield data
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@contextmanager
def weights_of(site: Site) -> Iterator[tuple[dict[str, Any], bytearray]]:
    """The weights' header by tensors and the bytes behind it, saved as the block leaves them."""
    names, data = tensors(site)
    yield names, data
    save_tensors(site, names, data)


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
