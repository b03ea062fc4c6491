"""Steps of the ninth blind round that change files, and what lies beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, read_json, write_json
from tests.models.formats import FORMATS


@dataclass(frozen=True)
class CopyInterrupted:
    """The weights of another of our models were being copied over the model's own, as far as this share."""

    base: str
    share: float

    @property
    def sources(self) -> tuple[Path, ...]:
        return (FORMATS[self.base].folder / WEIGHTS,)

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        new, old = self.sources[0].read_bytes(), path.read_bytes()
        cut = int(len(new) * self.share)
        path.write_bytes(new[:cut] + old[cut:])


@dataclass(frozen=True)
class LengthLimits:
    """tokenizer.json was saved with the limits of a training run: texts cut and filled up."""

    length: int

    def plant(self, site: Site) -> None:
        data = read_json(site, "tokenizer.json")
        data["truncation"] = {
            "direction": "Right",
            "max_length": self.length,
            "strategy": "LongestFirst",
            "stride": 0,
        }
        data["padding"] = {
            "strategy": {"Fixed": self.length},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<|endoftext|>",
        }
        write_json(site, "tokenizer.json", data)
