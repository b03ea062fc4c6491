"""Devices by name: their memory, the share that an engine may fill, and their native number formats.

The table is ``importer/data/devices.json``; benchmarks/fit.md describes every key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal

from importer import backends, config
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

Kind = Literal["cuda", "rocm", "metal", "cpu", "xpu", "tpu", "npu"]
Basis = Literal["seen", "vendor", "assumed", "measured", "given"]
# How the memory of a device is known, and the makers of the kinds, in words.
BASES: Mapping[Basis, str] = {"seen": "seen in a log", "vendor": "vendor's", "assumed": "assumed"}
MAKERS: Mapping[Kind, str] = {
    "cuda": "NVIDIA's cards", "rocm": "AMD's cards", "metal": "Apple's machines", "cpu": "processors",
    "xpu": "Intel's cards", "tpu": "Google's TPUs", "npu": "Ascend's cards",
}  # fmt: skip
ASSUMED = 0.04  # that a memory assumed from other devices may be short of itself
HERE = "this machine"  # the source of its own figures
BY_MAKER: Mapping[str, Kind] = {
    "nvidia": "cuda", "amd": "rocm", "apple": "metal", "cpu": "cpu", "intel": "xpu", "google": "tpu",
    "ascend": "npu",
}  # fmt: skip
CARDS = ("cuda", "rocm", "xpu", "tpu", "npu")
GIB = 2**30
GB = 10**9
MOST = 128  # of one kind
STORED = ("name", "count", "kind", "memory", "share", "capability", "basis", "source", "node", "engine")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])(i?b)?", re.IGNORECASE | re.ASCII)
# Number formats of NVIDIA's cards, and the least compute capability for each.
FROM_CAPABILITY = {"fp32": (0, 0), "fp16": (5, 3), "bf16": (8, 0), "fp8": (8, 9), "nvfp4": (10, 0)}


class DeviceReason(ReasonKind):
    """Reasons why a device or an amount of memory is invalid."""

    COUNT = "from 1 to {most} of a kind"
    SIZE_FORM = "it is a number and a unit, such as 48GiB or 800MB"
    SIZE_RANGE = "from 1 MiB to 1024 TiB"
    NEAR = "Did you mean {names:or}?"
    WHOLE_MACHINE = "{device} is a whole machine, and engines do not spread over several"


class UnsuitedReason(ReasonKind):
    """Why an engine does not run on a device."""

    NOT_ON_APPLE = "{backend} does not run on Apple's graphics; choose the backend mlx or another device"
    ONLY_ON_APPLE = "{backend} does not run on cards; choose the backend vllm or one of Apple's devices"


@frozen
class Device:
    """One or several devices of a kind.

    ``memory``   bytes of one device, as programs see it; ``None`` for this machine's own memory.
    ``share``    the part of it that an engine may fill.
    ``native``   number formats in hardware, of ``fp32``, ``fp16``, ``bf16``, ``fp8``, ``nvfp4``.
    ``basis``    how the memory is known; this machine's was measured, and that of ``--memory`` given.
    ``source``   the source of the figures.
    ``node``     devices in one machine; more of them are several machines.
    ``bandwidth``  bytes a second of its memory, ``link`` of its links to the others, where they are known.
    ``shared``   whether its memory is the system's as well.
    ``free``     bytes of one device that nothing uses at the moment, of this machine's own cards.
    ``engine``   what serves it in place of the released engine; ``None``: nothing else is required.
    """

    name: str
    kind: Kind
    memory: int | None
    share: float
    native: frozenset[str]
    source: str
    count: int = 1
    capability: str | None = None
    node: int = 8
    bandwidth: int | None = None
    link: int | None = None
    shared: bool = False
    engine: str | None = None
    basis: Basis = "measured"
    free: int | None = None

    @property
    def doubt(self) -> int:
        """Return the bytes that one device may have less."""
        return int((self.memory or 0) * ASSUMED) if self.basis == "assumed" else 0

    @property
    def label(self) -> str:
        """Return the name for ``--device``, such as ``8xh100-80g``; this machine's nodes have no count."""
        whole = self.count == 1 or (self.kind == "cpu" and self.source == HERE)
        return self.name if whole else f"{self.count}x{self.name}"

    @property
    def title(self) -> str:
        """Return the label for messages, with the memory where ``--memory`` gave it."""
        return f"{self.label} ({(self.memory or 0) / GIB:.3g} GiB)" if self.basis == "given" else self.label

    @property
    def is_card(self) -> bool:
        """Return whether vLLM reserves a share of its memory (``gpu_memory_utilization``)."""
        return self.kind in CARDS

    def with_memory(self, memory: int) -> Device:
        """Return the device with ``memory`` bytes each."""
        share = _share(self.kind, memory / GIB) if self.kind == "metal" else self.share
        return replace(self, memory=memory, share=share, basis="given")

    def to_json(self) -> dict[str, object]:
        """Return the device as receipts hold it."""
        return {key: getattr(self, key) for key in STORED}


