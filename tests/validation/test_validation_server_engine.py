"""Probes of the server on real engines: settings that are not the document's, caches lost or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.evidence_sources import Journal
from importer.validation.expectations import promise_of
from importer.validation.probe import Probe
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.sampling import sampling_arrives
from importer.validation.probes.server import health
from importer.validation.run import probe

pytestmark = pytest.mark.engine

OPTIONS = {
    "mlx": ["tool_parser:json_tools", "reasoning_parser:think"],
    "mlx-vlm": ["tool_parser:json_tools", "reasoning_parser:<think>"],
}


def document(engine: str, *options: str, **more: Any) -> dict[str, Any]:
    sampling = more.pop("parameters", {"temperature": 0.0})
    said = {"name": "demo", "backend": engine, "parameters": sampling, "max_model_len": 1024}
    return {**said, "options": list(options) or OPTIONS[engine], **more}


Found = dict[str, tuple[str, str | None]]


def held(served: EngineServer, judged: Mapping[str, Any], *probes: Probe) -> Found:
    """Outcomes of a running engine held against this document."""
    engine = get(judged["backend"])
    journal = Journal(served.log, lambda: served.alive, engine.deaths)
    client, promise = Client(served.base_url), promise_of(judged, engine.offers)
    rows = probe(Context(promise, served.model, client, journal=journal), (health, *probes), print)
    told = {row.probe: (row.outcome.outcome, row.outcome.attribution) for row in rows}
    return {one.name: told[one.name] for one in probes}


def found(installed: Installed, started: Mapping[str, Any], judged: Mapping[str, Any], one: Probe) -> Found:
    """The same, started with one document and held against another."""
    with serve(get(started["backend"]), installed.python, started, MODEL) as served:
        return held(served, judged, one)


def test_sampling_that_is_nearly_the_documents_is_found_out_by_its_dice(
    mlx_engine: Installed, importer_home: object
) -> None:
    warm = document("mlx", parameters={"temperature": 1.0, "top_k": 0})
    narrow = document("mlx", parameters={"temperature": 1.0, "top_p": 0.2, "top_k": 0})
    with serve(get("mlx"), mlx_engine.python, warm, MODEL) as served:
        assert held(served, warm, sampling_arrives) == {"sampling-arrives": ("pass", None)}
        assert held(served, narrow, sampling_arrives) == {"sampling-arrives": ("fail", "engine")}


@pytest.mark.nightly
@pytest.mark.xdist_group("mlx-vlm")
def test_mlx_vlm_says_whether_it_caches(
    mlx_vlm_engine: Installed, importer_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = document("mlx-vlm", importer={"client_sampling": {"temperature": 0}})
    assert found(mlx_vlm_engine, said, said, prefix_cache) == {"prefix-cache": ("not-applicable", None)}
    monkeypatch.setenv("APC_ENABLED", "1")
    monkeypatch.setenv("APC_DISK_ENABLED", "0")
    assert found(mlx_vlm_engine, said, said, prefix_cache) == {"prefix-cache": ("pass", None)}
