"""The table of devices, how --device and --memory are read, and what nvidia-smi says of this machine."""

from __future__ import annotations

import json
import stat
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from importer.cli.messages import hint
from importer.engines import machine
from importer.errors import Setting, UsageError
from importer.memory import devices
from importer.memory.devices import GIB, named, size
from importer.service import messages as over_http

SCHEMA = json.loads(files("importer").joinpath("data", "devices.schema.json").read_text("utf-8"))


def problems(data: Any) -> list[str]:
    return [e.message for e in Draft202012Validator(SCHEMA).iter_errors(data)]


def test_the_table_is_valid() -> None:
    assert problems(devices.raw()) == []
    assert set(devices.raw()["kinds"]) == {"cuda", "rocm", "metal", "cpu", "xpu", "tpu", "npu"}


def test_every_card_has_memory_and_capability_and_less_than_its_name_says() -> None:
    for device in devices.known().values():
        assert device.native >= ({"fp32", "bf16"} if device.kind == "tpu" else {"fp32", "fp16"})
        if device.is_card:
            assert device.memory
            assert (device.kind == "cuda") == bool(device.capability)
            assert device.bandwidth
            assert device.bandwidth > 10**11
            assert device.kind == "cuda" or device.engine, "the released vLLM is for NVIDIA's cards"
            _, _, gb = device.name.rpartition("-")
            assert not gb.removesuffix("g").isdecimal() or device.memory < int(gb[:-1]) * GIB


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("h100-80g", "h100-80g", 1), ("RTX 4090", "rtx4090", 1), ("mi300xx8", "mi300x", 8),
        ("M3 Max 64G", "m3-max-64g", 1), ("1xcpu", "cpu", 1), ("H100", "h100-80g", 1),
        ("dgx_station_gb300", "dgx-station", 1), ("trillium", "tpu-v6e", 1),
        ("RTX 2080 Ti 22G", "rtx2080ti-22g", 1), ("rtx_4060_ti", "rtx4060ti-16g", 1),
        ("jetson-orin", "jetson-orin-64g", 1), ("Strix Halo", "strix-halo", 1), ("rtx_4090_2x", "rtx4090", 2),
        ("4xxeon6", "xeon6", 4),
    ],
)  # fmt: skip
def test_names_in_every_form(text: str, name: str, count: int) -> None:
    device = named(text)
    assert (device.name, device.count) == (name, count)
    assert named(device.label) == device


def test_what_cards_calculate_in_follows_from_their_capability() -> None:
    has = {n: d.native for n, d in devices.known().items()}
    assert "bf16" not in has["t4"] | has["v100-32g"]
    assert "bf16" in has["a100-80g"] - {"fp8"}
    assert "fp8" not in has["a100-80g"] | has["rtx3090"]
    assert "fp8" in has["rtx4090"] & has["l4"] & has["h100-80g"] & has["mi300x"]
    assert "nvfp4" in has["b200"] & has["rtx5090"] & has["dgx-spark"]
    assert "nvfp4" not in has["h200"] | has["mi300x"]


def test_an_assumed_memory_keeps_more_free_and_a_given_one_does_not() -> None:
    assert named("b300").doubt == 0
    assert named("gb300").doubt > 8 * GIB
    assert named("gb300").with_memory(267 * GIB).doubt == 0
    assert {named(n).shared for n in ("dgx-spark", "jetson-thor", "jetson-orin", "strix-halo")} == {True}
    for device in devices.known().values():
        assert ("not seen in a log" in device.source) <= (device.basis == "assumed"), device.name


