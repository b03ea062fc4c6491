"""Merges of a tokenizer: every text still comes back whole, from other tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import Fault, Site

TOKENIZER = "tokenizer.json"
Change = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class MergesReversed:
    """The merges stand in the opposite order."""

    def plant(self, site: Site) -> None:
        _change(site, lambda merges: merges[::-1])


@dataclass(frozen=True)
class MergesLost:
    """One merge of so many is gone."""

    every: int

    def plant(self, site: Site) -> None:
        _change(site, lambda merges: [pair for place, pair in enumerate(merges) if place % self.every])


def _change(site: Site, change: Change) -> None:
    path = site.folder / TOKENIZER
    data = json.loads(path.read_text(encoding="utf-8"))
    data["model"]["merges"] = change(data["model"]["merges"])
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


FAULTS = (
    Fault(
        "merges-reversed",
        "The tokenizer was written anew with its merges in the opposite order.",
        "configuration",
        (MergesReversed(),),
        base="qwen3coder",
        mend="tokenizer",
        bitten="converters that sort by a rank of their own",
    ),
    Fault(
        "merges-half-read",
        "One merge of five is gone: a reader took them for comments.",
        "configuration",
        (MergesLost(5),),
        base="glm",
        mend="tokenizer",
        bitten="merges.txt with lines that begin with #",
    ),
)
