"""Engines: installed, started, stopped, and their parsers run. ``ENGINES`` has one line for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from importer.errors import EngineError
from importer.registry import Registry

if TYPE_CHECKING:
    from importer.engines.base import Engine


def _adapter(place: str) -> Engine:
    module, _, name = place.partition(":")
    return cast("Engine", getattr(import_module(module), name)())


# Name to the class of its adapter, imported at its first use.
_ENGINES = {
    "mlx": "importer.engines.mlx:Mlx",
    "mlx-vlm": "importer.engines.mlx_vlm:MlxVlm",
    "vllm-mlx": "importer.engines.vllm_mlx:VllmMlx",
    "vllm-cpu": "importer.engines.vllm:VllmCpu",
    "vllm-cuda": "importer.engines.vllm:VllmCuda",
    "sglang": "importer.engines.sglang:SGLang",
}
_MAKERS = {name: partial(_adapter, place) for name, place in _ENGINES.items()}
ENGINES = Registry[Callable[[], "Engine"]]("engines", _MAKERS, object, lambda make: make().readiness)
# Backends with another engine on each kind of machine.
CHOSEN = {"vllm": partial(_adapter, "importer.engines.vllm:for_this_machine")}


def runs(backend: str) -> bool:
    """Return whether there is an adapter for the backend; documents may name others too."""
    return backend in CHOSEN or any(backend == name for name, _ in ENGINES.every())


def get(name: str) -> Engine:
    """Return the adapter of an engine; raises EngineError("unknown-engine") and UsageError("broken-part")."""
    try:
        adapter = CHOSEN.get(name) or ENGINES[name]
    except KeyError:
        known = ", ".join((*dict(ENGINES.every()), *CHOSEN))
        raise EngineError("unknown-engine", name=name, known=known) from None
    return adapter()