def test_what_an_engine_may_fill() -> None:
    assert named("m1-16g").share == pytest.approx(2 / 3, abs=0.001)
    assert named("m3-max-64g").share == 0.75
    assert named("h200").share == 0.92
    assert named("dgx-spark").share == 0.8
    assert named("m3-max-64g").with_memory(16 * GIB).share == pytest.approx(2 / 3, abs=0.001)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("h10", "h100-80g"), ("rtx490", "rtx4090"), ("m3max", "m3-max-36g"), ("", "Unknown device"),
    ],
)  # fmt: skip
def test_a_wrong_name_gets_near_ones_and_the_list(text: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(text)
    assert caught.value.kind == "unknown-device"
    assert near in caught.value.message
    assert "'importer info devices' lists all" in hint(caught.value)
    assert "GET /v1/devices lists all" in over_http.hint(caught.value)


@pytest.mark.parametrize("text", ["٢xh100", "h100x٢", "２xh100", "rtx_4090_٢x", "²xh100", "१xh100"])
def test_a_number_is_of_ascii_digits(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(text)
    assert caught.value.kind == "unknown-device"


@pytest.mark.parametrize("text", ["0xh200", "999xh200", "2xm3-max-64g", "4xcpu"])
def test_wrong_numbers(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(text)
    assert caught.value.kind == "bad-value"


@given(st.text())
def test_any_text_is_a_device_or_a_sentence(text: str) -> None:
    for read in (named, size):
        try:
            read(text)
        except UsageError:
            continue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48GiB", 48 * GIB), ("48G", 48 * GIB), ("48GB", 48 * 10**9), ("1.5 TiB", 1536 * GIB),
    ],
)  # fmt: skip
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "48", "G", "-3G", "1e3G", "48 hours", "0GiB", "9999999TiB", "٤GiB"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        size(text)
    assert caught.value.details["setting"] is Setting.MEMORY


def cards(text: str) -> tuple[int, float, str | None]:
    found = machine.read_cards(text, 120 * GIB)
    assert found is not None
    assert (found.kind, found.name) == ("cuda", machine.NAME)
    assert found.memory is not None
    return found.count, round(found.memory / GIB, 2), found.capability


def test_what_nvidia_smi_says() -> None:
    h100 = "NVIDIA H100 80GB HBM3, 81559, 551, 9.0\n"
    assert cards(h100 * 8) == (8, 79.11, "9.0")
    assert cards("NVIDIA GeForce RTX 3090, 24576\n") == (1, 23.64, None)
    assert cards("NVIDIA GB10, [N/A], [N/A], 12.1\n") == (1, 120.0, "12.1")
    assert cards("NVIDIA T400 4GB, 4096, 200, 7.5\n" + h100 * 2) == (2, 79.11, "9.0")
    assert machine.read_cards("", GIB) is None
    two = machine.read_cards(f"{h100.strip()}, 81008\n{h100.strip()}, 30000\n", GIB)
    assert two is not None
    assert two.free == 30_000 << 20, "of the card with the least"


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    total = machine.total_memory()
    assert 2**28 < total < 2**50
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    monkeypatch.setattr(machine, "node_memory", list)
    for here in (machine.this_machine("vllm"), machine.this_machine("mlx")):
        assert (here.kind, here.count) == ("cpu", 1)
        assert here.memory == (total // GIB * GIB if total > 4 * GIB else total)
    monkeypatch.setattr("sys.platform", "darwin")
    assert [machine.this_machine(b).kind for b in ("mlx", "mlx-vlm", "vllm")] == ["metal", "metal", "cpu"]


def test_a_container_has_what_it_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    total = machine.total_memory()
    limits = [tmp_path / "max", tmp_path / "v1", tmp_path / "absent"]
    monkeypatch.setattr(machine, "LIMITS", limits)
    limits[0].write_text("max\n")
    limits[1].write_text(f"{2**62}\n")
    assert machine.total_memory() == total
    limits[0].write_text(f"{2**28}\n")
    assert machine.total_memory() == 2**28


def test_vllm_on_processors_has_a_worker_for_each_memory_node(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    monkeypatch.setattr(machine, "NODES", tmp_path)
    monkeypatch.setattr(machine, "STATUS", tmp_path / "status")
    (tmp_path / "status").write_text("Mems_allowed:\tf\nMems_allowed_list:\t0-1,3\n")
    for node, kb in enumerate((300_000, 200_000, 100_000, 400_000)):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "meminfo").write_text(
            f"Node {node} MemTotal:  {kb} kB\nNode 0 MemFree: 1 kB\n"
        )
    here = machine.this_machine("vllm")
    assert (here.count, here.memory, here.label) == (3, 200_000 * 1024, machine.NAME)
    (tmp_path / "status").write_text("")
    assert machine.node_memory() == [300_000 * 1024]


@pytest.mark.parametrize(
    ("does", "count"),
    [
        ('case "$*" in *reserved*) exit 2;; esac; echo "NVIDIA L4, 23034"', 1),
        ('case "$*" in *--id=0,1*) for i in 0 1; do echo "NVIDIA L4, 23034, 494, 8.9"; done;; esac', 2),
        ("exit 9", None),
        (r"printf '\xff\xfe'", None),
    ],
)
def test_the_program_itself_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str, count: int | None
) -> None:
    """An older program that does not know all fields; cards that are hidden; one that fails."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(machine, "has_gpu", lambda: True)
    machine._cards.cache_clear()
    here = machine.this_machine("vllm")
    machine._cards.cache_clear()
    assert (here.kind, here.count) == (("cpu", 1) if count is None else ("cuda", count))
