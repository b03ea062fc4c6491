"""Steps of the blind round o: weights, files of tokenizers, and what happens on a machine."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.fault import Site
from tests.faults.numbers import header_of, numbers_of, put_numbers
from tests.faults.rebuilt import Tensors
from tests.faults.saved_files import Beside
from tests.faults.starting import Module, Variable
from tests.faults.steps import WEIGHTS, read_json, save_tensors, tensors, write_json
from tests.models import harmed

EMBEDDING = "model.embed_tokens.weight"
DISK = """import errno, sys

class Log:
    left = {room}

    def __init__(self, inner):
        self.inner = inner

    def write(self, text):
        Log.left -= len(text)
        if Log.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.inner.write(text)

    def __getattr__(self, name):
        return getattr(self.inner, name)

sys.stderr = Log(sys.stderr)
"""
RECORD = "packages/{name}-{version}.dist-info/METADATA"


@dataclass(frozen=True)
class MergedWith:
    """To each number a share of the difference to a harmed model's is added, as adapters are merged."""

    name: str
    share: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (harmed.weights(self.name),)

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        others, rest = header_of(self.sources[0])
        for name in [n for n in names if n != "__metadata__"]:
            pairs = zip(numbers_of(names, data, name), numbers_of(others, rest, name), strict=True)
            put_numbers(names, data, name, [one + self.share * (two - one) for one, two in pairs])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class RowsOfMean:
    """The embedding's rows of these added tokens are the mean of all rows, as resizing makes new ones."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        mean = [sum(numbers[column::columns]) / rows for column in range(columns)]
        for token in read_json(site, "tokenizer.json")["added_tokens"]:
            if token["content"] in self.tokens:
                numbers[token["id"] * columns : (token["id"] + 1) * columns] = mean
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class NewlyInitialised:
    """Tensors whose names begin so were not found by the tool that saved the model: they are small noise."""

    begin: str
    deviation: float = 0.02

    def plant(self, site: Site) -> None:
        model, noise = Tensors(site), random.Random(7)
        for name in [n for n in model.tensors if n.startswith(self.begin) and n.endswith("_proj.weight")]:
            model.put(name, [noise.gauss(0, self.deviation) for _ in model.numbers(name)])
        model.save()


@dataclass(frozen=True)
class Clipped:
    """Numbers of matrices beyond so many mean deviations are cut to that, as a bad calibration does."""

    deviations: float

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        for name in model.ending("_proj.weight"):
            numbers = model.numbers(name)
            most = self.deviations * sum(map(abs, numbers)) / len(numbers)
            model.put(name, [max(-most, min(most, number)) for number in numbers])
        model.save()


@dataclass(frozen=True)
class RowsSorted:
    """The embedding's rows stand in the order of the tokens' letters, as a remade vocabulary has them."""

    first: int
    last: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        _, columns = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        vocabulary = read_json(site, "tokenizer.json")["model"]["vocab"]
        old = tuple(numbers)
        words = sorted(w for w, n in vocabulary.items() if self.first <= n < self.last)
        for at, word in enumerate(words, self.first):
            row = vocabulary[word] * columns
            numbers[at * columns : (at + 1) * columns] = old[row : row + columns]
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class ShardOfEachLayer:
    """The weights come in a file for each layer and one for the rest, with an index."""

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        every = [name for name in names if name != "__metadata__"]
        parts = {n: n.split(".")[2] if n.startswith("model.layers.") else "rest" for n in every}
        files = {part: f"weights-of-{part}.safetensors" for part in sorted(set(parts.values()))}
        files = {part: f"model-{i:05}-of-{len(files):05}.safetensors" for i, part in enumerate(files, 1)}
        for part, file in files.items():
            told: dict[str, Any] = {"__metadata__": {"format": "pt"}}
            body = bytearray()
            for name in (n for n in every if parts[n] == part):
                first, last = names[name]["data_offsets"]
                told[name] = names[name] | {"data_offsets": [len(body), len(body) + last - first]}
                body += data[first:last]
            save_tensors(site, told, bytes(body))
            shutil.move(site.folder / WEIGHTS, site.folder / file)
        index = {"metadata": {"total_size": len(data)}, "weight_map": {n: files[parts[n]] for n in every}}
        write_json(site, "model.safetensors.index.json", index)


@dataclass(frozen=True)
class VocabularyInOtherOrder:
    """The words of tokenizer.json stand in the order of letters, each with its number, and indented."""

    def plant(self, site: Site) -> None:
        data = read_json(site, "tokenizer.json")
        data["model"]["vocab"] = dict(sorted(data["model"]["vocab"].items()))
        text = json.dumps(data, indent=4, sort_keys=True)
        (site.folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class OldRecord:
    """Before the engine's own packages lies what an older release of one of them left: its record."""

    name: str
    version: str

    def plant(self, site: Site) -> None:
        told = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n"
        path = RECORD.format(name=self.name, version=self.version)
        Beside(f"../{path}", told).plant(site)
        Variable("PYTHONPATH", str(site.folder.parent / "packages")).plant(site)


@dataclass(frozen=True)
class OldRelease:
    """A package of the engine is an older release: what it says of itself, and its record."""

    name: str
    version: str

    def plant(self, site: Site) -> None:
        text = f"import {self.name}\n{self.name}.__version__ = {self.version!r}\n"
        Module("sitecustomize", text).plant(site)
        OldRecord(self.name, self.version).plant(site)


@dataclass(frozen=True)
class LogDiskFull:
    """The disk that takes the server's log has room for so many characters, and then errors."""

    room: int

    def plant(self, site: Site) -> None:
        Module("sitecustomize", DISK.format(room=self.room)).plant(site)


@dataclass(frozen=True)
class Variables:
    """Variables in the engine's environment."""

    told: Mapping[str, str]

    def plant(self, site: Site) -> None:
        for name, value in self.told.items():
            Variable(name, value).plant(site)
