"""What vLLM's log says of its memory, beside what was predicted."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.starts import Constants, fitted, starts
from importer.engines import logs
from importer.engines.logs import Reported
from importer.memory.estimate_types import compare

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
GIB = 2**30


def fit(context: int, block: int = 0, blocks: int = 0, **likely: int) -> dict[str, Any]:
    terms = [{"part": part, "likely": size} for part, size in likely.items()]
    pool = {"block": block, "blocks": blocks} if blocks else None
    return {"estimate": {"load": {"context": context}, "terms": terms}, "pool": pool}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CPU, Reported(None, int(0.06 * GIB), 87_296, 2048)),
        (CUDA, Reported(int(15.27 * GIB), int(4.53 * GIB), 32_976, 32_768)),
        (CUDA_026, Reported(None, int(23.5 * GIB), 32_835_152, 2048)),
        ("INFO: started\n", Reported()),
        ("Auto set (7.5/11.59) GiB for KV cache", Reported(cache=int(7.5 * GIB))),
    ],
)
def test_logs(tmp_path: Path, text: str, expected: Reported) -> None:
    (tmp_path / "log").write_text("x" * 1000 + "\n" + text + "\n" + "y" * 3_000_000)
    assert logs.read_memory(tmp_path / "log") == expected


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


# Two of vLLM's first engine, and one whose log loaded layers that its settings do not name.
PROMISED_TOO_MUCH = {"llama3.1-8b-3090-20k", "qwen2.5-vl-32b-a100", "dsv4-flash-b300"}


def test_starts_on_real_cards_had_what_a_document_counts_on() -> None:
    """The safe end of each is not above the memory that the log reports for the cache."""
    found, used = starts(), Constants()
    over = {s.name for s in found if s.estimate(used) - s.spare > s.free}
    assert over == PROMISED_TOO_MUCH
    today = [s for s in found if not s.older]
    assert median(abs(s.estimate(used) / s.free - 1) for s in today) < 0.05
    now = fitted(found)
    assert (now.engine, now.buffers) == pytest.approx((used.engine, used.buffers), abs=0.1)
    assert now.shared == pytest.approx(used.shared, abs=0.03)
