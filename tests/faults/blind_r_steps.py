"""Steps of the faults of letter r: weights as converters, quantisers and merges leave them; packages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import Site
from tests.faults.numbers import numbers_of, packed, put_numbers
from tests.faults.rebuilt import MATRIX, METADATA, Tensors
from tests.faults.starting import Module
from tests.faults.steps import TEMPLATE, WEIGHTS, Json, read_json, save_tensors, tensors, write_json

EMBEDDING = "model.embed_tokens.weight"
WORD = 32  # bits of a packed number
FP8 = 448.0  # the largest number of E4M3
HOOK = '''"""Another version of {module}: what it does otherwise."""
import importlib.abc
import importlib.util
import sys

CHANGE = {text!r}


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        real = spec.loader.exec_module

        def run(module):
            real(module)
            exec(CHANGE, module.__dict__)

        spec.loader.exec_module = run
        return spec


sys.meta_path.insert(0, Finder())
'''


@dataclass(frozen=True)
class Updated:
    """A package of the engine's environment has another version: after a module of it this runs, too."""

    module: str
    text: str

    def plant(self, site: Site) -> None:
        Module("sitecustomize", HOOK.format(module=self.module, text=self.text)).plant(site)


@dataclass(frozen=True)
class GroupsAsRows:
    """Queries, keys and values were fused group by group, and split as if all queries came first."""

    def plant(self, site: Site) -> None:
        model, config = Tensors(site), read_json(site, "config.json")
        groups, head = config["num_key_value_heads"], config["head_dim"]
        per = config["num_attention_heads"] // groups
        for query in model.ending("q_proj.weight"):
            names = [query.replace("q_proj", f"{part}_proj") for part in "qkv"]
            columns = model.shape(query)[1]
            size = head * columns
            q, k, v = (model.numbers(name) for name in names)
            fused: list[float] = []
            for group in range(groups):
                fused += q[group * per * size : (group + 1) * per * size]
                fused += k[group * size : (group + 1) * size] + v[group * size : (group + 1) * size]
            at = 0
            for name, old in zip(names, (q, k, v), strict=True):
                model.put(name, fused[at : at + len(old)])
                at += len(old)
        model.save()


