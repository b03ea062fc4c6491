"""What this machine has to serve from: its memory, or the NVIDIA cards that are not hidden."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import psutil

from importer import launcher
from importer.engines.vllm import has_gpu
from importer.launcher import Purpose
from importer.memory.devices import GIB, Device, Kind, of_kind

NAME = "this machine"
SECONDS = 10.0  # that nvidia-smi may take
MIB = 2**20
FREE = ("--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits")
HELD_BACK = 0.985  # of the memory on the card, where the driver does not say what it keeps for itself
STATUS = Path("/proc/self/status")
NODES = Path("/sys/devices/system/node")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def this_machine(backend: str, *, cards: bool = True) -> Device:
    """Return what the backend would run on here; vLLM takes ``cards`` where there are any, MLX what Apple
    built in.

    On processors vLLM has one worker for each memory node, bound to the memory of that node.
    """
    if backend == "vllm" and cards and has_gpu():
        found = _cards()
        if found is not None:
            return found
    if backend == "vllm":
        nodes = node_memory()
        if (
            len(nodes) > 1
        ):  # a single node is all there is, and grows with the memory of some virtual machines
            return _own("cpu", min(total_memory() // len(nodes), *nodes), len(nodes))
    apple = sys.platform == "darwin" and backend != "vllm"
    return _own("metal" if apple else "cpu", total_memory())


def _own(kind: Kind, memory: int, count: int = 1) -> Device:
    """In whole GiB where there are many: what a system reports varies a little from boot to boot."""
    return of_kind(kind, NAME, memory // GIB * GIB if memory > 4 * GIB else memory, count=count)


def total_memory() -> int:
    """Return bytes of memory, or of what a container may use of it."""
    return min([psutil.virtual_memory().total, *(limit for limit in map(_number, LIMITS) if limit)])


def node_memory() -> list[int]:
    """Return the bytes of each memory node that this process may use; nothing where the system has none.

    psutil knows no memory nodes.
    """
    found = re.search(r"^Mems_allowed_list:\s*([\d,-]+)", _text(STATUS), re.MULTILINE)
    spans = [span.partition("-") for span in (found[1] if found else "0").split(",") if span]
    allowed = [n for first, _, last in spans for n in range(int(first), int(last or first) + 1)]
    told = (re.search(r"MemTotal:\s*(\d+) kB", _text(NODES / f"node{n}" / "meminfo")) for n in allowed)
    return [int(total[1]) * 1024 for total in told if total]


@cache
def _cards() -> Device | None:
    """Return the cards of one model; of several models, that which has the most memory together."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    for fields in ("name,memory.total,memory.reserved,compute_cap", "name,memory.total"):
        told = _ask([program, *_visible(), f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
        if told:
            return read_cards(told, total_memory())
    return None


def card_memory() -> list[tuple[int, int]]:
    """Return bytes that are free and bytes in all of each card that is not hidden; nothing where nobody
    tells.
    """
    program = shutil.which("nvidia-smi")
    told = _ask([program, *_visible(), *FREE]) if program is not None else ""
    cells = [[cell.strip() for cell in line.split(",")] for line in told.splitlines()]
    return [(int(c[0]) * MIB, int(c[1]) * MIB) for c in cells if len(c) == 2 and all(map(str.isdecimal, c))]


def _visible() -> list[str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [f"--id={visible}"] if re.fullmatch(r"[\w-]+(,[\w-]+)*", visible, re.ASCII) else []


def read_cards(text: str, system: int) -> Device | None:
    """Return the answer of nvidia-smi; ``system`` bytes of memory are what a card without its own shares."""
    found: Counter[tuple[str, int, str | None]] = Counter()
    for cells in ([cell.strip() for cell in line.split(",")] for line in text.splitlines()):
        if len(cells) < 2:  # no line of its table
            continue
        name, total, *more = cells
        reserved = int(more[0]) if more and more[0].isdecimal() else None
        if total.isdecimal():
            left = int(total) * HELD_BACK if reserved is None else int(total) - reserved
            memory = int(left * MIB)
        else:  # "[N/A]": the card uses the system's memory
            memory = system
        capability = more[1] if len(more) > 1 and re.fullmatch(r"\d{1,2}\.\d", more[1]) else None
        found[name, memory, capability] += 1
    if not found:
        return None
    (_, memory, capability), count = max(found.items(), key=lambda item: item[0][1] * item[1])
    return of_kind("cuda", NAME, memory, count=count, capability=capability)


def _ask(argv: list[str]) -> str:
    """Return what a program prints; nothing where it fails."""
    try:
        done = launcher.run(argv, Purpose.SYSTEM, seconds=SECONDS)
    except OSError:
        return ""
    return done.output if done.code == 0 else ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    """Return what the system says there; nothing where it does not."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
