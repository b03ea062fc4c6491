"""Decisions: what comes first, and that nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.decisions.decide import decide
from importer.decisions.decision import KnownNone, Preferences, Target, Undecided
from importer.decisions.parsers import ParserReason
from importer.document.build import to_json
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule, is_warning
from tests.facts import as_reason, losses, proof, whys

VLLM = Target(
    "vllm",
    "9.9",
    {
        "tool_parser": {"hermes": "Hermes2", "qwen3_json": "Hermes2", "granite4": "Granite4", "xml": "Xml"},
        "reasoning_parser": {"qwen3": "Qwen3", "deepseek_r1": "R1"},
    },
    proves=True,
)


def fact(rule: str, value: Any, key: str = "tool_parser") -> Evidence:
    return Evidence(Rule(rule), key, value, f"{rule}.json", as_reason(f"{rule} says {value}"))


def tool(*facts: Evidence, prefer: dict[str, Any] | None = None, target: Target = VLLM) -> Any:
    return decide(facts, Preferences(prefer or {}), target)["tool_parser"]


def test_a_format_that_the_engine_forbids_is_told_with_the_parsers_that_are_free_of_it() -> None:
    found = proof(["hermes", "xml"])
    forced = proof(["hermes", "xml"], forbidden={"hermes": "'\\n' after '<call>'"})
    chosen = tool(fact("family-table", "hermes"), forced)
    assert chosen.value == "hermes"
    told = next(render(why) for why in chosen.why if why.kind is ParserReason.FORBIDDEN)
    assert "it forbids '\\n' after '<call>'" in told
    assert told.endswith("reading the template too: xml")
    assert not any("forbids" in why for why in whys(tool(fact("family-table", "hermes"), found)))


def test_the_family_table_decides_without_proof() -> None:
    chosen = tool(fact("family-table", "hermes"))
    assert (chosen.value, chosen.status) == ("hermes", "table")


def test_a_repository_claim_is_heard_before_the_table() -> None:
    chosen = tool(fact("family-table", "hermes"), fact("repository-claim", "xml"))
    assert (chosen.value, chosen.status) == ("xml", "declared")
    assert [o.value for o in chosen.overruled] == ["hermes"]


def test_proof_refutes_the_table_and_both_are_shown() -> None:
    chosen = tool(fact("family-table", "hermes"), proof(["xml"], {"hermes": "one-call: read no call"}))
    assert (chosen.value, chosen.status) == ("xml", "proved")
    assert chosen.overruled[0].value == "hermes"
    assert "one-call" in losses(chosen)[0]


def test_a_name_of_the_same_class_is_as_good() -> None:
    chosen = tool(fact("family-table", "qwen3_json"), proof(["granite4", "hermes"]))
    assert chosen.value == "hermes"


def test_a_parser_that_reads_every_call_stands_against_a_family_known_to_have_none() -> None:
    chosen = tool(fact("family-table", None), proof(["hermes"]))
    assert (chosen.value, chosen.status) == ("hermes", "proved")
    assert [o.value for o in chosen.overruled] == [None]
    told = next(render(why) for why in chosen.why if why.kind is ParserReason.READS_EVERY_CALL)
    assert "no tools in this family" in told  # a note: nothing is to be done
    assert not any(map(is_warning, chosen.why))


@pytest.mark.parametrize(
    "weak",
    [
        {"tools_rendered": False}, {"liberal": ["hermes"]}, {"guessed": ["hermes"]},
        {"liberal": ["hermes"], "unsettled": ["xml"]},
        {"failed": {"hermes": {"nested": as_reason("lost")}}}, {"reads": ["hf"], "complete": ["hf"]},
    ],
    ids="-".join,
)  # fmt: skip
def test_a_family_known_to_have_none_stands_against_a_weak_proof(weak: dict[str, Any]) -> None:
    found = proof(["hermes"])
    decision = tool(fact("family-table", None), replace(found, value=replace(found.value, **weak)))
    assert isinstance(decision, KnownNone)
    assert decision.overruled[0].value in ("hermes", "hf")
    assert any(map(is_warning, decision.why)) is ([*weak] == ["liberal"])  # no parser is made for these calls


def test_a_later_parser_of_a_declared_line_needs_no_tools_in_the_template() -> None:
    unseen = proof(["granite45"], {"granite4": "read no call"}, tools_rendered=False)
    assert tool(fact("type-name", "granite4"), unseen).value == "granite45"
    assert isinstance(tool(fact("type-name", "hermes"), unseen), Undecided)


def test_nothing_reads_the_template_so_nothing_is_set() -> None:
    decision = tool(
        fact("family-table", "hermes"), proof([], {"hermes": "read no call", "xml": "read no call"})
    )
    assert isinstance(decision, Undecided)
    assert decision.overruled[0].value == "hermes"


def test_a_parser_that_the_version_lacks_is_never_written() -> None:
    decision = tool(fact("family-table", "brand_new"))
    assert isinstance(decision, Undecided)
    assert "no tool parser of that name" in losses(decision)[0]


def test_the_user_wins_and_is_warned() -> None:
    chosen = tool(
        fact("family-table", "xml"),
        proof(["xml"], {"hermes": "read no call"}),
        prefer={"tool_parser": "hermes"},
    )
    assert (chosen.value, chosen.status) == ("hermes", "user")
    assert any("refutes" in w for w in whys(chosen))


def test_the_user_may_want_none() -> None:
    assert isinstance(tool(fact("family-table", "xml"), prefer={"tool_parser": None}), KnownNone)


@pytest.mark.parametrize("kind", ["base", "guard", "ocr", "translation"])
def test_kinds_that_call_nothing_get_no_parser(kind: str) -> None:
    decisions = decide([fact("files", kind, "kind"), fact("family-table", "hermes")], Preferences(), VLLM)
    assert isinstance(decisions["tool_parser"], KnownNone)
    assert isinstance(decisions["reasoning_parser"], KnownNone)


names = st.sampled_from(["hermes", "qwen3_json", "granite4", "xml", "unheard-of", None])
rules = st.sampled_from(
    ["repository-claim", "model-type", "family-table", "base-model-family", "template-format"]
)


@given(st.lists(st.tuples(rules, names), max_size=6), st.lists(names, max_size=3), st.booleans())
def test_whatever_is_said_the_decision_is_sound(
    claims: list[tuple[str, Any]], reads: list[Any], proved: bool
) -> None:
    facts = [fact(rule, name) for rule, name in claims]
    passing = [r for r in dict.fromkeys(reads) if r in VLLM.parsers["tool_parser"]]
    refuted = {n: "no call" for n in VLLM.parsers["tool_parser"] if n not in passing}
    if proved:
        facts.append(proof(passing, refuted))
    decision = tool(*facts)
    shown = to_json(decision)
    assert shown["why"]
    assert (decision.value is None) == (decision.status in ("none", "unknown"))
    if decision.value is not None:
        assert VLLM.has("tool_parser", decision.value)
        if proved:
            assert decision.value in passing


@pytest.mark.parametrize(
    ("taken", "says"), [("hermes", "by itself"), (None, "takes none"), ("xml", "takes xml")]
)
def test_what_an_engine_takes_by_itself_is_told(taken: str | None, says: str) -> None:
    asked = proof(["hermes"], infers=True, inferred=taken)
    chosen = tool(fact("family-table", "hermes"), asked)
    assert (chosen.value, chosen.status) == ("hermes", "proved")
    assert says in whys(chosen)[-1]
    assert is_warning(chosen.why[-1]) == (taken != "hermes")


def test_a_label_that_decides_at_the_engine_is_named_with_its_file() -> None:
    asked = proof(["hermes"], {"xml": "reads none"}, infers=True, inferred="xml")
    label = fact("repository-claim", "xml")
    chosen = tool(fact("family-table", "hermes"), label, asked)
    assert chosen.value == "hermes"
    assert label.source in whys(chosen)[-1]
    assert "take this key out" in whys(chosen)[-1]
