"""Steps of a seventh round: files of a model's folder, and the machine."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.starting import Variable
from tests.faults.steps import WEIGHTS, read_json, write_json

SETTINGS = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class WordsCut:
    """The tokenizer's words from this number on are gone, and the merges that make them."""

    first: int

    def plant(self, site: Site) -> None:
        data = read_json(site, TOKENIZER)
        model = data["model"]
        kept = {word: number for word, number in model["vocab"].items() if number < self.first}
        model["vocab"] = kept
        model["merges"] = [m for m in model["merges"] if "".join(m) in kept]
        write_json(site, TOKENIZER, data)


@dataclass(frozen=True)
class TokenizerSays:
    """Members of tokenizer.json have these values, given as JSON."""

    text: str

    def plant(self, site: Site) -> None:
        write_json(site, TOKENIZER, read_json(site, TOKENIZER) | json.loads(self.text))


@dataclass(frozen=True)
class BlocksMixed:
    """Blocks of the weights' file stand where others belong, as a copy left it that wrote over itself."""

    size: int
    moved: tuple[tuple[int, int], ...]

    def plant(self, site: Site) -> None:
        path = site.folder / WEIGHTS
        old = path.read_bytes()
        data = bytearray(old)
        for to, of in self.moved:
            block = old[of * self.size : (of + 1) * self.size]
            data[to * self.size : to * self.size + len(block)] = block
        assert len(data) == len(old)
        path.write_bytes(data)


@dataclass(frozen=True)
class AtStart:
    """Python runs this before the engine: a sitecustomize that somebody left on PYTHONPATH."""

    text: str

    def plant(self, site: Site) -> None:
        folder = site.folder.parent / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(self.text, encoding="utf-8")
        Variable("PYTHONPATH", str(folder)).plant(site)
