"""The sources of the tables: one module and one line for each.

A source answers a request with files: its values under importer's names, with package, version, file, digest
and the day of its release. The tables are made from these files alone (``gen_defaults.job``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gen_defaults.sources import engines, markers, unsloth, vendors, vllm_docs, vllm_recipes
from gen_defaults.sources.request import SourceAnswer, SourceRequest

__all__ = ["ON_REQUEST", "SOURCES", "SourceAnswer", "SourceRequest"]

Source = Callable[[SourceRequest], SourceAnswer]

SOURCES: Mapping[str, Source] = {
    "unsloth": unsloth.read,
    "vllm": engines.reader("vllm"),
    "vllm-rust": engines.reader("vllm-rust"),
    "vllm-docs": vllm_docs.read,
    "vllm-recipes": vllm_recipes.read,
    "mlx-lm": engines.reader("mlx"),
    "mlx-vlm": engines.reader("mlx-vlm"),
    "vllm-mlx": engines.reader("vllm-mlx"),
    "sglang": engines.reader("sglang"),
    "markers": markers.read,
    "vendors": vendors.read,
    "tables": lambda _request: SourceAnswer({}),  # nobody: what follows from the files that are here
}
# Only when asked for by name, as the weekly job asks for the vendors: it reaches the Hub. The nodes of
# recipes come from a checkout.
ON_REQUEST = ("vendors", "tables", "vllm-recipes")
