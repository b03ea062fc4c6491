"""Request coverage: no proved parser without tools in the prompt, and templates that would help."""

from __future__ import annotations

from typing import Any

import pytest

from importer.chat_template.request_coverage.findings import (
    CoverageField,
    CoverageFinding,
    CoverageKind,
    RequestCoverage,
)
from importer.decisions.decide import decide
from importer.decisions.decision import Chosen, Preferences, Undecided
from importer.decisions.parsers import ParserReason
from importer.decisions.request_coverage import CoverageEffect, SwitchReason
from importer.document.attention import attention
from importer.sentences import render
from importer.signals.evidence import Evidence, is_warning
from tests.commandline import CHAT, Desk, desk, document, receipt
from tests.coverage_faults import JSON, SOUND
from tests.decisions.test_decide import VLLM, fact
from tests.facts import as_reason, proof
from tests.hubserver import Repo

__all__ = ["desk"]


LOST = RequestCoverage(
    "lost", (CoverageFinding(CoverageKind.TOOLS_LOST),), 1, ("repository:tools", "own-calls")
)


def shown(request_coverage: RequestCoverage, **more: Any) -> Evidence:
    return fact("template-rendered", request_coverage.to_json() | more, "request_coverage")


def decided(*facts: Evidence, prefer: dict[str, Any] | None = None) -> Any:
    return decide(facts, Preferences(prefer or {}), VLLM)


def test_a_name_that_tables_give_stays_and_is_not_proved() -> None:
    facts = fact("family-table", "hermes"), proof(["qwen3_json", "hermes"])
    assert decided(*facts, shown(RequestCoverage("shown")))["tool_parser"].status == "proved"
    hidden = decided(*facts, shown(LOST))["tool_parser"]
    assert isinstance(hidden, Chosen)
    assert (hidden.value, hidden.status) == ("hermes", "table")
    assert hidden.why[0] == as_reason("family-table says hermes")
    claimed = decided(fact("repository-claim", "hermes"), facts[1], shown(LOST))["tool_parser"]
    assert (claimed.value, claimed.status) == ("hermes", "declared")


def test_a_name_that_only_the_rendering_gives_goes() -> None:
    facts = fact("template-format", "hermes"), proof(["hermes"])
    off = decided(*facts, shown(LOST))["tool_parser"]
    assert isinstance(off, Undecided)
    assert [reason.kind for reason in off.why] == [CoverageEffect.TOOLS_OFF, CoverageEffect.TEMPLATE_OFFERED]
    assert off.overruled[-1].value == "hermes"


def test_a_value_of_the_user_stays_with_a_warning() -> None:
    chosen = decided(proof(["hermes"]), shown(LOST), prefer={"tool_parser": "hermes"})["tool_parser"]
    assert (chosen.value, chosen.status) == ("hermes", "user")
    assert [render(reason) for reason in chosen.why if is_warning(reason)]


def heeding(*names: str) -> Evidence:
    return proof(["qwen3"], key="reasoning_parser", heeds={"qwen3": [*names]})


@pytest.mark.parametrize(
    ("heard", "own", "warned"),
    [
        (["enable_thinking"], {}, False),  # nobody has anything to switch
        (["enable_thinking"], {"reasoning_effort": {"values": ["low"], "default": None}}, True),
        (["thinking", "enable_thinking"], {"thinking": {"values": [True, False], "default": True}}, False),
        ([], {}, False),
    ],
)
def test_a_switch_of_the_parser_that_the_template_lacks_is_a_warning(
    heard: list[str], own: dict[str, Any], warned: bool
) -> None:
    facts = [fact("family-table", "qwen3", "reasoning_parser"), heeding(*heard)]
    facts += [fact("template-rendered", own, "template_variables")] if own else []
    chosen = decided(*facts)["reasoning_parser"]
    assert chosen.status == "proved"
    kinds = [reason.fields["reason"].kind for reason in chosen.why if is_warning(reason)]
    assert kinds == [SwitchReason.UNHEARD] * warned


def test_tools_in_some_requests_are_not_proved() -> None:
    kind = CoverageFinding(CoverageKind.TOOLS_ONLY_WITHOUT_SYSTEM, conversation="tools-and-system")
    facts = fact("template-format", "hermes"), proof(["hermes"])
    some = decided(*facts, shown(RequestCoverage("sometimes", (kind,))))
    assert (some["tool_parser"].value, some["tool_parser"].status) == ("hermes", "table")
    (found,) = attention(some)
    assert "only in requests without a system turn" in str(found.to_json()["message"])


