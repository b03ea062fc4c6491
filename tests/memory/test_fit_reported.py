"""What vLLM's log says of its memory, beside what was predicted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.starts import OTHERWISE, Constants, fitted, judged, starts
from importer.engines import log_figures
from importer.memory.devices import named, of_kind
from importer.memory.estimate import estimate, longest
from importer.memory.estimate_types import Amount, Load, TermReason, compare
from importer.memory.measured import Measured, Reported, contradiction, ran, scale
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.sentences import render
from tests import toy_shapes

CPU = """\
(Worker pid=19269) INFO [cpu_worker.py:260] Explicitly set (0.06/11.59) GiB for KV cache on node 0.
(EngineCore pid=18719) INFO 11-21 10:09:01 [kv_cache_utils.py:2327] CPU KV cache size: 87,296 tokens, \
Maximum concurrency for 2,048 tokens per request: 42.62x
"""
CUDA = """\
INFO [gpu_model_runner.py:5150] Model loading took 15.27 GiB memory and 3.1 seconds
INFO [gpu_worker.py:760] Available KV cache memory: 4.53 GiB
INFO [kv_cache_utils.py:2327] GPU KV cache size: 32,976 tokens, \
Maximum concurrency for 32,768 tokens per request: 1.01x
"""
CUDA_026 = """\
INFO [gpu_worker.py:498] Available KV cache memory: 23.5 GiB
INFO [kv_cache_utils.py:2071] GPU KV cache size: 32,835,152 tokens
INFO [kv_cache_utils.py:2072] Maximum concurrency for 2,048 tokens per request: 16032.79x
"""
CUDA_033 = """\
(EngineCore pid=812) INFO [gpu_model_runner.py:5150] Model loading took 15.27 GiB memory and 3.1 seconds
(EngineCore pid=812) INFO [gpu_model_runner.py:6475] Estimated CUDA graph memory: 0.40 GiB total
(EngineCore pid=812) INFO [gpu_worker.py:760] Available KV cache memory: 53.47 GiB
(EngineCore pid=812) INFO [kv_cache_utils.py:2327] GPU KV cache size: 389,312 tokens, \
Maximum concurrency for 32,768 tokens per request: 11.88x
(EngineCore pid=812) INFO [gpu_worker.py:1040] Free memory on device (78.61/79.18 GiB) on startup. \
Desired GPU memory utilization is (0.92, 72.85 GiB). Actual usage is 15.9 GiB for consumed memory (weights + \
non-torch), 3.08 GiB for peak activation, and 0.37 GiB for CUDAGraph memory. Replace gpu_memory_utilization
"""
GIB = 2**30


def measured(**changed: Any) -> Measured:
    """A start on a card of 79.2 GiB, with 19.38 GiB beside its cache."""
    load = ran(Load(32_768, dtype="bfloat16", memory=int(79.18 * GIB), capability=90))
    reported = Reported(int(15.27 * GIB), int(53.47 * GIB), 389_312, 32_768, int(3.08 * GIB), int(0.4 * GIB))
    device = {"kind": "cuda", "name": "h100-80g", "count": 1, "memory": int(79.18 * GIB), "capability": "9.0"}
    return Measured(**{
        "engine": "vllm", "version": "0.33.0", "revision": None, "at": "2026-11-26", "seconds": 61.0,
        "device": device, "load": load, "beside": int(19.38 * GIB), "reported": reported, "served": True,
        **changed,
    })  # fmt: skip


def fit(context: int, block: int = 0, blocks: int = 0, **likely: int) -> dict[str, Any]:
    terms = [{"part": part, "likely": size} for part, size in likely.items()]
    pool = {"block": block, "blocks": blocks} if blocks else None
    return {"estimate": {"load": {"context": context}, "terms": terms}, "pool": pool}


def of(*gib: float) -> list[int]:
    return [int(one * GIB) for one in gib]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CPU, Reported(None, int(0.06 * GIB), 87_296, 2048)),
        (CUDA, Reported(int(15.27 * GIB), int(4.53 * GIB), 32_976, 32_768)),
        (CUDA_026, Reported(None, int(23.5 * GIB), 32_835_152, 2048)),
        (CUDA_033, Reported(*of(15.27, 53.47), 389_312, 32_768, *of(3.08, 0.4, 15.9, 78.61, 79.18, 72.85))),
        ("INFO: started\n", Reported()),
        ("Auto set (7.5/11.59) GiB for KV cache", Reported(cache=int(7.5 * GIB))),
    ],
)
def test_logs(tmp_path: Path, text: str, expected: Reported) -> None:
    (tmp_path / "log").write_text("x" * 1000 + "\n" + text + "\n" + "y" * 3_000_000)
    assert log_figures.read_memory(tmp_path / "log") == expected


def test_errors_are_relative_to_what_was_reported() -> None:
    found = compare(
        fit(32_768, 16 * 147_456, 2048, weights=int(15.25 * GIB)),
        32_768, int(15.27 * GIB), int(4.53 * GIB), 32_976,
    )  # fmt: skip
    assert found["weights"]["error"] == pytest.approx(-0.0013, abs=1e-4)
    assert found["kv_cache_tokens"] == {"predicted": 32_976, "reported": 32_976, "error": 0.0}


@pytest.mark.parametrize("kept", [{}, fit(4096, 10, 10), fit(2048)])
def test_nothing_to_compare(kept: dict[str, Any]) -> None:
    assert compare(kept, 2048, None, 1000, 500) == {}
    assert compare(fit(2048, 10, 10), None, None, 1000, 500) == {}


@pytest.mark.slow
def test_starts_on_real_cards_had_what_a_document_counts_on() -> None:
    """The safe end is not above the log's memory for the cache, but for one of vLLM's first engine."""
    found, used = starts(), Constants()
    assert {s.name for s in found if s.safe(used) > s.free} == {"qwen2.5-vl-32b-a100"}
    today = [s for s in found if not s.older]
    assert median(abs(s.estimate(used) / s.free - 1) for s in today) < 0.05
    own = sorted(abs(s.estimate(used) / s.free - 1) for s in found if not s.shared)
    assert own[int(0.9 * len(own))] < 0.2
    assert median(1 - s.safe(used) / s.free for s in today) < 0.105
    apart = [s for s in today if s.safe(fitted([o for o in found if o.model != s.model])) > s.free]
    assert len(apart) <= 0.07 * len(today)


@pytest.mark.slow
def test_failed_starts_are_foretold_and_none_that_ran_is_called_impossible() -> None:
    found = judged()
    failed = [j for r, j in found if r["reported"].get("started") is False and r["cause"] not in OTHERWISE]
    assert sum(j.word != "fits" for j in failed) >= 0.8 * len(failed) > 25
    ran = [j for r, j in found if r["reported"].get("started") is not False]
    assert not [j for j in ran if j.word == "too-large" or j.start]


def test_a_log_is_not_believed_that_contradicts_itself_or_the_device() -> None:
    memory, pool = int(79.18 * GIB), {"block": 16 * 147_456, "blocks": 2048}
    sound = measured().reported
    assert contradiction(sound, int(19.38 * GIB), memory, pool) is None

    def why(beside: float = 19.38, **changed: Any) -> str:
        found = contradiction(replace(sound, **changed), int(beside * GIB), memory, pool)
        return "" if found is None else render(found)

    assert why(weights=300 * GIB) == "its log says weights 300.00 GiB, of 79.18 GiB in all"
    assert "all beside the cache" in why(beside=90)
    assert "parts of 18.35 GiB, of 12.00 GiB in all" in why(beside=12)
    assert "9,000,000 tokens in 53.47 GiB" in why(tokens=9_000_000)
    assert contradiction(Reported(), None, memory, None) is not None


# Of starts of Qwen3-8B (vLLM 0.26.0, second model runner) and Qwen3-30B-A3B (first one) on an H200.
OUTSIDE = """Model loading took 15.27 GiB and 3.159851 seconds
Available KV cache memory: 112.34 GiB
GPU KV cache size: 818,048 tokens
Maximum concurrency for 40,960 tokens per request: 19.97x
Free memory on device (139.29/139.8 GiB) on startup. Desired GPU memory utilization is (0.92, 128.62 GiB). \
Actual usage is 15.27 GiB for weight, 0.78 GiB for peak activation, 0.22 GiB for non-torch memory, and \
1.0 GiB for CUDAGraph memory.
"""
INSIDE = """Model loading took 56.88 GiB memory and 0.723695 seconds
Estimated CUDA graph memory: 0.64 GiB total
Available KV cache memory: 68.18 GiB
"""


@pytest.mark.parametrize(
    ("log", "parts"), [(OUTSIDE, ["weights", "activations"]), (INSIDE, ["weights", "activations", "graphs"])]
)
def test_graphs_are_a_part_where_the_engine_subtracts_them(
    log: str, parts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(log)
    found = log_figures.read_memory(tmp_path / "log")
    assert found.cache is not None
    beside = int(128.62 * GIB) - found.cache
    assert [*found.parts(beside)] == parts
    assert contradiction(found, beside, int(139.8 * GIB), None) is None


def test_what_the_log_rounds_is_no_difference() -> None:
    """The demo model's whole cache is 0.01 GiB in the log."""
    pool = {"block": 12_288, "blocks": 128}
    assert scale(Reported(cache=int(0.01 * GIB), tokens=17_664, context=2048), pool) == 1
    larger = {"block": 16 * 147_456, "blocks": 2048}
    assert scale(Reported(cache=50 * GIB, tokens=300_000, context=32_768), larger) == pytest.approx(
        1.213, 1e-3
    )


