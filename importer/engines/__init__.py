"""Engines: installed, started, stopped, and their parsers run. ``ENGINES`` has one line for each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from importer.errors import EngineError

if TYPE_CHECKING:
    from importer.engines.base import Engine

# Name to the class of its adapter, imported at its first use.
ENGINES: dict[str, str] = {
    "mlx": "importer.engines.mlx:Mlx",
    "mlx-vlm": "importer.engines.mlx_vlm:MlxVlm",
    "vllm-mlx": "importer.engines.vllm_mlx:VllmMlx",
    "vllm-cpu": "importer.engines.vllm:VllmCpu",
    "vllm-cuda": "importer.engines.vllm:VllmCuda",
    "sglang": "importer.engines.sglang:SGLang",
}
# Backends with another engine on each kind of machine.
CHOSEN: dict[str, str] = {
    "vllm": "importer.engines.vllm:for_this_machine",
}


def runs(backend: str) -> bool:
    """Return whether there is an adapter for the backend; documents may name others too."""
    return backend in ENGINES or backend in CHOSEN


def get(name: str) -> Engine:
    """Return the adapter of an engine; raises EngineError("unknown-engine")."""
    known = ENGINES | CHOSEN
    if name not in known:
        raise EngineError("unknown-engine", name=name, known=", ".join(known))
    module, _, adapter = known[name].partition(":")
    return cast("Engine", getattr(import_module(module), adapter)())
