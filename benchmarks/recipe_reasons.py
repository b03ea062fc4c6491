"""Why a document has another value than a recipe, or none: its own reason, else that of the kind of flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.recipe_documents import Command
from benchmarks.recipe_settings import PLACES, same
from importer.sentences import render

TUNED = "chosen by a measurement on this hardware, that no file of the model has; --set writes it"
LOAD = "a limit for a load: --goal and --concurrency choose it, and no load was named"
OPT_IN = "speculation is written only where it is requested: it refuses min_p and logit_bias"
MEDIA = "a choice for a load of pictures, sound or video, that no file of the model has; --set writes it"
VARIABLE = "a switch of the engine's kernels on this hardware; --set env.NAME writes it"
SWITCH = "a feature of the server that a person switches on; --set writes it"
LOADING = "another way to load or store the same weights, chosen for one disk or host; --set writes it"
PLUGIN = "it loads code: a person grants it"
CODE = "the engine has the model's code itself, or no file names any"
CACHE = "16 bits hold the whole context; 8 bits are written where they do not, or by --set"
CHECKPOINT = "the engine reads it from the checkpoint"
LAYOUT = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "enable-expert-parallel")
IMPLIED = "it follows from the tool parser"
# Flags by the reason for which no document has them by itself.
BY_REASON = {
    CODE: ("trust-remote-code",),
    CACHE: ("kv-cache-dtype",),
    CHECKPOINT: ("dtype", "quantization", "quantization-config"),
    IMPLIED: ("enable-auto-tool-choice",),
    OPT_IN: ("speculative-config",),
    LOAD: (
        "max-num-seqs", "max-num-batched-tokens", "max-cudagraph-capture-size", "stream-interval",
        "watermark", "long-prefill-token-threshold", "prefill-schedule-interval", "max-num-active-seqs",
        "cpu-offload-gb", "api-server-count", "gpu-memory-utilization",
    ),
    MEDIA: (
        "mm-encoder-tp-mode", "mm-processor-cache-gb", "mm-processor-cache-type", "media-io-kwargs",
        "mm-encoder-attn-backend", "skip-mm-profiling", "limit-mm-per-prompt", "language-model-only",
        "allowed-local-media-path", "video-pruning-rate", "mm-processor-kwargs",
    ),
    LOADING: (
        "load-format", "safetensors-load-strategy", "enable-sleep-mode", "numa-bind", "offload-backend",
        "cpu-offload-params", "kv-offloading-backend", "kv-offloading-size", "kv-transfer-config",
        "enable-cumem-allocator",
    ),
    PLUGIN: ("tool-parser-plugin", "reasoning-parser-plugin", "tool-call-parser-plugin", "logits-processors"),
    SWITCH: (
        "enable-prefix-caching", "enable-chunked-prefill", "reasoning-config", "runner",
        "exclude-tools-when-tool-choice-none", "default-chat-template-kwargs",
    ),
}  # fmt: skip
KINDS = {name: reason for reason, names in BY_REASON.items() for name in names}
SHOWN = "the model's own template shows the tools"
SHIPPED = "the model's own template hides the tools; --template FILE writes this one"


def _of_template(command: Command) -> str:
    """Return why the template of a recipe is not the document's."""
    decision = command.plan.decisions.get("request_coverage")
    tools = (
        decision.value.get("tools") if decision is not None and isinstance(decision.value, Mapping) else None
    )
    return SHOWN if tools == "shown" else SHIPPED


def reason_for(name: str, theirs: Any, ours: Any, command: Command) -> str:
    """Return one line: the decision's reasons, else the reason for this kind of flag."""
    key = PLACES.get(name, f"engine_args.{name.replace('-', '_')}")
    decision = command.plan.decisions.get(key)
    if decision is not None and decision.why:
        stated = f"{key} is {decision.value!r} by itself" if same(decision.value, theirs) else ""
        return "; ".join(filter(None, (stated, render(decision.why[-1]))))
    if name in LAYOUT:
        return command.plan.fit.message if command.plan.fit.verdict == "unknown" else command.layout_reason
    if name == "max-model-len":
        return command.plan.fit.message
    if name == "chat-template":
        return _of_template(command)
    if name.isupper() or name != name.lower():
        return VARIABLE
    if ours is not None and name in ("override-generation-config", "generation-config"):
        return "sampling of the document"
    return KINDS.get(name, TUNED)
