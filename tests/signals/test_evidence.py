"""Readers of evidence on files of our own: what they claim, and what hostile figures and names come to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from importer.chat_template import analyze as learning
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer
from importer.chat_template.samples import Sample, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.decisions.decide import decide
from importer.decisions.decision import Preferences, Target
from importer.engines import registries
from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals import (
    architecture,
    declared_parsers,
    loading,
    sampling,
    template_markers,
    thinking_signs,
)
from importer.signals.collect import collect, for_engine
from importer.signals.evidence import Evidence, Rule, is_warning
from importer.signals.kind import find_kind
from tests import template_texts as texts

FIELDS = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
BLOCK = texts.THINKING.replace("PROMPT", "")


def registry(engine: str) -> Target:
    found = registries.load(engine, registries.PINNED[engine])
    parsers = {"tool_parser": found.classes("tool"), "reasoning_parser": found.classes("reasoning")}
    return Target(engine, found.version, parsers)


VLLM, MLX = registry("vllm"), registry("mlx")


def snapshot(info: Mapping[str, Any] | None = None, **files: Any) -> Snapshot:
    """``generation_config={…}`` is generation_config.json; a text is taken as it is."""
    told = {f"{n}.json": f if isinstance(f, str) else json.dumps(f) for n, f in files.items()}
    return Snapshot("r", "someone/thing", None, (), told, info or {})


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer() as warm:
        yield warm


def learn(renderer: Renderer, text: str) -> TemplateAnalysis:
    vocabulary = Vocabulary(named={"bos_token": "<s>"})
    return learning.analyze(Template(text, "chat_template.jinja"), vocabulary, renderer)


# sampling


def values(**config: Any) -> dict[str, Any]:
    return {e.key: e.value for e in sampling.evidence(snapshot(generation_config=config))}


def test_what_the_vendor_published() -> None:
    assert values(temperature=0.6, top_p=0.95, top_k=20, min_p=0, repetition_penalty=1.05) == {
        "parameters.temperature": 0.6, "parameters.top_p": 0.95, "parameters.top_k": 20,
        "parameters.min_p": 0, "parameters.repeat_penalty": 1.05,
    }  # fmt: skip


@pytest.mark.parametrize(
    "value", ["0.7", True, False, [0.7], {"value": 0.7}, float("nan"), float("inf"), float("-inf")],
)  # fmt: skip
def test_what_is_no_number_is_shown_without_a_value(value: Any) -> None:
    (fact,) = sampling.evidence(snapshot(generation_config={"temperature": value}))
    assert (fact.rule, fact.value) == ("generation-config-unusable", None)
    assert "temperature: " in render(fact.reason)


@pytest.mark.parametrize(
    "given", [{"temperature": v} for v in (-0.1, 2.1, 5, 10**400, -(10**400))]
    + [{"top_p": 0}, {"top_p": 1.1}, {"top_k": 40.5}, {"top_k": -2}, {"repetition_penalty": 0}],
)  # fmt: skip
def test_a_number_that_no_engine_takes_is_shown_without_a_value(given: dict[str, Any]) -> None:
    (fact,) = sampling.evidence(snapshot(generation_config=given))
    assert (fact.rule, fact.value) == ("generation-config-unusable", None)
    assert len(render(fact.reason)) < 160


@pytest.mark.parametrize(("given", "found"), [(40, 40), (40.0, 40), (-1, -1), (0, 0), (40.5, None)])
def test_top_k_is_a_whole_number(given: float, found: int | None) -> None:
    got = values(top_k=given).get("parameters.top_k")
    assert got == found
    assert not isinstance(got, float)


def test_do_sample_false_is_greedy_and_true_alone_is_sampling_at_one() -> None:
    assert values(do_sample=False) == {"parameters.temperature": 0}
    assert values(do_sample=False, temperature=None) == {"parameters.temperature": 0}
    greedy, beside = sampling.evidence(snapshot(generation_config={"do_sample": False, "temperature": 0.3}))
    assert (greedy.value, beside.value) == (0, 0.3)
    (implied,) = sampling.evidence(snapshot(generation_config={"do_sample": True}))
    assert (implied.rule, implied.value) == ("generation-config-implied", 1.0)
    assert values(do_sample=True, temperature=0.3) == {"parameters.temperature": 0.3}
    assert values(do_sample=0) == {}


def test_a_broken_file_is_an_error_with_its_name() -> None:
    with pytest.raises(RepositoryError, match=r"generation_config\.json"):
        sampling.evidence(snapshot(generation_config="[]"))
    assert sampling.evidence(snapshot()) == []


@pytest.mark.parametrize("text", ["", "{", "\ufeff{}"])
def test_a_file_that_engines_pass_over_is_a_warning(text: str) -> None:
    one = snapshot(generation_config=text)
    [fact] = sampling.unread_evidence(one, "mlx")
    assert sampling.evidence(one) == []
    assert is_warning(fact.reason)
    assert [*sampling.unread_evidence(snapshot(generation_config="{}"), "mlx")] == []


# architecture and backend


def test_the_hubs_part_of_the_config_speaks_where_the_file_is_missing() -> None:
    told = {"config": {"model_type": "Llama", "architectures": ["A", 3]}}
    assert architecture.model_types(snapshot(told)) == ("llama",)
    assert architecture.architectures(snapshot(told)) == ("A",)
    assert architecture.model_types(snapshot(told, config={"model_type": "other"})) == ("other",)
    assert architecture.architectures(snapshot({"config": "x"})) == ()


@pytest.mark.parametrize(
    ("given", "platform", "found"),
    [
        ({}, "linux", ["vllm"]),
        ({}, "darwin", ["mlx"]),
        ({"vision_config": {}}, "darwin", ["mlx-vlm"]),
        ({"quantization": {"group_size": 64, "bits": 4}}, "linux", ["mlx", "vllm"]),
        ({"quantization": {"group_size": 64, "bits": 4}, "vision_config": {}}, "linux", ["mlx-vlm", "vllm"]),
    ],
)
def test_which_engine_can_load_it(given: dict[str, Any], platform: str, found: list[str]) -> None:
    facts = loading.backend_evidence(snapshot(config=given), platform)
    assert [e.value for e in facts] == found
    assert decide(facts, Preferences(), VLLM)["backend"].value == found[0]


# claims


def claimed(engine: str, **settings: Any) -> dict[str, Any]:
    return {
        e.key: e.value for e in declared_parsers.declared_parsers(snapshot(tokenizer_config=settings), engine)
    }


def test_a_claim_is_told_in_the_engines_own_words() -> None:
    assert claimed("mlx", tool_parser_type="json_tools") == {"tool_parser": "json_tools"}
    assert claimed("vllm", tool_parser_type="json_tools") == {"tool_parser": "hermes"}
    assert claimed("vllm", tool_parser_type="never-heard-of") == {}


@pytest.mark.parametrize(
    "value", ["../x", "json_tools\n--trust-remote-code", "a" * 5000, "", 3, {"a": 1}, "hermes --enable"],
)  # fmt: skip
@pytest.mark.parametrize(
    "target", [VLLM, MLX, Target("mlx-vlm"), Target("vllm-mlx")], ids=lambda t: t.backend
)
def test_a_hostile_claim_never_becomes_a_decision(value: Any, target: Target) -> None:
    hostile = snapshot(tokenizer_config={"tool_parser_type": value})
    facts = for_engine([], hostile, target.backend, target.parsers)
    assert decide(facts, Preferences(), target)["tool_parser"].value is None


def test_a_response_template_claims_what_it_has_fields_for() -> None:
    both = {"fields": {"tool_calls": {}, "thinking": {}}}
    assert claimed("vllm", response_template=both) == {"tool_parser": "hf", "reasoning_parser": "hf"}
    assert claimed("vllm", response_template={"fields": {"content": {}}}) == {}
    assert claimed("mlx", response_template=both) == claimed("vllm", response_template=None) == {}


# kin


@pytest.mark.parametrize(
    ("model_type", "tool", "reasoning"),
    [
        ("gemma4", "gemma4", "gemma4"),
        ("seed_oss", "seed_oss", "seed_oss"),
        ("minimax_m2", "minimax_m2", None),  # two parsers of that line
        ("nemotron_h", None, "nemotron_v3"),
        ("gpt_oss", "openai", "openai_gptoss"),  # by the names of their classes
        ("qwen3", None, "qwen3"),  # the class of qwen3_coder is Qwen3EngineToolParser
        ("deepseek_v3", "deepseek_v3", None),  # DeepSeek-R1 has this type and another parser
        ("olmo2", None, None),  # a line's other version
        ("llama", None, None),
        ("___", None, None),
        ("../hermes", "hermes", None),  # still a name of the registry
        ("", None, None),
    ],
)
def test_parsers_that_bear_the_types_name(model_type: str, tool: str | None, reasoning: str | None) -> None:
    told = declared_parsers.model_type_match(
        snapshot(config={"model_type": model_type}), "vllm", VLLM.parsers, calls=True, thinks=True
    )
    found = {e.key: e.value for e in told}
    assert (found.get("tool_parser"), found.get("reasoning_parser")) == (tool, reasoning)


def test_a_type_says_nothing_of_reasoning_that_no_template_shows() -> None:
    told = declared_parsers.model_type_match(
        snapshot(config={"model_type": "gemma4"}), "vllm", VLLM.parsers, calls=True, thinks=False
    )
    assert [e.key for e in told] == ["tool_parser"]


@pytest.mark.parametrize(
    ("tokens", "tool"),
    [
        (("<|tool_call_start|>", "<|tool_call_end|>"), "lfm2"),
        (("<|tool_call_start|>",), None),
        (("<tool_call>", "</tool_call>"), None),
    ],
)
def test_the_tokens_of_calls_show_calls_under_a_template_without_them(
    tokens: tuple[str, ...], tool: str | None
) -> None:
    added = {str(i): {"content": token} for i, token in enumerate(tokens)}
    one = snapshot(config={"model_type": "lfm2"}, tokenizer_config={"added_tokens_decoder": added})
    told = declared_parsers.model_type_match(one, "vllm", VLLM.parsers, calls=False, thinks=False)
    assert next((e.value for e in told), None) == tool


ALIKE = (Rule.TYPE_LINE, Rule.TYPE_NAME, Rule.NAME_LIKE)


# rendered


def shown(found: TemplateAnalysis | None) -> dict[str, Evidence]:
    return {e.key: e for e in template_markers.evidence(found)}


@pytest.mark.parametrize(
    ("text", "parser", "rule", "says"),
    [
        (texts.CHATML_JSON, "hermes", "template-format", ""),
        (texts.XML_PARAMETERS, "qwen3_coder", "template-format", ""),
        (texts.HEADERS, None, "template", ""),
        (texts.CHANNELS, None, "template", ""),
        (texts.PYTHONIC, None, "template", "not known by its markers"),
        (texts.REFUSES_TOOLS, None, "template", "this model has no tools"),
        ("{{ undefined.field }}", None, "template", ""),
    ],
)
def test_calls_by_what_was_rendered(
    renderer: Renderer, text: str, parser: str | None, rule: str, says: str
) -> None:
    fact = shown(learn(renderer, text))["tool_parser"]
    assert (fact.value, fact.rule) == (parser, rule)
    assert says in render(fact.reason)


def test_instructions_in_the_prompt_speak_where_no_call_is_rendered(renderer: Renderer) -> None:
    asks = '{% if tools %}Write <tool_call>{"name": …}</tool_call> for {{ tools | tojson }}{% endif %}'
    fact = shown(learn(renderer, asks + texts.ALTERNATING))["tool_parser"]
    assert (fact.value, fact.rule) == ("hermes", "template-instructions")
    assert "<tool_call>" in fact.quote


@pytest.mark.parametrize(
    ("text", "parser", "rule", "says"),
    [
        (texts.SWITCHED, "qwen3", "template-format", "switched by enable_thinking, by default on"),
        (texts.OPENED, "deepseek_r1", "template-format", "opens a block in the prompt"),
        (texts.CHANNELS, None, "template", "in a block of its own"),
        (texts.CHATML_JSON, None, "template-format", "renders no reasoning"),
        (BLOCK, None, "template-format", "nothing shows that this model thinks"),
        ("{% if %}", None, "template", "could not be rendered"),
    ],
)
def test_reasoning_by_what_was_rendered(
    renderer: Renderer, text: str, parser: str | None, rule: str, says: str
) -> None:
    fact = shown(learn(renderer, text))["reasoning_parser"]
    assert (fact.value, fact.rule) == (parser, rule)
    assert says in render(fact.reason)


def test_without_a_template_nothing_is_claimed() -> None:
    facts = template_markers.evidence(None)
    assert {e.rule for e in facts} == {"template"}
    assert {e.key for e in facts} == set(FIELDS)
    decisions = decide(facts, Preferences(), VLLM)
    assert {decisions[k].status for k in FIELDS} == {"unknown"}


# gather


SILENT = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "info", "files", "said"),
    [
        ("a/VibeThinker-1.5B", {}, {}, ["name"]),
        ("a/field-agent", {"card": {"base_model": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"}}, {}, ["base"]),
        ("a/field-agent", {}, {"added_tokens": {"<think>": 7, "</think>": 8}}, ["tokens"]),
        ("a/field-agent", {"tags": ["reasoning", "en"]}, {}, ["card"]),
        ("a/field-agent", {}, {}, []),
        ("a/Qwen3-non-thinking", {}, {}, []),
        ("MiniMaxAI/MiniMax-M1-80k", {}, {}, ["family"]),
        ("MiniMaxAI/MiniMax-Text-01", {}, {}, []),
    ],
)
def test_signs_of_thinking_beside_a_silent_template(
    renderer: Renderer, name: str, info: Mapping[str, Any], files: Mapping[str, Any], said: list[str]
) -> None:
    found = replace(snapshot(info, **files), model_id=name)
    facts = thinking_signs.evidence(found, learn(renderer, SILENT))
    assert [kind for fact in facts for kind in fact.value] == said
    hidden = thinking_signs.evidence(found, learn(renderer, SILENT), ignore_name=True)
    assert [kind for fact in hidden for kind in fact.value] == [kind for kind in said if kind == "tokens"]


def test_a_block_that_the_template_cuts_out_is_a_sign(renderer: Renderer) -> None:
    (fact,) = thinking_signs.evidence(snapshot(), learn(renderer, BLOCK))
    assert fact.value == ["block"]
    assert "cut of past answers at </think>" in render(fact.reason)


def test_a_card_that_denies_thinking_is_no_sign(renderer: Renderer) -> None:
    for card, kinds in (("It writes <think> first.", ["card"]), ("A non-thinking mode without <think>.", [])):
        found = replace(snapshot(), texts={"README.md": card})
        facts = thinking_signs.evidence(found, learn(renderer, SILENT))
        assert [kind for fact in facts for kind in fact.value] == kinds


def test_a_chat_model_without_any_template_is_a_finding() -> None:
    def faults(found: Snapshot, kind: str = "chat") -> list[str]:
        able = registries.load_capabilities("vllm", "0.33.0")
        return [render(f.reason) for f in template_markers.template_fault_evidence(found, able, kind, [])]

    bare = snapshot(tokenizer_config={"eos_token": "</s>"})
    assert "no file has a chat template" in "".join(faults(bare))
    assert faults(bare, "base") == faults(snapshot(tokenizer_config={"chat_template": "{{ 1 }}"})) == []
    assert faults(replace(snapshot(), files=(RepoFile("chat_template.jinja", 9),))) == []


def all_facts(source: Snapshot, found: TemplateAnalysis | None) -> list[Evidence]:
    return collect(source, find_kind(source), found, "linux", ignore_name=False)


def test_parsers_are_named_as_the_engine_names_them(renderer: Renderer) -> None:
    facts = all_facts(snapshot(), learn(renderer, texts.OFFER + texts.SWITCHED))
    for target, tool, thought in ((VLLM, "hermes", "qwen3"), (MLX, "json_tools", "<think>")):
        decisions = decide(
            for_engine(facts, snapshot(), target.backend, target.parsers), Preferences(), target
        )
        assert (decisions["tool_parser"].value, decisions["reasoning_parser"].value) == (tool, thought)


def test_a_parser_that_the_other_engine_lacks_is_left_unsaid() -> None:
    source = replace(snapshot(), model_id="deepseek-ai/DeepSeek-V3.1")
    facts = all_facts(source, None)
    assert decide(for_engine(facts, source, "vllm", VLLM.parsers), Preferences(), VLLM)["tool_parser"].value
    on_mlx = decide(for_engine(facts, source, "mlx", MLX.parsers), Preferences(), MLX)["tool_parser"]
    assert on_mlx.status == "unknown"


def test_the_type_says_how_a_template_that_thinks_is_read(renderer: Renderer) -> None:
    source = snapshot(config={"model_type": "nemotron_h"})
    facts = all_facts(source, learn(renderer, texts.SWITCHED))
    assert (
        decide(for_engine(facts, source, "vllm", VLLM.parsers), Preferences(), VLLM)["reasoning_parser"].value
        == "nemotron_v3"
    )
    silent = all_facts(source, learn(renderer, texts.CHATML_JSON))
    assert not [e for e in for_engine(silent, source, "vllm", VLLM.parsers) if e.rule == "type-line"]


def named(found: TemplateAnalysis, **config: str) -> dict[str, set[str]]:
    """Return the parsers by the model's type and name."""
    source = replace(snapshot(config=dict(config)), model_id="acme/deepseekr1")
    facts = for_engine(all_facts(source, found), source, "vllm", VLLM.parsers)
    return {k: {e.value for e in facts if e.key == k and e.rule in ALIKE} for k in FIELDS}


