"""What users and testers have met and a report has blamed on the wrong part."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Option
from tests.faults.steps import Blank, Rounded
from tests.faults.thoughts import FLAGS

FAULTS = (
    Fault(
        "thoughts-read-as-always-opened",
        "Thoughts that the model opens itself are read by the parser that takes them for opened.",
        "configuration",
        (Option("reasoning_parser", "deepseek_r1"),),
        apart=FLAGS | {"vllm-mlx": "its parser of that name takes an answer without a thought for one"},
        mend="reasoning_parser:qwen3",
        bitten="the commonest mistake in the field: an answer without a thought comes as reasoning",
    ),
    Fault(
        "weights-at-three-bits",
        "Three bits are left of every weight.",
        "model",
        (Rounded(3),),
        mend="weights",
    ),
    Fault(
        "end-of-a-call-never-drawn",
        "The row of </tool_call> is empty: calls are begun and not ended.",
        "model",
        (Blank(("</tool_call>",)),),
        mend="weights",
    ),
)