def test_the_warning_names_templates_the_best_first() -> None:
    (found,) = attention(decided(fact("family-table", "hermes"), proof(["hermes"]), shown(LOST)))
    assert (found.kind.value, found.key) == ("no-tools", "tool_parser")
    text = render(found.reason)
    assert "never shows the tools" in text
    places = [text.index(word) for word in ("repository:tools", "own-calls")]
    assert places == sorted(places)


def test_losses_of_tools_need_a_tool_parser_to_be_warned_of() -> None:
    findings = (
        CoverageFinding(CoverageKind.LOST, CoverageField.SYSTEM, (1,), "tools-and-system"),
        CoverageFinding(CoverageKind.LOST, CoverageField.ENUM, (1,), "tools"),
        CoverageFinding(CoverageKind.ALTERED, CoverageField.USER, (1,), "bare"),
        CoverageFinding(CoverageKind.LOST, CoverageField.DEVELOPER, (1,), "developer"),
        CoverageFinding(CoverageKind.REFUSED, CoverageField.CALL, (2,), "two-calls"),
    )
    request_coverage = shown(RequestCoverage("shown", findings))

    def warned(*facts: Evidence) -> list[str]:
        decisions = decided(request_coverage, *facts)
        notes = [why for why in decisions["request_coverage"].why if why.kind is CoverageEffect.LOSES]
        assert len(notes) == (decisions["tool_parser"].why[0].kind is not ParserReason.SILENT)
        assert all("developer" in render(note) for note in notes)
        found = attention(decisions)
        assert not any("developer" in render(a.reason) for a in found)
        return [render(a.reason) for a in found if a.kind.value == "request-coverage"]

    with_parser = warned(fact("family-table", "hermes"), proof(["hermes"]))
    assert len(with_parser) == 2
    assert "the permitted values" in with_parser[0]
    without = warned()
    assert len(without) == 2
    assert "the permitted values" not in without[0]
    assert warned(fact("kind-tag", "base", "kind")) == []


HIDES = JSON.replace("{%- if tools -%}", "{%- if false -%}")
TWO = [{"name": "default", "template": HIDES}, {"name": "with-tools", "template": SOUND}]


def repo(desk: Desk, template: Any) -> None:
    files = {**CHAT, "tokenizer_config.json": {"chat_template": template}}
    files.pop("chat_template.jinja", None)
    desk.hub.repos["acme/hides"] = Repo(files)


@pytest.mark.slow
def test_an_import_warns_and_names_the_option(desk: Desk) -> None:
    repo(desk, TWO)
    ran = desk("acme/hides", "--backend", "vllm", "--no-validate", "--set", "tool_parser=hermes")
    assert ran.code == 0, ran.err
    words = ("--template repository:with-tools or ", "--template own-calls")
    places = [ran.err.index(word) for word in words]
    assert places == sorted(places)
    text = (desk.folder / "models" / "hides.yaml").read_text()
    assert "# attention: no tools reach the prompt\n" in text
    data = receipt(desk, "hides")
    kept = data["decisions"]["request_coverage"]["value"]
    assert kept["tools"] == "lost"
    assert kept["offers"] == ["repository:with-tools", "own-calls"]
    assert {f["kind"] for f in kept["findings"]} == {"tools-lost"}
    assert data["warnings"][0]["kind"] == "no-tools"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["repository:with-tools", "own-calls"])
def test_the_offered_template_is_analysed_as_any(desk: Desk, name: str) -> None:
    repo(desk, TWO)
    ran = desk("acme/hides", "--backend", "vllm", "--no-validate", "--template", name)
    assert ran.code == 0, ran.err
    assert receipt(desk, "hides")["decisions"]["request_coverage"]["value"]["tools"] == "shown"
    assert document(desk, "hides")["importer"]["chat_template"]["name"] == name
    text = (desk.folder / "models" / "hides.chat_template.jinja").read_text()
    assert (text == SOUND) == (name != "own-calls")
    again = desk("acme/hides", "--backend", "vllm", "--no-validate")
    assert again.code == 0, again.err
    assert (desk.folder / "models" / "hides.chat_template.jinja").read_text() == text


def test_an_unknown_name_of_the_set_is_refused_with_the_known_ones(desk: Desk) -> None:
    repo(desk, TWO)
    ran = desk("acme/hides", "--backend", "vllm", "--no-validate", "--template", "repository:other")
    assert ran.code == 2
    assert "repository:default, repository:with-tools" in ran.err
    assert not desk.files()
