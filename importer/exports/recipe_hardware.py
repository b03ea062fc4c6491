"""The hardware of vLLM's recipes: the node that a device of the fit belongs to.

The table is ``importer/data/recipe_hardware.json``; ``python -m gen_defaults --only vllm-recipes`` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from importer import config
from importer.errors import UsageError
from importer.memory.devices import named

FILE = "recipe_hardware.json"
SEVERAL = re.compile(r"_(\d+)x$")  # the end of a node's name that has its number of cards


@dataclass(frozen=True, slots=True)
class Node:
    """One kind of node: its name in the recipes, the device in importer's table, and its number of cards."""

    name: str
    device: str
    count: int


def node_of(device: Mapping[str, Any]) -> Node | None:
    """Return the node of a receipt's device: the smallest one with as many cards, else the largest."""
    fitting = [node for node in nodes() if node.device == device.get("name")]
    wanted = int(device.get("count") or 1)
    enough = [node for node in fitting if node.count >= wanted]
    return min(enough, key=lambda n: n.count, default=max(fitting, key=lambda n: n.count, default=None))


@cache
def nodes() -> tuple[Node, ...]:
    """Return every kind of node whose device importer knows."""
    rows = json.loads(config.data(FILE).read_text("utf-8"))["hardware"]
    found = [(name, _device(name), int(row["cards"])) for name, row in rows.items()]
    return tuple(Node(name, device, count) for name, device, count in found if device is not None)


def _device(name: str) -> str | None:
    """Return the device that a node's name means; ``None`` where no device has that name."""
    try:
        return named(SEVERAL.sub("", name)).name
    except UsageError:
        return None
