"""Steps of the blind round e that change a model's files, as publishers and users do."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.rebuilt import Tensors
from tests.faults.saved_files import Beside
from tests.faults.steps import TEMPLATE, WEIGHTS, Json, Text
from tests.faults.tokenizers import SETTINGS, TOKENIZER

WORD = 32  # bits


@dataclass(frozen=True)
class TemplateTwice:
    """The template lies at a further place, too, with this in place of that."""

    file: str
    old: str = ""
    new: str = ""

    def plant(self, site: Site) -> None:
        text = (site.folder / TEMPLATE).read_text(encoding="utf-8")
        assert self.old in text, self.old
        Beside(self.file, text.replace(self.old, self.new) if self.old else text).plant(site)


@dataclass(frozen=True)
class Edits:
    """Several texts of the template become others, in their order."""

    pairs: tuple[tuple[str, str], ...]

    def plant(self, site: Site) -> None:
        for old, new in self.pairs:
            Text(old, new).plant(site)


@dataclass(frozen=True)
class SavedAsTrained:
    """The tokenizer was saved with the lengths and the filling up that a training had."""

    length: int

    def plant(self, site: Site) -> None:
        told = {"direction": "Right", "max_length": self.length, "strategy": "LongestFirst", "stride": 0}
        filled = {
            "strategy": {"Fixed": self.length},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<|endoftext|>",
        }
        Json(TOKENIZER, {"truncation": told, "padding": filled}).plant(site)
        Json(SETTINGS, {"padding_side": "left", "truncation_side": "left"}).plant(site)


@dataclass(frozen=True)
class Quantised:
    """Matrices are held in so few bits, each group of numbers with a scale and a least value, as MLX does."""

    bits: int
    group: int
    told: bool = True

    def plant(self, site: Site) -> None:
        model = Tensors(site)
        kept: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
        for name, (shape, raw) in model.tensors.items():
            if name.endswith("_proj.weight"):
                kept |= self._packed(name.removesuffix("weight"), shape, model.numbers(name))
            else:
                kept[name] = ("BF16", shape, raw)
        header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
        body = bytearray()
        for name, (kind, shape, raw) in kept.items():
            place = [len(body), len(body) + len(raw)]
            header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": place}
            body += raw
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        (site.folder / WEIGHTS).write_bytes(len(head).to_bytes(8, "little") + head + body)
        if self.told:
            Json("config.json", {"quantization": {"group_size": self.group, "bits": self.bits}}).plant(site)

    def _packed(
        self, begin: str, shape: tuple[int, ...], numbers: list[float]
    ) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
        rows, columns = shape
        words, scales, least = [], [], []
        each = WORD // self.bits
        for at in range(0, len(numbers), self.group):
            group = numbers[at : at + self.group]
            low = _short(min(group))
            step = _short((max(group) - low) / ((1 << self.bits) - 1)) or 1.0
            held = [max(0, min((1 << self.bits) - 1, round((n - low) / step))) for n in group]
            words += [
                sum(held[i + j] << (j * self.bits) for j in range(each)) for i in range(0, self.group, each)
            ]
            scales.append(step)
            least.append(low)
        groups = (rows, columns // self.group)
        return {
            f"{begin}weight": ("U32", (rows, columns // each), struct.pack(f"<{len(words)}I", *words)),
            f"{begin}scales": ("BF16", groups, b"".join(struct.pack("<f", n)[2:] for n in scales)),
            f"{begin}biases": ("BF16", groups, b"".join(struct.pack("<f", n)[2:] for n in least)),
        }


def _short(number: float) -> float:
    """A number as bfloat16 holds it."""
    return float(struct.unpack("<f", b"\0\0" + struct.pack("<f", number)[2:])[0])
