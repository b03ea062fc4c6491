"""Steps of round p: templates in settings, weights in eight bits, rows and columns of tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import Site
from tests.faults.numbers import each, packed, unpacked
from tests.faults.rebuilt import Tensors
from tests.faults.steps import TEMPLATE, Json, read_json, save_tensors, tensors, write_json

SETTINGS = "tokenizer_config.json"
EMBEDDING = "model.embed_tokens.weight"
METADATA = "__metadata__"
APART = {"vllm-cpu": "weights in eight bits are in the format of MLX"}
LARGEST = 448.0  # of eight-bit floats


@dataclass(frozen=True)
class NamedTemplates:
    """The settings hold two templates, the model's own and one for requests with tools; there is no file."""

    tool_use: str | None = None

    def plant(self, site: Site) -> None:
        path = site.folder / TEMPLATE
        own = path.read_text(encoding="utf-8")
        path.unlink()
        told = read_json(site, SETTINGS)
        other = own if self.tool_use is None else self.tool_use
        told["chat_template"] = [
            {"name": "default", "template": own},
            {"name": "tool_use", "template": other},
        ]
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class InSettings:
    """The model's template stands in the settings, and there is no file."""

    def plant(self, site: Site) -> None:
        path = site.folder / TEMPLATE
        write_json(
            site, SETTINGS, read_json(site, SETTINGS) | {"chat_template": path.read_text(encoding="utf-8")}
        )
        path.unlink()


@dataclass(frozen=True)
class Quantised:
    """Projections are saved in eight bits by groups, as MLX does it; config.json tells of it, or not."""

    note: bool = True
    group: int = 32

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        told: dict[str, Any] = {METADATA: {"format": "mlx"}}
        body = bytearray()

        def put(name: str, dtype: str, shape: Sequence[int], raw: bytes) -> None:
            told[name] = {
                "dtype": dtype,
                "shape": list(shape),
                "data_offsets": [len(body), len(body) + len(raw)],
            }
            body.extend(raw)

        for name, of in names.items():
            if name == METADATA:
                continue
            first, last = of["data_offsets"]
            if not name.endswith("_proj.weight"):
                put(name, of["dtype"], of["shape"], bytes(data[first:last]))
                continue
            rows, columns = of["shape"]
            held, scales, biases = self._held(unpacked(data[first:last]))
            begin = name.removesuffix("weight")
            put(name, "U32", (rows, columns // 4), held)
            put(f"{begin}scales", "BF16", (rows, columns // self.group), packed(scales))
            put(f"{begin}biases", "BF16", (rows, columns // self.group), packed(biases))
        save_tensors(site, told, bytes(body))
        if self.note:
            Json("config.json", {"quantization": {"group_size": self.group, "bits": 8}}).plant(site)

    def _held(self, numbers: Sequence[float]) -> tuple[bytes, list[float], list[float]]:
        held, scales, biases = bytearray(), list[float](), list[float]()
        for at in range(0, len(numbers), self.group):
            group = numbers[at : at + self.group]
            least = _short(min(group))
            step = _short((max(group) - least) / 255) or 1e-6
            held += bytes(max(0, min(255, round((number - least) / step))) for number in group)
            scales.append(step)
            biases.append(least)
        return bytes(held), scales, biases


@dataclass(frozen=True)
class RowsMean:
    """The embedding's rows of these added tokens are the mean of all rows, as new tokens begin."""

    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        rows, width = model.shape(EMBEDDING)
        numbers = model.numbers(EMBEDDING)
        mean = [sum(numbers[at::width]) / rows for at in range(width)]
        for number in _numbers_of(site, self.tokens):
            numbers[number * width : (number + 1) * width] = mean
        model.put(EMBEDDING, numbers)
        model.save()


@dataclass(frozen=True)
class RowBroken:
    """Of the embedding one row, of a word of the vocabulary, is "not a number"."""

    word: str

    def plant(self, site: Site) -> None:
        number = read_json(site, "tokenizer.json")["model"]["vocab"][self.word]
        names, data = tensors(site)
        first, last = names[EMBEDDING]["data_offsets"]
        width = (last - first) // names[EMBEDDING]["shape"][0]
        at = first + number * width
        data[at : at + width] = b"\xc0\x7f" * (width // 2)
        save_tensors(site, names, bytes(data))


@dataclass(frozen=True)
class ScalesForgotten:
    """Projections were widened from eight-bit floats without the scale of each."""

    end: str = "_proj.weight"

    def plant(self, site: Site) -> None:
        def grown(numbers: Sequence[float]) -> list[float]:
            scale = LARGEST / max(map(abs, numbers))
            return [number * scale for number in numbers]

        each(site, self.end, grown)


def _numbers_of(site: Site, tokens: tuple[str, ...]) -> list[int]:
    added = json.loads((site.folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    return [token["id"] for token in added if token["content"] in tokens]


def _short(number: float) -> float:
    """The number as bfloat16 holds it."""
    return unpacked(struct.pack("<f", number)[2:])[0]