def named(text: str) -> Device:
    """Return the device of ``NAME``, ``2xNAME`` or ``NAMEx2``; hyphens, blanks and case do not count.

    Raises UsageError("unknown-device") with near names, and UsageError("bad-value").
    """
    after = re.fullmatch(r"(.+)[\s_-]([0-9]{1,4})x", text.lower())  # rtx_4090_2x
    text = f"{after[2]}x{after[1]}" if after else text
    name, count = _split(re.sub(r"[\s_-]+", "", text.lower()))
    name = _aliases().get(name, name)
    device = next((d for n, d in known().items() if n.replace("-", "") == name), None)
    if device is None:
        names = _near(name)
        near = Reason(DeviceReason.NEAR, names=names) if names else ""
        raise UsageError("unknown-device", name=text, near=near)
    if not 0 < count <= MOST:
        problem = Reason(DeviceReason.COUNT, most=MOST)
        raise UsageError("bad-value", setting=Setting.DEVICE, value=text, problem=problem)
    nodes = device.node if device.kind == "cpu" else 1  # memory nodes of a machine
    if count > nodes and not device.is_card:
        problem = Reason(DeviceReason.WHOLE_MACHINE, device=device.name)
        raise UsageError("bad-value", setting=Setting.DEVICE, value=text, problem=problem)
    return replace(device, count=count)


def unsuited(backend: str, device: Device) -> UnsuitedReason | None:
    """Return why an engine does not run on a device; ``None`` where it does."""
    if backends.of(backend).on_cards and device.kind == "metal":
        return UnsuitedReason.NOT_ON_APPLE
    return UnsuitedReason.ONLY_ON_APPLE if not backends.of(backend).on_cards and device.is_card else None


def short_name(label: str) -> str:
    """Return the shortest name of a device's label that the label begins with: ``8xh100`` for ``8xh100-80g``.

    A label outside of the table stays.
    """
    count, name = re.fullmatch(r"([0-9]{1,4}x)?(.+)", label, re.DOTALL).groups("")  # type: ignore[union-attr]
    names: list[str] = [name, *raw()["devices"].get(name, {}).get("also", ())]
    return str(count) + min((one for one in names if name.startswith(one)), key=len)


def _split(text: str) -> tuple[str, int]:
    """Return name and number; ``mi300x`` is a name, though it ends with an ``x``."""
    names = {n.replace("-", "") for n in known()} | _aliases().keys()
    before, after = re.fullmatch(r"([0-9]{1,4})x(.+)", text), re.fullmatch(r"(.+)x([0-9]{1,4})", text)
    if text not in names and before:
        return before[2], int(before[1])
    if text not in names and after and after[1] in names:
        return after[1], int(after[2])
    return text, 1


def size(text: str) -> int:
    """Return the bytes of ``48GiB``, ``48G`` (the same) or ``48GB``.

    Raises UsageError("bad-value").
    """
    match = SIZE.fullmatch(text.strip())
    if match is None:
        problem = Reason(DeviceReason.SIZE_FORM)
        raise UsageError("bad-value", setting=Setting.MEMORY, value=text, problem=problem)
    base = 1000 if (match[3] or "").lower() == "b" else 1024
    amount = float(match[1]) * base ** ("kmgt".index(match[2].lower()) + 1)
    if not 2**20 <= amount <= 2**50:
        problem = Reason(DeviceReason.SIZE_RANGE)
        raise UsageError("bad-value", setting=Setting.MEMORY, value=text, problem=problem)
    return int(amount)


def of_kind(kind: Kind, name: str, memory: int, *, count: int = 1, capability: str | None = None) -> Device:
    """Return a device outside the table: one of this machine."""
    share = _share(kind, memory / GIB)
    native = _native({"kind": kind, "capability": capability})
    return Device(name, kind, memory, share, native, HERE, count, capability)


@cache
def known() -> Mapping[str, Device]:
    """Return the table by name; a chip with several sizes has a name for each."""
    devices = {}
    for name, row in raw()["devices"].items():
        sizes = {f"{name}-{gib}g": gib for gib in row.get("sizes", ())} or {name: row.get("gib")}
        for full, gib in sizes.items():
            memory = None if gib is None else int(gib * GIB)
            share = row.get("share") or _share(row["kind"], gib or 0)
            devices[full] = Device(
                full, row["kind"], memory, share, _native(row), row["source"], 1, row.get("capability"),
                row.get("node", 1), _bytes(row, "bandwidth"), _bytes(row, "link"), row.get("shared", False),
                raw()["kinds"][row["kind"]].get("engine"), row["basis"],
            )  # fmt: skip
    return devices


@cache
def _aliases() -> Mapping[str, str]:
    """Return further names of devices, without hyphens, each with the name in the table."""
    rows = raw()["devices"].items()
    return {
        other.replace("-", ""): name.replace("-", "") for name, row in rows for other in row.get("also", ())
    }


def _bytes(row: Mapping[str, Any], key: str) -> int | None:
    return int(row[key] * GB) if key in row else None


@cache
def raw() -> Mapping[str, Any]:
    """Return the file's data."""
    text = config.data("devices.json").read_text(encoding="utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


def _share(kind: Kind, gib: float) -> float:
    row = raw()["kinds"][kind]
    small = row.get("small")
    return float(small["share"] if small and gib <= small["gib"] else row["share"])


def _native(row: Mapping[str, Any]) -> frozenset[str]:
    if "native" in row:
        return frozenset(row["native"])
    if row.get("capability") is None:
        return frozenset({"fp32", "fp16", "bf16"})
    major, minor = map(int, row["capability"].split("."))
    return frozenset(name for name, since in FROM_CAPABILITY.items() if (major, minor) >= since)


def _near(name: str) -> list[str]:
    """Return suggestions: names that contain ``name``, else similar names."""
    held = [n for n in known() if name and name in n.replace("-", "")]
    return held[:8] or get_close_matches(name, known(), 4, 0.55)
