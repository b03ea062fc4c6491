"""Servers that change answers on their way: the engine's own faults."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Wire

FAULTS = (
    Fault(
        "streamed-call-as-text",
        "Streamed calls arrive as content, whole ones as calls.",
        "engine",
        (Wire("streamed_call_as_text"),),
        mend="whole answers",
        bitten="vllm-mlx",
    ),
    Fault(
        "call-ends-with-stop",
        "A call's finish_reason is the one for a plain answer.",
        "engine",
        (Wire("finish_is_stop"),),
        bitten="vllm-mlx",
    ),
    Fault("arguments-encoded-twice", "Arguments are JSON inside JSON.", "engine", (Wire("arguments_twice"),)),
)
