"""The parser hf with a derived response template: beside what it stands, and what it rejects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from importer.decisions.decide import decide
from importer.decisions.decision import Chosen, Decision, Preferences, Undecided
from importer.decisions.frontends import DerivedReason, FrontendReason
from importer.document.attention import AttentionReason, attention
from importer.sentences import render
from importer.signals.evidence import Evidence
from tests import facts
from tests.decisions.test_decide import VLLM, fact

TOOL, REASONING = "tool_parser", "reasoning_parser"
BOTH = (TOOL, REASONING)
HF = replace(VLLM, parsers={key: {**names, "hf": f"Hf {key}"} for key, names in VLLM.parsers.items()})


def proof(key: str, reads: list[str], derived: tuple[str, ...] = BOTH, *, rendered: bool = True) -> Evidence:
    return facts.proof(reads, key=key, derived=derived, tools_rendered=rendered)


def decided(*facts: Evidence, prefer: dict[str, Any] | None = None) -> tuple[Decision, Decision]:
    decisions = decide(facts, Preferences(prefer or {}), HF)
    return decisions[TOOL], decisions[REASONING]


def kinds(decision: Decision) -> list[Any]:
    inner = (reason.fields.get("reason", reason) for reason in decision.why)
    return [reason.kind for reason in inner if isinstance(reason.kind, DerivedReason | FrontendReason)]


def test_nothing_else_reads_so_both_are_data() -> None:
    tool, reasoning = decided(proof(TOOL, ["hf"]), proof(REASONING, ["hf"]))
    assert isinstance(tool, Chosen)
    assert (tool.value, tool.status, reasoning.value) == ("hf", "proved", "hf")
    assert kinds(tool) == [DerivedReason.DERIVED, DerivedReason.LIMITS]
    assert kinds(reasoning) == [DerivedReason.DERIVED]


def test_the_limits_of_its_calls_are_a_note() -> None:
    decisions = decide((proof(TOOL, ["hf"]), proof(REASONING, ["hf"])), Preferences({}), HF)
    assert not [one for one in attention(decisions) if one.key == TOOL]
    told = " ".join(render(reason) for reason in decisions[TOOL].why)
    for limit in ("strict tools", "required or named", "parallel_tool_calls=false"):
        assert limit in told


def test_reasoning_goes_with_the_calls() -> None:
    """vLLM refuses to start with hf and another parser."""
    tool, reasoning = decided(
        proof(TOOL, ["hf"]), proof(REASONING, ["qwen3", "hf"]), fact("family-table", "qwen3", REASONING)
    )
    assert (tool.value, reasoning.value, reasoning.status) == ("hf", "hf", "proved")
    assert "qwen3" in [lost.value for lost in reasoning.overruled]
    assert [reason.kind for reason in reasoning.why] == [FrontendReason.ONE_FOR_BOTH, DerivedReason.DERIVED]
    _, declared = decided(proof(TOOL, ["hf"]), fact("repository-claim", "qwen3", REASONING))
    assert (declared.value, declared.status) == ("hf", "declared")
    _, proved = decided(proof(TOOL, ["hf"]), proof(REASONING, ["qwen3", "hf"]), prefer={TOOL: "hf"})
    assert proved.status == "proved"


def test_without_a_field_for_reasoning_the_calls_stay_unread() -> None:
    tool, reasoning = decided(proof(TOOL, ["hf"], (TOOL,)), proof(REASONING, ["qwen3"], (TOOL,)))
    assert isinstance(tool, Undecided)
    assert reasoning.value == "qwen3"
    assert kinds(tool) == [FrontendReason.NOT_ONE_FOR_BOTH]
    assert [lost.value for lost in tool.overruled] == ["hf"]


def test_calls_alone_need_no_reasoning() -> None:
    tool, reasoning = decided(proof(TOOL, ["hf"], (TOOL,)))
    assert (tool.value, reasoning.value) == ("hf", None)


def test_a_registered_tool_parser_keeps_its_place() -> None:
    tool, reasoning = decided(proof(TOOL, ["hermes"]), proof(REASONING, ["hf"]))
    assert tool.value == "hermes"
    assert isinstance(reasoning, Undecided)


def test_the_users_values_stay() -> None:
    facts = proof(TOOL, ["hf"]), proof(REASONING, ["qwen3", "hf"])
    tool, reasoning = decided(*facts, prefer={REASONING: "qwen3"})
    assert (tool.value, reasoning.value) == (None, "qwen3")
    tool, reasoning = decided(*facts, prefer={TOOL: "hf", REASONING: "qwen3"})
    assert (tool.value, reasoning.value) == ("hf", "qwen3")
    assert kinds(tool)[0] is FrontendReason.NOT_ONE_FOR_BOTH
    warned = attention({TOOL: tool, REASONING: reasoning})
    assert [one.kind for one in warned][:1] == [AttentionReason.PARSER]
    tool, _ = decided(proof(TOOL, ["hermes", "hf"]), prefer={TOOL: "hf"})
    assert (tool.value, tool.status) == ("hf", "user")
    assert DerivedReason.LIMITS in kinds(tool)


def test_a_template_of_the_repositorys_own_has_no_such_reasons() -> None:
    tool, _ = decided(proof(TOOL, ["hf"], ()))
    assert tool.value == "hf"
    assert kinds(tool) == []