def test_figures_take_the_place_of_guesses_where_they_are_of_these_settings() -> None:
    shape = describe(toy_shapes.TOYS["full: grouped heads"])
    assert isinstance(shape, Shape)
    weights = Weights(Amount.exactly(16 * GIB), None, "api", "told")  # type: ignore[arg-type]
    load = Load(4096, dtype="bfloat16", memory=int(79.18 * GIB), capability=90)
    found = measured()
    assert found.difference(load) is None
    assert found.difference(replace(load, slots=16)) is None  # fewer sequences take no more
    assert found.difference(replace(load, kv_dtype="fp8")) == ("kv_dtype", "fp8", "auto")
    for other in ({"tensor_parallel": 2}, {"kv_dtype": "fp8"}, {"slots": 2000, "batched_tokens": 9000}):
        assert found.difference(replace(load, **other)) is not None
    made = found.applied(estimate(shape, weights, load, "vllm"))
    parts = {term.part: term.amount for term in made.terms}
    assert "logits" not in parts  # they are activations to the engine
    beside = sum(a.likely for part, a in parts.items() if part != "kv cache")
    assert (parts["weights"].likely, beside) == (int(15.27 * GIB), int(19.38 * GIB))
    assert all(t.why.kind is TermReason.MEASURED for t in made.terms if t.part != "kv cache")
    wider = replace(found, scale=1.5).applied(estimate(shape, weights, load, "vllm"))
    budget = made.total.likely
    assert longest(shape, made, budget) == 4096 > longest(shape, wider, budget)


def test_a_measurement_is_of_one_kind_of_device() -> None:
    found = measured()
    assert found.on(named("h100-80g"))
    assert not found.on(named("h200"))
    assert not found.on(named("a100-80g"))  # as large, and of another capability
    assert found.on(named("h100-80g").with_memory(40 * GIB))  # the rest of the card is of other programs
    assert not found.on(of_kind("cpu", "this machine", int(79.18 * GIB)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"beside": -1}, {"beside": "20"}, {"scale": 50}, {"engine": 7}, {"seconds": None},
        {"reported": {"weights": -3}}, {"version": "a\nb"}, {"served": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_figures_of_a_far_end_are_read_as_figures(wrong: dict[str, Any]) -> None:
    sound = measured().to_json()
    assert Measured.from_json(json.loads(json.dumps(sound))) == measured()
    with pytest.raises(ValueError, match="measured"):
        Measured.from_json({**sound, **wrong})
    with pytest.raises(ValueError, match="measured"):
        Measured.from_json([])
