"""Checks of graphics: NVIDIA's driver and cards, Apple's chips."""

from __future__ import annotations

import platform
import re

from importer.engines import machine
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import GB, MLX, Case, text_of, version
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble, TroubleSeverity
from importer.reasons import Reason

DRIVER = "proc/driver/nvidia/version"
# The oldest driver that runs what was built with a CUDA: NVIDIA's pages on minor version compatibility.
OLDEST_DRIVER = {11: (450, 80, 2), 12: (525,), 13: (580,)}
MACOS = (14, 0)  # mlx's wheels are built for this and newer
SHARE = 0.9  # of each card's memory that vLLM takes unless told


def driver(case: Case) -> Result:
    """Whether the driver is new enough for the CUDA that the engine's torch was built with."""
    first = case.text(DRIVER).partition("\n")[0].removeprefix("NVRM version:").strip()
    if not case.runs("vllm-cuda"):
        none = NotApplicable(Reason(DoctorReason.DRIVER_NONE))
        return Fine(Reason(DoctorReason.DRIVER, driver=first)) if first else none
    if not first:
        return Trouble(Reason(DoctorReason.DRIVER_MISSING), Reason(DoctorRemedy.INSTALL_DRIVER))
    devices = sorted((case.root / "dev").glob("nvidia[0-9]*"))
    if not devices and not (case.root / "dev/dxg").exists():
        return Trouble(Reason(DoctorReason.DRIVER_WITHOUT_CARD), Reason(DoctorRemedy.GIVE_CARDS))
    cuda = _cuda(case)
    if cuda is None:
        return NotApplicable(Reason(DoctorReason.CUDA_UNKNOWN))
    if not cuda:
        remedy = Reason(DoctorRemedy.INSTALL_AGAIN, name="vllm-cuda")
        return Trouble(Reason(DoctorReason.TORCH_FOR_PROCESSORS), remedy)
    have = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", first)
    oldest = OLDEST_DRIVER.get(cuda[0])
    if have is None or oldest is None:
        return NotApplicable(Reason(DoctorReason.DRIVER_UNKNOWN, cuda=cuda[0]))
    built = ".".join(map(str, cuda))
    if version(have[1]) >= oldest:
        return Fine(Reason(DoctorReason.DRIVER_AND_CUDA, driver=have[1], cuda=built))
    wanted = ".".join(str(part) for part in oldest)
    old = Reason(DoctorReason.DRIVER_OLD, driver=have[1], cuda=built, wanted=wanted)
    # NVIDIA's package for forward compatibility lets some cards do with an older driver.
    helped = any((case.root / "usr/local").glob("cuda*/compat/libcuda.so*"))
    severity = TroubleSeverity.WARNING if helped else TroubleSeverity.STOPS
    return Trouble(old, Reason(DoctorRemedy.NEWER_DRIVER, wanted=wanted), severity)


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
        return NotApplicable(Reason(DoctorReason.CARDS_ELSEWHERE))
    cards = machine.card_memory()
    if not cards:
        return NotApplicable(Reason(DoctorReason.CARDS_UNKNOWN))
    return judge_cards(case, cards)


def judge_cards(case: Case, cards: list[tuple[int, int]]) -> Result:
    """The verdict on (free, total) bytes of each card."""
    document = case.document or {}
    pipeline = (document.get("engine_args") or {}).get("pipeline_parallel_size") or 1
    wanted = int(document.get("tensor_parallel_size") or 1) * int(pipeline)
    if wanted > len(cards):
        few = Reason(DoctorReason.CARDS_FEW, wanted=wanted, count=len(cards))
        return Trouble(few, Reason(DoctorRemedy.FEWER_CARDS), part=CONFIGURATION)
    share = float(document.get("gpu_memory_utilization") or SHARE)
    short = [(free, total) for free, total in cards[:wanted] if free < share * total]
    if not short:
        free = cards[0][0] / GB
        return Fine(Reason(DoctorReason.CARDS_FREE, wanted=wanted, count=len(cards), free=free))
    used = Reason(DoctorReason.CARDS_IN_USE, free=short[0][0] / GB, total=short[0][1] / GB, share=share)
    return Trouble(used, Reason(DoctorRemedy.FREE_THE_CARD))


def apple(case: Case, release: str | None = None) -> Result:
    """Whether MLX can use Apple's graphics: macOS new enough, and a Python that is not translated."""
    if case.system != "darwin" or (case.engine is not None and not case.runs(*MLX)):
        return NotApplicable(Reason(DoctorReason.APPLE_ELSEWHERE))
    if case.arch != "arm64":
        return Trouble(Reason(DoctorReason.ROSETTA, arch=case.arch), Reason(DoctorRemedy.ARM_PYTHON))
    have = version(release or platform.mac_ver()[0])
    oldest, here = _built_for(case), ".".join(map(str, have))
    if have >= oldest:
        return Fine(Reason(DoctorReason.MACOS, version=here))
    wanted = ".".join(str(part) for part in oldest)
    old = Reason(DoctorReason.MACOS_OLD, version=here, wanted=wanted)
    return Trouble(old, Reason(DoctorRemedy.UPDATE_MACOS, wanted=wanted))


def _built_for(case: Case) -> tuple[int, ...]:
    """The oldest macOS in the tags of the mlx that is installed; else of its releases."""
    mlx = case.packages().get("mlx")
    tags = (
        re.findall(r"^Tag: .*macosx_(\d+)_(\d+)_", text_of(mlx.info / "WHEEL"), re.MULTILINE) if mlx else []
    )
    return min(((int(major), int(minor)) for major, minor in tags), default=MACOS)
