"""importer on the small files, with the parsers of vLLM ('importer engine install vllm-parsers')."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.field.contestants import importer_files
from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.truth import BACKEND
from importer.app.target import bind


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Decide each model by proof, too."""
    version = parsers()
    entry = importer_files.answers(models, released, proves=True)
    return replace(entry, version=f"{entry.version}, {version}")


def parsers() -> str:
    """Return the release of vLLM whose parsers are asked; raises RuntimeError where there are none."""
    bound = bind(BACKEND)
    if bound.python is None:
        raise RuntimeError("vLLM's parsers are not installed; see 'importer engine install vllm-parsers'")
    return f"vllm {bound.target.version}"