def test_a_type_names_no_tool_parser_where_tools_have_no_place(renderer: Renderer) -> None:
    assert named(learn(renderer, texts.ALTERNATING), model_type="mistral")["tool_parser"] == set()
    offered = learn(renderer, texts.OFFER + texts.ALTERNATING)
    assert named(offered, model_type="mistral")["tool_parser"] == {"mistral"}


def test_a_block_that_is_only_cut_out_does_not_show_that_the_model_thinks() -> None:
    thinking = Thinking(("<think>", "</think>"), source="stripped")
    cut = TemplateAnalysis("d", (Sample("plain", "", "yes"),), thinking)
    fact = shown(cut)["reasoning_parser"]
    assert (fact.value, fact.rule) == (None, "template-format")
    assert named(cut)["reasoning_parser"] == {"deepseek_r1"}  # the name still says so
    written = replace(cut, thinking=replace(thinking, source="rendered"))
    assert named(written)["reasoning_parser"] == set()
    own = replace(cut, thinking=replace(thinking, markers=("[THINK]", "[/THINK]")))
    assert not shown(own)["reasoning_parser"].reason.fields["idle"]


def test_a_switch_without_a_block_leaves_reasoning_open() -> None:
    switched = TemplateAnalysis("d", (Sample("plain", "", "yes"),), Thinking(switch="enable_thinking"))
    fact = shown(switched)["reasoning_parser"]
    assert (fact.value, fact.rule) == (None, "template")
    assert "enable_thinking" in render(fact.reason)
    assert "gemma4" in named(switched, model_type="gemma4")["reasoning_parser"]
