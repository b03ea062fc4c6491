"""The report of derived response templates."""

from __future__ import annotations

from gen_defaults.response_templates import Served, report
from gen_defaults.truth import Truth
from importer.chat_template.samples import Sample, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.proof.result import JudgeReason
from importer.proof.template_proof import TemplateProof
from importer.reasons import Reason

CALLS = TemplateAnalysis("a", (Sample("one-call", "", "<c>f</c>"),))
BOTH = TemplateAnalysis("b", (Sample("one-call", "", "<d>f</d>"),), Thinking(("<t>", "</t>")))
GOOD = TemplateProof({}, ("tool_parser",), ("one-call",))
BAD = TemplateProof(
    {}, ("tool_parser", "reasoning_parser"), ("plain",), {"one-call": Reason(JudgeReason.NO_ANSWER)}
)


def test_shares_of_formats_names_and_undecided_models() -> None:
    served = Served()
    served.add("a/one", CALLS, GOOD)
    served.add("a/two", CALLS, GOOD)
    served.add("b/one", BOTH, BAD)
    served.undecided["tool_parser"] += ["a/two", "b/one", "c/without-a-template"]
    truths = [
        Truth("a/one", "a", {"tool_parser": ("x",), "reasoning_parser": (None,)}),
        Truth("a/two", "a", {"tool_parser": ("x",), "reasoning_parser": (None,)}),
        Truth("b/one", "b", {"tool_parser": ("y", "x"), "reasoning_parser": ("z",)}),
    ]
    lines = [*report(served, truths, ["tool_parser:x", "tool_parser:y", "tool_parser:unseen"])]
    assert "formats served: 1/2, models 2/3" in lines
    assert "tool_parser undecided today with a rendered format: 2, served 1" in lines
    assert "lacking tool_parser x: 2/2 models" in lines
    assert "lacking tool_parser y: 0/1 models" in lines
    assert lines[-1] == "names that are lacking and have a template: 1/2 = 50.0 % served"
    assert any("one-call: did not return the answer as content" in line for line in lines)
