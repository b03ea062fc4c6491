"""Parsers as a frontend of vLLM starts with them."""

from __future__ import annotations

from importer.decisions.decision import Chosen, Decision, KnownNone, Target, Undecided
from importer.decisions.decision import RejectedCandidate as Rejected
from importer.decisions.frontends import FrontendReason, elsewhere, settle
from importer.document.attention import attention
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Source

WHY = (Reason(FrontendReason.GUESSED, engine="vllm 1", parser="x"),)
TOOLS = {"hermes": "H", "gemma4": "G"}
RUST = Target(
    "vllm", "0.33.0", {"tool_parser": TOOLS, "reasoning_parser": {"qwen3": "Q", "gemma4": "G"}},
    frontend="rust", elsewhere={"tool_parser": {**TOOLS, "granite": "I"}}, joint=frozenset({"gemma4"}),
)  # fmt: skip


def chosen(value: str, status: str = "proved") -> Chosen:
    return Chosen(value, status, WHY)  # type: ignore[arg-type]


def settled(tool: Decision, reasoning: Decision, target: Target = RUST) -> tuple[Decision, Decision]:
    decisions = settle({"tool_parser": tool, "reasoning_parser": reasoning}, target)
    return decisions["tool_parser"], decisions["reasoning_parser"]


def words(decision: Decision) -> str:
    return " | ".join(render(reason) for reason in decision.why)


def test_a_parser_for_both_kinds_is_named_for_both() -> None:
    tool, reasoning = settled(chosen("gemma4"), KnownNone(WHY))
    assert (tool.value, reasoning.value, reasoning.status) == ("gemma4", "gemma4", "proved")
    assert "reads calls and reasoning in one" in words(reasoning)
    tool, reasoning = settled(Undecided(WHY), chosen("gemma4"))
    assert (tool.value, reasoning.value) == ("gemma4", "gemma4")
    tool, reasoning = settled(chosen("gemma4"), chosen("qwen3"))
    assert reasoning.value == "gemma4"
    assert reasoning.overruled[0].value == "qwen3"


def test_half_of_such_a_parser_is_dropped() -> None:
    tool, reasoning = settled(chosen("hermes"), chosen("gemma4"))
    assert (tool.value, reasoning.value, reasoning.status) == ("hermes", None, "unknown")


def test_a_users_value_stays_with_a_warning() -> None:
    tool, reasoning = settled(chosen("gemma4"), chosen("qwen3", "user"))
    assert (tool.value, reasoning.value) == ("gemma4", "qwen3")
    assert "reads calls and reasoning in one" in words(reasoning)


def test_a_parser_of_the_other_frontend_is_named() -> None:
    reason = elsewhere(RUST, "tool_parser", "granite")
    assert reason is not None
    lacking = Undecided(WHY, (Rejected("granite", Source.PROOF, reason),))
    tool, _ = settled(lacking, KnownNone(WHY))
    assert "the Python frontend has it" in words(tool)
    assert elsewhere(RUST, "tool_parser", "hermes") is None
    assert elsewhere(RUST, "tool_parser", "unheard") is None
    assert elsewhere(Target("vllm", "0.32.0", {"tool_parser": TOOLS}), "tool_parser", "granite") is None


def test_a_guess_of_the_frontend_is_a_warning_where_no_parser_is_named() -> None:
    target = Target("vllm", "0.33.0", RUST.parsers, frontend="rust", guessed="qwen3")
    _, reasoning = settled(chosen("hermes"), KnownNone(WHY), target)
    assert "takes qwen3 by the model's name" in words(reasoning)
    _, reasoning = settled(chosen("hermes"), chosen("qwen3"), target)
    assert reasoning == chosen("qwen3")


def test_a_model_that_the_frontend_reads_by_itself_has_no_parser() -> None:
    target = Target("vllm", "0.33.0", RUST.parsers, frontend="rust", built_in=True)
    tool, reasoning = settled(chosen("hermes"), Undecided(WHY), target)
    assert (tool.value, reasoning.value) == (None, None)
    assert tool.overruled[0].value == "hermes"
    assert "by code of its own" in words(tool)
    both = {"tool_parser": tool, "reasoning_parser": reasoning}
    assert attention(both) == ()  # its tools work