@dataclass(frozen=True)
class MeanRows:
    """The embedding's rows of these added tokens are the mean of all rows, and were never trained."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        rows, columns = names[EMBEDDING]["shape"]
        numbers = numbers_of(names, data, EMBEDDING)
        mean = [sum(numbers[column::columns]) / rows for column in range(columns)]
        for token in read_json(site, "tokenizer.json")["added_tokens"]:
            if token["content"] in self.tokens:
                numbers[token["id"] * columns : (token["id"] + 1) * columns] = mean
        put_numbers(names, data, EMBEDDING, numbers)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class LowRank:
    """To the matrices whose names end so an adapter was added that was trained for other weights."""

    ends: tuple[str, ...]
    rank: int
    scale: float

    def plant(self, site: Site) -> None:
        draw = random.Random(self.rank)
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(self.ends)]:
            rows, columns = names[name]["shape"]
            down = [[draw.gauss(0, 1) for _ in range(columns)] for _ in range(self.rank)]
            up = [[draw.gauss(0, self.scale) for _ in range(self.rank)] for _ in range(rows)]
            numbers = numbers_of(names, data, name)
            for row in range(rows):
                for rank in range(self.rank):
                    factor, line = up[row][rank], down[rank]
                    for column in range(columns):
                        numbers[row * columns + column] += factor * line[column]
            put_numbers(names, data, name, numbers)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class DroppedAndRescaled:
    """A merge dropped this share of the numbers themselves by lot, and made the rest larger."""

    share: float

    def plant(self, site: Site) -> None:
        draw, factor = random.Random(7), 1 / (1 - self.share)
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(MATRIX)]:
            numbers = numbers_of(names, data, name)
            kept = [0.0 if draw.random() < self.share else number * factor for number in numbers]
            put_numbers(names, data, name, kept)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class ScalesLeftOut:
    """Blocks of rows of matrices were scaled for FP8, and read back without their scales."""

    rows: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(MATRIX)]:
            numbers, told = numbers_of(names, data, name), list[float]()
            size = self.rows * names[name]["shape"][1]
            for at in range(0, len(numbers), size):
                block = numbers[at : at + size]
                scale = max(map(abs, block)) / FP8
                told += [number / scale for number in block]
            put_numbers(names, data, name, told)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Clipped:
    """Numbers of matrices beyond so many times their mean size were cut to it."""

    times: float

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        for name in [n for n in names if n.endswith(MATRIX)]:
            numbers = numbers_of(names, data, name)
            most = self.times * sum(map(abs, numbers)) / len(numbers)
            put_numbers(names, data, name, [max(-most, min(most, number)) for number in numbers])
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class Affine:
    """Matrices are rounded by groups as MLX does it, and config.json says so."""

    bits: int
    group: int

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        header: dict[str, Any] = {METADATA: {"format": "mlx"}}
        body = bytearray()

        def add(name: str, dtype: str, shape: Sequence[int], raw: bytes) -> None:
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": place}
            body.extend(raw)

        for name, (shape, raw) in model.tensors.items():
            if not name.endswith(MATRIX):
                add(name, "BF16", shape, raw)
                continue
            levels, scales, least = self._rounded(model.numbers(name))
            each = WORD // self.bits
            words = bytearray()
            for at in range(0, len(levels), each):
                word = sum(level << (self.bits * i) for i, level in enumerate(levels[at : at + each]))
                words += word.to_bytes(4, "little")
            stem, (rows, columns) = name.removesuffix("weight"), shape
            add(name, "U32", (rows, columns // each), bytes(words))
            add(f"{stem}scales", "BF16", (rows, columns // self.group), packed(scales))
            add(f"{stem}biases", "BF16", (rows, columns // self.group), packed(least))
        save_tensors(site, header, bytes(body))
        Json("config.json", {"quantization": {"group_size": self.group, "bits": self.bits}}).plant(site)

    def _rounded(self, numbers: Sequence[float]) -> tuple[list[int], list[float], list[float]]:
        most = (1 << self.bits) - 1
        levels, scales, biases = list[int](), list[float](), list[float]()
        for at in range(0, len(numbers), self.group):
            group = numbers[at : at + self.group]
            least = min(group)
            scale = (max(group) - least) / most or 1.0
            levels += [max(0, min(most, round((number - least) / scale))) for number in group]
            scales.append(scale)
            biases.append(least)
        return levels, scales, biases


@dataclass(frozen=True)
class PagesLost:
    """Of so many pages of the weights' file one reads as zeros; the file's header is whole."""

    every: int
    page: int = 4096

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        data = bytearray(path.read_bytes())
        for at in range(8 * self.page, len(data) - self.page, self.every * self.page):
            data[at : at + self.page] = bytes(self.page)
        path.write_bytes(data)


@dataclass(frozen=True)
class Before:
    """A file of the model begins with this text, and goes on as it was."""

    text: str
    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(self.text + path.read_text(encoding="utf-8"), encoding="utf-8")


@dataclass(frozen=True)
class Reordered:
    """Keys of a JSON file of the model stand in the order of letters."""

    file: str

    def plant(self, site: Site) -> None:
        data = read_json(site, self.file)
        write_json(site, self.file, dict(sorted(data.items())))


@dataclass(frozen=True)
class Shards:
    """The weights come in so many files and an index, and nothing is missing."""

    count: int

    def plant(self, site: Site) -> None:
        model, path = Tensors(site), site.folder / WEIGHTS
        every, held = model.tensors, dict[str, str]()
        for number in range(self.count):
            shard = f"model-{number + 1:05}-of-{self.count:05}.safetensors"
            model.tensors = dict(list(every.items())[number :: self.count])
            held |= dict.fromkeys(model.tensors, shard)
            model.save()
            path.rename(site.folder / shard)
        size = sum(len(raw) for _, raw in every.values())
        index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(held.items()))}
        write_json(site, f"{WEIGHTS}.index.json", index)
