"""The choice of vLLM's Rust frontend where nobody names a parser: patterns in the id, in their order.

They are those of the newest release that ``python -m gen_defaults`` read from vLLM's sdist.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from importer.decisions.decision import RUST
from importer.engines import registries

NAMES_ONLY = True


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Match each id as the frontend does."""
    registry = registries.load("vllm", registries.versions(f"vllm-{RUST}")[-1], RUST)
    return Entry(
        registry.version,
        {
            model.model_id: {
                f"{kind}_parser": parser
                for kind in registry.guesses
                if (parser := registry.guess(kind, model.model_id))
            }
            for model in models
        },
    )
