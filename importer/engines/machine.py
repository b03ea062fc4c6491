"""The devices of this machine: its memory, or the NVIDIA cards that are not hidden."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

from importer import backends, launcher
from importer.launcher import Purpose
from importer.memory.devices import GIB, Device, Kind, of_kind

NAME = "this machine"
SECONDS = 10.0  # limit for nvidia-smi
MIB = 2**20
LONGEST = 40  # characters of a program's name
HELD_BACK = 0.985  # of the memory on the card, where the driver does not report its own share
STATUS = Path("/proc/self/status")
NODES = Path("/sys/devices/system/node")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def this_machine(backend: str, *, cards: bool = True) -> Device:
    """Return the device that the backend runs on here; vLLM on ``cards`` if there are any, MLX on Metal.

    On processors vLLM has one worker for each memory node, bound to the memory of that node.
    """
    if backends.of(backend).on_cards and cards and has_gpu():
        device = _cards()
        if device is not None:
            return device
    if backend == "vllm":
        nodes = node_memory()
        if len(nodes) > 1:  # a single node is the machine, and grows with the memory of some virtual ones
            return _own("cpu", min(total_memory() // len(nodes), *nodes), len(nodes))
    apple = sys.platform == "darwin" and not backends.of(backend).on_cards
    return _own("metal" if apple else "cpu", total_memory())


def computes_bfloat16(info: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether the processor multiplies bfloat16 itself; also where the system does not say."""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", _text(info), re.MULTILINE)
    return flags is None or not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(flags[1].split())


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Return whether an NVIDIA card can be used: its device exists and is not hidden."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in {"", "-1"}
    return not hidden and ((devices / "nvidia0").exists() or (devices / "dxg").exists())


def _own(kind: Kind, memory: int, count: int = 1) -> Device:
    """Return the machine as a device, in whole GiB above four: systems report a little more or less at
    each boot.
    """
    return of_kind(kind, NAME, memory // GIB * GIB if memory > 4 * GIB else memory, count=count)


def total_memory() -> int:
    """Return the bytes of memory, or of the limit of a container."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for limit in map(_number, LIMITS) if limit)])


def node_memory() -> list[int]:
    """Return the bytes of each memory node that this process may use; none where the system has no nodes.

    psutil has no memory nodes.
    """
    match = re.search(r"^Mems_allowed_list:\s*([\d,-]+)", _text(STATUS), re.MULTILINE)
    spans = [span.partition("-") for span in (match[1] if match else "0").split(",") if span]
    allowed = [n for first, _, last in spans for n in range(int(first), int(last or first) + 1)]
    totals = (re.search(r"MemTotal:\s*(\d+) kB", _text(NODES / f"node{n}" / "meminfo")) for n in allowed)
    return [int(total[1]) * 1024 for total in totals if total]


@cache
def _cards() -> Device | None:
    """Return the cards of one model; of several models, the one with the most memory together."""
    for fields in ("name,memory.total,memory.reserved,compute_cap,memory.free", "name,memory.total"):
        if table := _queried(fields):
            return read_cards(table, total_memory())
    return None


def cards_named() -> list[tuple[str, str]]:
    """Return name and driver of each card that is not hidden; none without nvidia-smi."""
    return [(row[0], row[1]) for row in _rows(_queried("name,driver_version")) if len(row) == 2]


def card_memory() -> list[tuple[int, int]]:
    """Return free and total bytes of each card that is not hidden; none without nvidia-smi."""
    rows = _rows(_queried("memory.free,memory.total"))
    return [(int(c[0]) * MIB, int(c[1]) * MIB) for c in rows if len(c) == 2 and all(map(str.isdecimal, c))]


def card_holders() -> list[str]:
    """Return the programs on the cards that are not hidden, each with its process and its memory; none
    without nvidia-smi.
    """
    table = _queried("process_name,pid,used_memory", of="compute-apps")
    rows = [[cell.strip() for cell in line.rsplit(",", 2)] for line in table.splitlines()]
    shown = [(name, pid, size) for name, pid, size in (row for row in rows if len(row) == 3)]
    return [
        f"{Path(name).name[:LONGEST]} (process {pid}, {f'{int(size):,} MiB' if size.isdecimal() else size})"
        for name, pid, size in shown
    ]


def read_cards(text: str, system: int) -> Device | None:
    """Return the device in the output of nvidia-smi; ``system`` bytes are the memory of a card without
    its own.
    """
    counts: Counter[tuple[str, int, str | None]] = Counter()
    unused: dict[tuple[str, int, str | None], int] = {}
    for cells in _rows(text):
        if len(cells) < 2:  # not a line of the table
            continue
        name, total, *more = cells
        reserved = int(more[0]) if more and more[0].isdecimal() else None
        if total.isdecimal():
            left = int(total) * HELD_BACK if reserved is None else int(total) - reserved
            memory = int(left * MIB)
        else:  # "[N/A]": the card uses the system's memory
            memory = system
        capability = more[1] if len(more) > 1 and re.fullmatch(r"\d{1,2}\.\d", more[1]) else None
        counts[one := (name, memory, capability)] += 1
        if len(more) > 2 and more[2].isdecimal():
            unused[one] = min(int(more[2]) * MIB, unused.get(one, memory))
    if not counts:
        return None
    one, count = max(counts.items(), key=lambda item: item[0][1] * item[1])
    _, memory, capability = one
    device = of_kind("cuda", NAME, memory, count=count, capability=capability)
    return replace(device, free=unused.get(one))


def _queried(fields: str, of: str = "gpu") -> str:
    """Return the table of nvidia-smi for the cards that are not hidden; empty where it fails or is absent."""
    program, visible = shutil.which("nvidia-smi"), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [f"--id={visible}"] if re.fullmatch(r"[\w-]+(,[\w-]+)*", visible, re.ASCII) else []
    if program is None:
        return ""
    try:
        argv = [program, *chosen, f"--query-{of}={fields}", "--format=csv,noheader,nounits"]
        done = launcher.run(argv, Purpose.SYSTEM, seconds=SECONDS)
    except OSError:
        return ""
    return done.output if done.code == 0 else ""


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in table.splitlines()]


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    """Return the text of a system file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
