"""Proofs as JSON, kept proofs, and models whose template proves nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.app.local_evidence import template_rendering
from importer.chat_template.samples import Sample, SampleCall
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import Target
from importer.decisions.proved import Proved
from importer.engines.deaths import Accident
from importer.engines.parsers import Reading
from importer.engines.tokens import Tokens
from importer.hub.snapshot import Snapshot
from importer.proof import ParserVerdict, Proof
from importer.proof import cache as module
from importer.proof.cache import cached
from importer.proof.parser_verdict import JudgeReason, ProofReason
from importer.proof.result import (
    NO_CALLS,
    NO_THINKING,
    DerivedTemplate,
    is_read,
    own_renderer,
    rendered_by,
    unproved,
)
from importer.proof.verdicts import judge_tool
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.architecture import MODES
from importer.signals.evidence import Evidence, Rule
from tests.facts import as_reason

VLLM = Target("vllm", "9.9", proves=True)
STUDY = TemplateAnalysis("d1", (Sample("one-call", "ask", "call", (SampleCall("act", {"n": 1}),)),))
TOKENS = Tokens(tokens=(("<call>", True),), settings={"x": 1})
PROOF = Proof(
    engine="vllm",
    version="9.9",
    template="d1",
    verdicts={"tool_parser": (ParserVerdict("xml", "Xml", ("one-call", "nested"),
                                            {"quotes": as_reason("lost 'text'")}, ("one-call",),
                                            as_reason("whole-only")),
                              ParserVerdict("hermes", "Hermes", (), {"one-call": as_reason("read no call")},
                                            ("one-call",)))},
    written={"one-call": "<call>…</call>"},
    unasked={"reasoning_parser": NO_THINKING},
    assumed=True,
)  # fmt: skip

words = st.text(max_size=12)
reasons = st.one_of(
    st.builds(as_reason, words),
    st.just(NO_CALLS),
    st.builds(
        lambda case, name: Reason(
            ProofReason.CASE, case=case, problem=Reason(JudgeReason.LOST_ARGUMENT, name=name)
        ),
        words,
        words,
    ),
    st.builds(
        lambda texts: Reason(ProofReason.WHOLE_ONLY, cases=tuple(map(as_reason, texts))),
        st.lists(words, max_size=2),
    ),
)
verdicts = st.builds(
    ParserVerdict, words, words, st.lists(words, max_size=3).map(tuple),
    st.dictionaries(words, reasons, max_size=3), st.just(("one-call",)), st.none() | reasons,
)  # fmt: skip


@given(
    st.builds(
        Proof, words, words, words,
        st.dictionaries(words, st.lists(verdicts, max_size=3).map(tuple), max_size=2),
        st.dictionaries(words, words, max_size=3), st.dictionaries(words, reasons, max_size=2), st.booleans(),
    )
)  # fmt: skip
def test_a_proof_survives_json(proof: Proof) -> None:
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))) == proof


def test_what_is_not_asked_is_a_text_beside_its_kind() -> None:
    data = PROOF.to_json()
    assert data["unasked"] == {"reasoning_parser": render(NO_THINKING)}


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 1}, {"renders": None}, {"written": ["x"]}, {"prompts": {}}, {"verdicts": ["tool_parser"]},
        {"reasons": {"unasked": [1]}}, {"heeds": {"hermes": "abc"}}, {"assumed": "no"},
    ],
)  # fmt: skip
def test_another_type_of_a_member_is_an_error(change: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Proof.from_json(PROOF.to_json() | change)


# Written for other readers: neither is read back.
SHOWN = ("needed", "unasked")


@pytest.mark.parametrize("member", [name for name in PROOF.to_json() if name not in SHOWN])
def test_a_missing_member_is_an_error(member: str) -> None:
    with pytest.raises(KeyError):
        Proof.from_json({name: value for name, value in PROOF.to_json().items() if name != member})


def test_what_a_proof_says() -> None:
    assert PROOF.reads("tool_parser") == ["xml"]
    assert PROOF.streaming("tool_parser", "xml") == as_reason("whole-only")
    assert PROOF.streaming("tool_parser", "hermes") is None
    assert PROOF.streaming("reasoning_parser", None) is None
    tool, reasoning = PROOF.evidence()
    refuted = Reason(ProofReason.CASE, case="one-call", problem=as_reason("read no call"))
    assert tool.value == Proved(
        tool.reason, asked=True, reads=["xml"], complete=["xml"], refuted={"hermes": refuted},
        failed={"xml": {"quotes": as_reason("lost 'text'")}}, tools_rendered=True, unsettled=[], guessed=[],
        liberal=[], derived=[],
    )  # fmt: skip
    assert "1 of 2 tool parsers of vllm 9.9 read" in render(tool.reason)
    assert "vocabulary assumed" in render(tool.reason)
    assert not reasoning.value.asked
    assert render(reasoning.reason) == "not proved: the template renders no reasoning"
    told = "\n".join(PROOF.explain())
    for part in ("xml (Xml) reads it", "but quotes: lost 'text'", "does not: one-call: read no call",
                 "streaming: whole-only", "reasoning_parser: not asked"):  # fmt: skip
        assert part in told


DERIVED = DerivedTemplate({"fields": {"tool_calls": {"open": "<do>"}}}, ("tool_parser",), ("one-call",))


def with_hf(*others: ParserVerdict) -> Proof:
    hf = ParserVerdict("hf", "Hf", ("one-call", "quotes"), {}, ("one-call",))
    return Proof("vllm", "9.9", "d", {"tool_parser": (*others, hf)}, {}, derived=DERIVED)


def facts(proof: Proof) -> Any:
    return proof.evidence()[0].value


def test_a_derived_template_survives_json() -> None:
    proof = with_hf()
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))) == proof


def test_a_derived_template_counts_where_no_strict_parser_reads() -> None:
    fails = ParserVerdict("xml", "Xml", (), {"one-call": as_reason("no call")}, ("one-call",))
    assert facts(with_hf(fails)).complete == ["hf"]
    liberal = ParserVerdict("any", "Any", ("one-call",), {}, ("one-call",), liberal=True)
    assert facts(with_hf(liberal)).complete == ["hf", "any"]
    assert facts(with_hf(liberal)).incomplete == {}


def test_a_derived_template_sets_no_standard() -> None:
    less = ParserVerdict("xml", "Xml", ("one-call",), {"quotes": as_reason("lost")}, ("one-call",))
    assert facts(with_hf(less)).complete == ["xml"]
    assert facts(with_hf(less)).incomplete == {}
    assert facts(with_hf(less)).derived == ["tool_parser"]


def test_a_parser_that_needs_the_default_in_the_document() -> None:
    off = {"enable_thinking": False}
    needs = ParserVerdict("r1", "R1", ("thinking-opened",), {}, ("thinking-opened",), setting=off)
    plain = replace(needs, parser="v3", setting=None)
    proof = Proof("vllm", "9.9", "d", {"reasoning_parser": (needs, plain)}, {})
    assert proof.setting("r1") == off
    assert proof.setting("v3") is None
    assert proof.setting("other") is None
    assert proof.setting(None) is None
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))) == proof


class Asked:
    """Counts how often the parsers were really asked."""

    def __init__(self, proof: Proof = PROOF) -> None:
        self.times, self._proof = 0, proof

    def __call__(self) -> Proof:
        self.times += 1
        return self._proof


@pytest.fixture
def ask(importer_home: Path) -> Asked:
    return Asked()


def prove(ask: Callable[[], Proof], **other: Any) -> Proof:
    given: dict[str, Any] = {"analysis": STUDY, "tokens": TOKENS, "declared": True, "target": VLLM} | other
    given.setdefault("python", Path(sys.executable))
    return cached(**given, ask=ask)


def test_the_same_question_is_asked_once(ask: Asked) -> None:
    assert prove(ask) == prove(ask) == PROOF
    assert ask.times == 1


@pytest.mark.parametrize(
    "other",
    [
        {"analysis": replace(STUDY, digest="d2")},
        {"analysis": replace(STUDY, samples=())},
        {"analysis": replace(STUDY, samples=(replace(STUDY.samples[0], kwargs={"enable_thinking": False}),))},
        {"tokens": replace(TOKENS, tokens=(("<call>", False),))},
        {"tokens": replace(TOKENS, eos="</s>")},
        {"tokens": replace(TOKENS, model_type="gpt_oss")},
        {"tokens": replace(TOKENS, settings={"x": 2})},
        {"declared": False},
        {"target": replace(VLLM, version="9.10")},
        {"target": replace(VLLM, backend="mlx")},
    ],
    ids="-".join,
)
def test_another_question_is_asked_anew(ask: Asked, other: dict[str, Any]) -> None:
    prove(ask)
    prove(ask, **other)
    prove(ask, **other)
    assert ask.times == 2


def test_a_tokenizer_replaced_where_it_lies_is_another(ask: Asked, tmp_path: Path) -> None:
    tokens = replace(TOKENS, directory=tmp_path)
    file = tmp_path / "tokenizer.json"
    for text in ("{}", "{}", '{"added_tokens": []}'):
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        prove(ask, tokens=tokens)
    assert ask.times == 2


def test_other_code_asks_anew(ask: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in module.CODE:
        copy = tmp_path / place
        for file in (
            (module.ROOT / place).rglob("*.py") if not place.endswith(".py") else [module.ROOT / place]
        ):
            to = tmp_path / file.relative_to(module.ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes())
        assert copy.exists()
    prove(ask)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module._code.cache_clear()
    prove(ask)
    assert ask.times == 1
    with (tmp_path / "proof" / "judge.py").open("a") as file:
        file.write("# stricter\n")
    module._code.cache_clear()  # as in another process
    prove(ask)
    assert ask.times == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", "3", '"x"', '{"engine": "vllm"}', "[" * 100_000, "\udcff", "half", "wrong",
     "list"],
)  # fmt: skip
def test_a_damaged_proof_is_asked_anew_and_mended(ask: Asked, importer_home: Path, text: str) -> None:
    prove(ask)
    (file,) = (importer_home / "cache" / "proofs").iterdir()
    whole = PROOF.to_json()
    text = {
        "half": file.read_text()[:80],
        "wrong": json.dumps(whole | {"verdicts": {"tool_parser": [{"parser": "x"}]}}),
        "list": json.dumps(whole | {"verdicts": ["tool_parser"]}),
    }.get(text, text)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert prove(ask) == PROOF
    assert ask.times == 2
    assert prove(ask) == PROOF
    assert ask.times == 2


def test_a_cache_that_cannot_be_written_costs_time_only(ask: Asked, importer_home: Path) -> None:
    importer_home.write_text("a file where the folder belongs")
    assert prove(ask) == prove(ask) == PROOF
    assert ask.times == 2


def test_what_a_machine_spoilt_is_not_kept(importer_home: Path) -> None:
    ask = Asked(replace(PROOF, accidents=1))
    prove(ask)
    prove(ask)
    assert ask.times == 2


@pytest.mark.parametrize("accident", Accident)
def test_an_accident_is_no_verdict(accident: Accident) -> None:
    reason = judge_tool(Sample("one-call", "", ""), Reading(error=Reason(accident, words="w", seconds=1.0)))
    assert reason is not None
    spoilt = ParserVerdict("slow", "Slow", (), {"one-call": reason}, ("one-call",))
    value = facts(replace(PROOF, verdicts={"tool_parser": (spoilt,)}))
    assert (value.reads, value.refuted, [*value.unjudged]) == ([], {}, ["slow"])


def test_a_package_that_comes_or_goes_asks_anew(ask: Asked, tmp_path: Path) -> None:
    packages = tmp_path / "venv" / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    prove(ask, python=python)
    prove(ask, python=python)
    assert ask.times == 1
    os.utime(packages, (1, 1))  # as an install leaves it
    prove(ask, python=python)
    assert ask.times == 2


def snapshot(**config: Any) -> Snapshot:
    return Snapshot("r", "a/b", None, (), {"config.json": json.dumps(config)})


def named(rule: str, value: str) -> list[Evidence]:
    return [Evidence(Rule(rule), "tool_parser", value, "table", as_reason("says"))]


def test_models_that_the_engine_renders_itself() -> None:
    for architecture, mode in MODES.items():
        assert own_renderer(snapshot(architectures=[architecture]), [], VLLM) == mode
    assert own_renderer(snapshot(model_type="gpt_oss"), [], VLLM) == "harmony"
    assert own_renderer(snapshot(architectures=["LlamaForCausalLM"]), [], VLLM) is None
    assert own_renderer(snapshot(), named("family-table", "deepseek_v32"), VLLM) == "deepseek_v32"
    assert own_renderer(snapshot(), named("template-format", "deepseek_v32"), VLLM) is None
    assert own_renderer(snapshot(), named("family-table", "hermes"), VLLM) is None
    sglang = Target("sglang", "9.9")
    assert own_renderer(snapshot(architectures=["DeepseekV4ForCausalLM"]), [], sglang) == "dsv4"
    assert own_renderer(snapshot(architectures=["DeepseekV32ForCausalLM"]), [], sglang) == "dsv32"
    templated = replace(snapshot(architectures=["DeepseekV3ForCausalLM"]), texts={
        "config.json": '{"architectures": ["DeepseekV3ForCausalLM"]}', "chat_template.jinja": "T",
    })  # fmt: skip
    assert own_renderer(templated, [], sglang) is None
    mlx = Target("mlx", "9.9")
    assert own_renderer(snapshot(architectures=["DeepseekV32ForCausalLM"]), [], mlx) is None


def test_harmonys_parser_is_asked_though_a_library_writes_the_prompt() -> None:
    assert is_read(None, VLLM)
    assert is_read(rendered_by("harmony", VLLM), VLLM)
    assert not is_read(rendered_by("deepseek_v32", VLLM), VLLM)
    assert not is_read(rendered_by("harmony", VLLM), replace(VLLM, frontend="rust"))


def test_a_validation_renders_no_template_for_such_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt_oss"}', encoding="utf-8")
    (tmp_path / "chat_template.jinja").write_text("T", encoding="utf-8")
    with template_rendering(tmp_path, {"backend": "vllm"}, None) as none:
        assert none is None
    with template_rendering(tmp_path, {"backend": "mlx"}, None) as some:
        assert some is not None


def test_such_a_model_is_not_proved_and_the_reason_is_said() -> None:
    proof = unproved(rendered_by("deepseek_v32", VLLM), VLLM, "d1")
    for fact in proof.evidence():
        assert not fact.value.asked
        assert "renders this model by its own code (deepseek_v32)" in render(fact.reason)
