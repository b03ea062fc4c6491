"""Settings of one run on this machine, outside the document: what its memory and its devices require.

A document without a device has no limits, and one for other devices may not start here. A validation adds
this machine's own: the bytes of a processor's cache, a shorter context, a layout on the devices at hand. A
value that a person set stays. The receipt records them in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from importer import backends
from importer.app.engine_request import document_keys, engine_request, recorded_defaults
from importer.app.preferences import written
from importer.document.document import Document, document_of
from importer.document.store import StoredDocument
from importer.engines import machine
from importer.errors import ImporterError
from importer.frozen import frozen
from importer.hub import local
from importer.hub.snapshot import mapping
from importer.memory import shape, weights
from importer.memory.choose import choose
from importer.memory.devices import Device
from importer.memory.engine_keys import (
    CACHE,
    CONTEXT,
    DTYPE,
    KV_DTYPE,
    LAYOUT,
    LOCAL,
    PARTED,
    SHARE,
    FitRequest,
)
from importer.signals.evidence import Rule

# Keys that a run may set or leave out.
OURS = (DTYPE, CONTEXT, SHARE, CACHE, KV_DTYPE, LOCAL, PARTED, *LAYOUT)
WIDE = "float32"  # for a processor that has to make bfloat16 of it at every step


@frozen
class RunSettings:
    """What a run sets beside the document; ``None`` as a value leaves a key of the document out.

    ``device``  the name of this machine's device and their number, ``fit`` the estimate as receipts have it.
    """

    device: str
    settings: Mapping[str, object]
    fit: Mapping[str, object]

    def to_json(self) -> dict[str, object]:
        """Return the settings as a report has them."""
        return {"device": self.device, "settings": dict(self.settings)}

    def applied(self, document: Document) -> Document:
        """Return the document with these settings."""
        changed: dict[str, object] = {**document}
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
        return document_of(changed)


def for_run(stored: StoredDocument, engine: str, folder: Path) -> RunSettings | None:
    """Return the settings of a run on this machine; ``None`` where the model's sizes are unknown.

    ``engine`` is the build, such as ``vllm-cpu``; ``folder`` has the weights.
    """
    from importer.engines import get, install

    backend = backends.serving(engine).name
    device = machine.this_machine(backend, cards=get(engine).needs_card)
    try:
        snapshot = local.resolve(str(folder), folder)
    except ImporterError:
        return None
    installed = install.find(get(engine)) if backends.of(backend).planned else None
    read = shape.read(snapshot)
    held = weights.read(snapshot, read)
    for dtype in (WIDE, None) if _emulates(stored, device, backend) else (None,):
        request = _request(stored, device.kind, device.count, dtype)
        request = replace(request, version=None if installed is None else installed.version)
        choice = choose(snapshot, read, held, device, backend, request)
        if choice.verdict == "fits":
            break
    if choice.plan is None or choice.verdict not in ("fits", "shortened"):
        return RunSettings(device.label, {}, choice.to_json())
    wanted: dict[str, object] = {
        e.key: e.value for e in choice.evidence if e.rule is Rule.FIT and e.key in OURS
    }
    wanted |= {} if dtype is None else {DTYPE: dtype}
    present = FitRequest(stored.data)
    left_out = {k: None for k in OURS if k in _dropped(stored, device.kind, device.count)}
    settings = {k: v for k, v in {**left_out, **wanted}.items() if v != present.get(k)}
    return RunSettings(device.label, settings, choice.to_json())


def for_engine(stored: StoredDocument, engine: str, folder: Path) -> tuple[Document, RunSettings | None]:
    """Return the document as an engine on this machine serves it, and the settings that it has for that."""
    run = for_run(stored, engine, folder)
    return (stored.data, None) if run is None else (run.applied(stored.data), run)


def _emulates(stored: StoredDocument, device: Device, backend: str) -> bool:
    """Return whether vLLM's processor would make bfloat16 of other numbers at every step.

    In float32 each weight keeps its value, and long prompts are read several times as fast.
    """
    emulated = backends.of(backend).planned and device.kind == "cpu" and not machine.computes_bfloat16()
    return emulated and stored.data.get(DTYPE) == "bfloat16" and DTYPE not in _set_by_person(stored)


def _request(stored: StoredDocument, kind: str, count: int, dtype: str | None) -> FitRequest:
    """Return the document's values, less those of other devices; fixed is what a run must not change.

    ``dtype``  in place of the document's.
    """
    dropped = _dropped(stored, kind, count)
    free = {key for key in OURS if key not in _set_by_person(stored)}
    fixed = document_keys(stored.data) - free | ({DTYPE} if dtype else set())
    data = {**stored.data, DTYPE: dtype} if dtype else stored.data
    return engine_request(data, recorded_defaults(stored.receipt), without=dropped, fixed=fixed)


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
    named = [*written(stored.data, receipt.wrote), *mapping(receipt.request.get("preferences"))]
    maps = {key for key in OURS if key.partition(".")[0] in named}
    return frozenset(named) | maps
