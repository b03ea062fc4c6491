"""Steps that change what tensors of bfloat16 hold, and in which file they lie."""

from __future__ import annotations

import array
import json
import struct
import sys
from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.steps import WEIGHTS, save_tensors, tensors, weights_of

INDEX = "model.safetensors.index.json"
SHARD = "model-{}-of-00002.safetensors"


@dataclass(frozen=True)
class Added:
    """To each number of the tensors whose names end so, this is added."""

    end: str
    amount: float

    def plant(self, site: Site) -> None:
        with weights_of(site) as (names, data):
            for name in (n for n in names if n.endswith(self.end)):
                first, last = names[name]["data_offsets"]
                data[first:last] = _added(data[first:last], self.amount)


@dataclass(frozen=True)
class RowsEmpty:
    """So many rows of a tensor hold nothing."""

    tensor: str
    first: int
    count: int

    def plant(self, site: Site) -> None:
        with weights_of(site) as (names, data):
            start, end = names[self.tensor]["data_offsets"]
            width = (end - start) // names[self.tensor]["shape"][0]
            at = start + self.first * width
            data[at : at + self.count * width] = bytes(self.count * width)


@dataclass(frozen=True)
class HalvesInterleaved:
    """Of each ``rows`` rows of the tensors whose names end so, those of the two halves come in turns."""

    ends: tuple[str, ...]
    rows: int

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        half = self.rows // 2
        order = [row for i in range(half) for row in (i, i + half)]
        for name in (n for n in names if n.endswith(self.ends)):
            first, last = names[name]["data_offsets"]
            width = (last - first) // names[name]["shape"][0]
            old = bytes(data[first:last])
            block = self.rows * width
            data[first:last] = b"".join(
                old[at + row * width : at + (row + 1) * width]
                for at in range(0, len(old), block)
                for row in order
            )
        save_tensors(site, names, data)


@dataclass(frozen=True)
class ShardMissing:
    """The weights come in two files, as their index says; the one that holds these tensors is not there."""

    begin: str

    def plant(self, site: Site) -> None:
        names, data = tensors(site)
        lost = [name for name in names if name.startswith(self.begin)]
        every = [name for name in names if name != "__metadata__"]
        held = {name: SHARD.format("00002" if name in lost else "00001") for name in every}
        index = {"metadata": {"total_size": len(data)}, "weight_map": held}
        (site.folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
        # What is left lies end to end, as the format wants it.
        left, body = {}, bytearray()
        for name in sorted((n for n in every if n not in lost), key=lambda n: names[n]["data_offsets"]):
            first, last = names[name]["data_offsets"]
            left[name] = names[name] | {"data_offsets": [len(body), len(body) + last - first]}
            body += data[first:last]
        save_tensors(site, {"__metadata__": {"format": "pt"}} | left, body)
        (site.folder / WEIGHTS).rename(site.folder / SHARD.format("00001"))


def _added(numbers: bytes | bytearray, amount: float) -> bytes:
    """bfloat16 is the upper half of a float of four bytes."""
    halves = array.array("H", bytes(numbers))
    if sys.byteorder == "big":
        halves.byteswap()
    told = [struct.unpack("<f", struct.pack("<I", half << 16))[0] + amount for half in halves]
    return b"".join(struct.pack("<f", number)[2:] for number in told)
