"""A start's log that a person has: its figures take the place of a measurement on this machine."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer.app.local_evidence import snapshot_of
from importer.app.measure import UnmeasuredReason, as_written, beside_cache, meant_device, unmeasured
from importer.config import now
from importer.document.store import StoredDocument
from importer.engines import log_figures, logs
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import mapping, text
from importer.memory.measured import NEAR, Measured, contradiction, ran, scale
from importer.memory.plan_settings import gib
from importer.reasons import Reason

VERSION = re.compile(r"(?:API server version |LLM engine \(v)(0\.[0-9]{1,3}\.[0-9]{1,3}[0-9a-z.+]{0,20})")
STDIN = "-"
APART = 1.25  # beyond this factor a log's weights are another model's: estimates are right within 5 %
OWN = {"tensor_parallel_size": int, "gpu_memory_utilization": int | float, "dtype": str}  # keys of a document
# Arguments that move memory, by the names that a log has.
MOVING = frozenset({
    "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel", "decode_context_parallel_size",
    "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype", "block_size", "enforce_eager",
    "enable_prefix_caching", "speculative_config", "enable_lora", "max_loras", "max_lora_rank",
    "max_cudagraph_capture_size", "cpu_offload_gb", "quantization",
})  # fmt: skip


def read(stored: StoredDocument, place: str) -> str:
    """Return the beginning of a log, of a file or of standard input; raises EngineError("not-measured")."""
    try:
        if place == STDIN:
            return logs.bounded(sys.stdin.buffer.read(log_figures.HEAD).decode(errors="replace"))
        with Path(place).open("rb") as file:
            return logs.bounded(file.read(log_figures.HEAD).decode(errors="replace"))
    except OSError as error:
        why = Reason(UnmeasuredReason.NO_LOG, path=place, problem=error.strerror or str(error))
        raise unmeasured(stored, why) from None


def measured_by_log(stored: StoredDocument, log: str, places: AllowedFolders) -> Measured:
    """Return what a start's log reports, with the settings that the log names and else the document's.

    Raises EngineError("not-measured"): no figures, another card or model, or what cannot be true; HubError.
    """
    device, snapshot = meant_device(stored), snapshot_of(stored, places)
    reported = log_figures.memory_of(log)
    if reported.total is not None and abs(reported.total - (device.memory or 0)) > NEAR * reported.total:
        fields = {"total": gib(reported.total), "memory": gib(device.memory or 0), "device": device.label}
        raise unmeasured(stored, Reason(UnmeasuredReason.OTHER_CARD, **fields))
    settings = _settings(log)
    context = {} if reported.context is None else {"max_model_len": reported.context}
    choice = as_written(stored, snapshot, device, settings | context)
    weights = None if choice.fit is None else choice.fit.term("weights")
    if weights is not None and reported.weights is not None:
        own = weights.amount
        if not own.low / APART <= reported.weights <= own.high * APART:
            fields = {"found": gib(reported.weights), "own": gib(own.likely)}
            raise unmeasured(stored, Reason(UnmeasuredReason.OTHER_MODEL, **fields))
    same = choice.fit is not None and reported.context == choice.fit.load.context
    pool = choice.pool if same else None
    beside = beside_cache(reported, None, device, {**stored.data, **settings})
    why = contradiction(reported, beside, device.memory or 0, pool)
    if why is not None or beside is None or choice.fit is None:
        raise unmeasured(stored, Reason(UnmeasuredReason.LIE, why=why or choice.reason, log=None))
    version = text(mapping(mapping(stored.data.get("importer")).get("engine")).get("version"))
    found = VERSION.search(log)
    return Measured(
        stored.backend, found[1] if found else version or "", snapshot.revision, now(), 0.0, device.to_json(),
        ran(choice.fit.load), beside, reported, reported.tokens is not None, scale(reported, pool) or 1.0,
    )  # fmt: skip


def _settings(log: str) -> dict[str, Any]:
    """Return the engine's arguments that a log names, under the keys of documents."""
    match = log_figures.NON_DEFAULT.search(log)
    try:
        named = ast.literal_eval(match[1][: log_figures.REPORTED_LONGEST]) if match else {}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        named = {}
    given = {str(k): v for k, v in named.items()} if isinstance(named, Mapping) else {}
    own = {k: given[k] for k, kind in OWN.items() if isinstance(given.get(k), kind)}
    if not 0 < own.get("gpu_memory_utilization", 1) <= 1:
        del own["gpu_memory_utilization"]
    inner = {f"engine_args.{k}": v for k, v in given.items() if k in MOVING}
    return own | inner
