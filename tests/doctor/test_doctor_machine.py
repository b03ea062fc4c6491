"""The doctor on the machine: folders, disk, port, limits, memory, cards; traps planted where they can be."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from importer.demo import MODEL
from importer.engines import get
from importer.engines.doctor import DoctorCase, host, memory
from tests.doctoring import DOCUMENT, engine, fine, skipped, stopped, system, warned

# The machine


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fine(host.disk(DoctorCase(home=tmp_path)))
    monkeypatch.setitem(host.SIZES, "mlx", 10**15)
    case = DoctorCase(home=tmp_path, engine=get("mlx"))
    warned(host.disk(case), "GB are to come there", "IMPORTER_HOME")
    heavy = {"weights": {"likely": 10**15}}
    stopped(host.disk(replace(case, fit=heavy)), "1000000.0 GB", "HF_HUB_CACHE")
    warned(host.disk(replace(case, fit=heavy, weights=tmp_path)), "IMPORTER_HOME")
    fine(host.disk(DoctorCase(home=tmp_path, fit={"weights": {"likely": 1}})))


def test_a_port_that_is_bound() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        stopped(host.port(DoctorCase(port=number)), f"Port {number} is taken", "another port")
    fine(host.port(DoctorCase(port=number)))
    fine(host.port(DoctorCase()))


def test_shared_memory_for_several_workers(tmp_path: Path) -> None:
    (tmp_path / "dev" / "shm").mkdir(parents=True)
    one, many = {"tensor_parallel_size": 1}, {"engine_args": {"pipeline_parallel_size": 10**9}}
    case = DoctorCase(root=tmp_path, engine=get("vllm-cuda"), document=many)
    stopped(host.shared_memory(case), "1,000,000,000 workers", "--shm-size")
    stopped(host.shared_memory(replace(case, root=tmp_path / "none")), "0 MiB free", "--shm-size")
    fine(host.shared_memory(replace(case, document={"tensor_parallel_size": 2})), "2 workers")
    skipped(host.shared_memory(replace(case, document=one)))
    skipped(host.shared_memory(replace(case, engine=get("mlx"))))


# Memory


def test_memory_of_a_machine(tmp_path: Path) -> None:
    fine(memory.memory(DoctorCase(root=tmp_path, free=8_200_000_000)), "8.2 GB")
    warned(memory.memory(DoctorCase(root=tmp_path, free=1_000_000_000)), "1.0 GB")
    assert 2**20 < memory.available(DoctorCase()) < psutil.virtual_memory().total


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
    assert memory.available(case) == 1_000_000_000
    fine(memory.memory(case))
    heavy = {"weights": {"low": 2 * 10**9, "likely": 3 * 10**9, "high": 3 * 10**9}}
    stopped(memory.memory(replace(case, weights=None, fit=heavy)), "2.4 GB at least", "container's limit")
    unsure = {"weights": {"low": 10**8, "likely": 3 * 10**9, "high": 3 * 10**9}}
    warned(memory.memory(replace(case, weights=None, fit=unsure)), "about 3.4 GB")


def test_a_limit_that_is_none(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
    }
    assert memory.available(DoctorCase(root=system(tmp_path, files), free=5_120_000_000)) == 5_120_000_000


def test_vllm_takes_its_cache_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    case = DoctorCase(root=tmp_path, free=3_072_000_000, swap=0, engine=get("vllm-cpu"), weights=MODEL)
    greedy = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 4 * 10**9}}
    stopped(memory.memory(replace(case, document=greedy)), "VLLM_CPU_KVCACHE_SPACE")
    modest = {"name": "toy", "engine_args": {"kv_cache_memory_bytes": 10**8}}
    fine(memory.memory(replace(case, document=modest)))
    swapping = replace(case, free=102_400_000, swap=9_216_000_000)
    stopped(memory.memory(replace(swapping, document=modest)))  # vLLM counts on no swap
    warned(memory.memory(replace(swapping, engine=get("mlx"), document=modest)))
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "8")  # is heard before the option
    stopped(memory.memory(replace(case, document=modest)), "10.")
    skipped(memory.memory(replace(case, engine=get("sglang"), document=modest)))


# Graphics: planted, since no test machine has a card or is a Mac


def test_a_driver_that_is_too_old_and_a_card_that_is_none(tmp_path: Path) -> None:
    said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Dec  6 16:16:02 UTC 2023\nGCC version:\n"
    torch = "__version__ = '2.13.0'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    case = engine(tmp_path, "vllm-cuda", {}, {"torch/version.py": torch}, root=tmp_path)
    served = replace(case, document=DOCUMENT)
    warned(host.driver(case), "vllm-cuda serves on NVIDIA cards", "parsers")
    stopped(host.driver(served), "none", "on a machine with")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("535.129.03")})
    stopped(host.driver(served), "no card is to be seen", "--gpus all")
    system(tmp_path, {"dev/nvidia0": ""})
    stopped(host.driver(served), "535.129.03, CUDA 13.0", "driver 580")
    system(tmp_path, {"usr/local/cuda-13.0/compat/libcuda.so.1": ""})
    warned(host.driver(served), "driver 580")
    system(tmp_path, {"proc/driver/nvidia/version": said.format("580.95.05")})
    fine(host.driver(served), "driver 580.95.05, CUDA 13.0")
    system(case.places()[0], {"torch/version.py": torch.replace("'13.0'", "None")})
    stopped(host.driver(served), "for processors", "engine remove vllm-cuda")
    (case.places()[0] / "torch" / "version.py").unlink()
    skipped(host.driver(served))
    skipped(host.driver(replace(served, engine=get("mlx"))))
    skipped(host.driver(DoctorCase()))


def test_cards_that_are_too_few_or_too_full() -> None:
    gib = 2**30
    case = DoctorCase(engine=get("vllm-cuda"), document={"name": "toy", "tensor_parallel_size": 2})
    stopped(memory.of_cards(case, [(70 * gib, 80 * gib)]), "wants 2 cards, and 1 are here")
    stopped(memory.of_cards(case, [(79 * gib, 80 * gib), (20 * gib, 80 * gib)]), "90%", "lower")
    fine(memory.of_cards(case, [(79 * gib, 80 * gib)] * 2), "2 of 2")
    less = {"gpu_memory_utilization": 0.2}
    fine(memory.of_cards(replace(case, document=less), [(20 * gib, 80 * gib)]))
    skipped(memory.of_cards(case, []))
