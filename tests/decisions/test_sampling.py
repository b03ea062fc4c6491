"""Deciding on sampling: who is heard, which way the model answers, how long an answer may be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.backends import BACKENDS
from importer.chat_template.samples import Thinking
from importer.decisions.decide import decide
from importer.decisions.decision import (
    Chosen,
    Decision,
    KnownNone,
    Preferences,
    Target,
    Undecided,
    WeighReason,
)
from importer.decisions.sampling import KEYS, SamplingReason, thinks
from importer.document.build import comment, to_json
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.sentences import render
from importer.signals import family, sampling
from importer.signals.evidence import Evidence, Rule
from tests.facts import as_reason, whys

TEMPERATURE = "parameters.temperature"
LENGTH = "parameters.max_tokens"
THINK = ("<think>", "</think>")
SWITCH = {"switch": "enable_thinking", "on": {"enable_thinking": True}, "off": {"enable_thinking": False}}
BY_DEFAULT = Thinking(markers=THINK, default=True, **SWITCH)  # type: ignore[arg-type]
ON_REQUEST = Thinking(markers=THINK, default=False, **SWITCH)  # type: ignore[arg-type]
ALWAYS = Thinking(markers=THINK, opened=True, default=True)
NEVER = Thinking()


def fact(rule: str, value: Any, key: str = TEMPERATURE, source: str = "") -> Evidence:
    return Evidence(
        Rule(rule), key, value, source or f"{rule}.json", as_reason(f"{rule} says {value}"), f"{rule} {value}"
    )


def repository(**settings: Any) -> Snapshot:
    """One with these settings in its generation config."""
    return Snapshot("", None, None, (), {sampling.FILE: json.dumps(settings)})


def modes(rule: str, thinking: float, non_thinking: float, key: str = "temperature") -> list[Evidence]:
    return [
        fact(rule, thinking, f"sampling_modes.thinking.{key}"),
        fact(rule, non_thinking, f"sampling_modes.non_thinking.{key}"),
    ]


def decided(
    *facts: Evidence,
    thinking: Thinking | None = None,
    prefer: dict[str, Any] | None = None,
    backend: str = "vllm",
) -> dict[str, Decision]:
    return decide(facts, Preferences(prefer or {}), Target(backend), thinking)


def test_user_then_file_then_card_then_table_and_all_who_lost_are_shown() -> None:
    order = ["generation-config", "card-header", "card", "sampling-table"]
    facts = [fact(rule, i / 10) for i, rule in enumerate(order)]
    prefer: dict[str, Any] = {TEMPERATURE: 2}
    for count in range(len(order)):
        decision = decided(*reversed(facts[count:]), prefer=prefer)[TEMPERATURE]
        expected = 2 if prefer else count / 10
        assert decision.value == expected
        assert [o.value for o in decision.overruled] == [
            i / 10 for i in range(count + (0 if prefer else 1), len(order))
        ]
        prefer = {}
    assert isinstance(decided()["tool_parser"], Undecided)
    spoken = {key: why.why[0].kind for key, why in decided().items() if key in KEYS}
    assert spoken == {TEMPERATURE: SamplingReason.SERVER_DRAWS}  # nobody spoke: the engine's default is said


def test_zero_is_a_value_of_everybody() -> None:
    for rule in ("generation-config", "card", "sampling-table"):
        assert decided(fact(rule, 0), fact("sampling-table", 1.5))[TEMPERATURE].value == 0
    assert decided(fact("card", 1), prefer={TEMPERATURE: 0})[TEMPERATURE].value == 0


def test_a_table_that_contradicts_the_vendor_is_shown_in_the_comment_too() -> None:
    decision = decided(fact("generation-config", 0.6), fact("sampling-table", 1.5, source="t.json"))[
        TEMPERATURE
    ]
    assert comment(decision) == "vendor; not 1.5 (t.json)"
    agreed = decided(fact("generation-config", 0.6), fact("sampling-table", 0.6))[TEMPERATURE]
    assert agreed.overruled == ()


@pytest.mark.parametrize(
    ("thinking", "kwargs", "expected"),
    [
        (BY_DEFAULT, None, 0.6), (BY_DEFAULT, {"enable_thinking": False}, 0.7),
        (BY_DEFAULT, {"enable_thinking": True}, 0.6), (BY_DEFAULT, {"other": False}, 0.6),
        (ON_REQUEST, None, 0.7), (ON_REQUEST, {"enable_thinking": True}, 0.6), (ALWAYS, None, 0.6),
        (NEVER, None, 0.7),
    ],
)  # fmt: skip
def test_the_set_is_that_of_the_way_the_model_answers(
    thinking: Thinking, kwargs: Any, expected: float
) -> None:
    prefer = {} if kwargs is None else {"chat_template_kwargs": kwargs}
    decisions = decided(*modes("card", 0.6, 0.7), thinking=thinking, prefer=prefer)
    assert decisions[TEMPERATURE].value == expected
    assert decisions["sampling_modes"].value == {
        "thinking": {"temperature": 0.6}, "non_thinking": {"temperature": 0.7},
    }  # fmt: skip
    if kwargs and len(kwargs) == 1 and "enable_thinking" in kwargs:
        single = {"chat_template_kwargs.enable_thinking": kwargs["enable_thinking"]}
        again = decided(*modes("card", 0.6, 0.7), thinking=thinking, prefer=single)
        assert again[TEMPERATURE].value == expected


def test_the_file_speaks_for_the_usual_way_only() -> None:
    facts = [fact("generation-config", 0.5), *modes("sampling-table", 0.6, 0.7)]
    usual = decided(*facts, thinking=BY_DEFAULT)
    assert (usual[TEMPERATURE].value, usual[TEMPERATURE].status) == (0.5, "vendor")
    assert usual["sampling_modes"].value["thinking"] == {"temperature": 0.5}
    other = decided(*facts, thinking=BY_DEFAULT, prefer={"chat_template_kwargs": {"enable_thinking": False}})
    assert (other[TEMPERATURE].value, other[TEMPERATURE].status) == (0.7, "table")
    (lost,) = other[TEMPERATURE].overruled
    assert "for answers with thinking" in render(lost.why)
    assert other["sampling_modes"].value["thinking"] == {"temperature": 0.5}
    only = decided(facts[0], thinking=BY_DEFAULT, prefer={"chat_template_kwargs": {"enable_thinking": False}})
    assert only[TEMPERATURE].value == 0.5, "nobody has a value for the other way"


def test_where_the_way_is_not_known_only_agreement_counts() -> None:
    apart, alike = modes("card", 0.6, 0.7), modes("card", 0.9, 0.9, "top_p")
    decisions = decided(*apart, *alike)
    assert isinstance(decisions[TEMPERATURE], Undecided)
    assert decisions["parameters.top_p"].value == 0.9
    assert "not known" in whys(decisions["sampling_modes"])[0]
    assert decided(*apart, fact("sampling-table", 0.8))[TEMPERATURE].value == 0.8


def test_a_switch_of_any_name_and_form() -> None:
    effort = Thinking(
        markers=THINK, switch="effort", default=True, on={"effort": "high"}, off={"effort": "none"}
    )
    for value, expected in (("high", True), ("none", False), ("low", None), (False, False)):
        given: Any = {
            "chat_template_kwargs": Chosen({"effort": value}, "user", ()), "reasoning_parser": KnownNone(()),
        }  # fmt: skip
        assert thinks(effort, given, "vllm") is expected


def test_mlx_vlm_thinks_where_the_document_has_a_parser_of_thoughts() -> None:
    facts = modes("card", 0.6, 0.7)
    assert decided(*facts, thinking=BY_DEFAULT, backend="mlx-vlm")[TEMPERATURE].value == 0.7
    with_parser = [*facts, fact("family-table", "<think>", "reasoning_parser")]
    assert decided(*with_parser, thinking=BY_DEFAULT, backend="mlx-vlm")[TEMPERATURE].value == 0.6


def test_the_table_keeps_the_sets_apart() -> None:
    facts = family.from_name("Qwen/Qwen3-8B")
    on, off = (decided(*facts, thinking=t) for t in (BY_DEFAULT, NEVER))
    assert (on[TEMPERATURE].value, on["parameters.top_p"].value) == (0.6, 0.95)
    assert (off[TEMPERATURE].value, off["parameters.top_p"].value) == (0.7, 0.8)
    assert on["sampling_modes"].value == off["sampling_modes"].value


def test_what_is_unclear_or_unusable_is_shown_and_never_taken() -> None:
    unclear = fact("card-unclear", [0.6, 0.8])
    alone = decided(unclear)[TEMPERATURE]
    assert isinstance(alone, Undecided)
    assert alone.overruled[0].value == [0.6, 0.8]
    with_table = decided(unclear, fact("sampling-table", 0.7))[TEMPERATURE]
    assert (with_table.value, [o.value for o in with_table.overruled]) == (0.7, [[0.6, 0.8]])
    refused = decided(fact("generation-config-unusable", None))[TEMPERATURE]
    assert isinstance(refused, KnownNone), "the engine must not take it from the file either"


# How long an answer may be


ADVICE = fact("card", 32768, LENGTH)
CONTEXT = fact("config", 131072, "max_model_len")


def test_transformers_limits_are_shown_and_never_taken() -> None:
    [limit] = sampling.evidence(repository(max_new_tokens=512))
    on_vllm = decided(limit)[LENGTH]
    assert isinstance(on_vllm, KnownNone), "vLLM would take it from the file"
    assert on_vllm.overruled[0].value == 512
    on_mlx = decided(limit, CONTEXT, backend="mlx")[LENGTH]
    assert (on_mlx.value, on_mlx.status, on_mlx.overruled[0].value) == (32768, "engine-default", 512)


def test_a_long_answer_has_room_where_the_server_would_cut_it() -> None:
    assert LENGTH not in decided(CONTEXT)
    for backend, cut in ((b.name, b.cut) for b in BACKENDS.values() if b.cut is not None):
        thought = decided(CONTEXT, thinking=ALWAYS, backend=backend)[LENGTH]
        plain = decided(CONTEXT, thinking=NEVER, backend=backend)[LENGTH]
        assert thought.value > plain.value > cut
        advised = decided(ADVICE, CONTEXT, thinking=ALWAYS, backend=backend)[LENGTH]
        assert (advised.value, advised.status) == (32768, "vendor")
        small = decided(fact("config", 4 * cut, "max_model_len"), backend=backend)[LENGTH]
        assert small.value == 2 * cut, "the prompt wants room too"
        assert LENGTH not in decided(fact("config", cut, "max_model_len"), backend=backend)
        base = decided(CONTEXT, fact("kind-name", "base", "kind"), backend=backend)
        assert LENGTH not in base, "a base model does not end by itself"
        assert decided(CONTEXT, prefer={LENGTH: 5}, backend=backend)[LENGTH].value == 5
    room = fact("config", 4096, "engine_args.max_kv_size")
    assert decided(CONTEXT, room, backend="mlx")[LENGTH].value == 2048
    assert isinstance(decided(ADVICE)[LENGTH], Undecided), "on vLLM it would be a limit"


rules = st.sampled_from(
    ["generation-config", "generation-config-implied", "generation-config-unusable", "card", "card-header",
     "card-unclear", "sampling-table", "generation-config-length"]
)  # fmt: skip
places = st.sampled_from(
    [*KEYS, "sampling_modes.thinking.temperature", "sampling_modes.non_thinking.temperature",
     "sampling_modes.thinking.top_p"]
)  # fmt: skip
thoughts = st.sampled_from([None, BY_DEFAULT, ON_REQUEST, ALWAYS, NEVER])


@given(
    st.lists(st.tuples(rules, places, st.sampled_from([0, 1, 600])), max_size=8),
    thoughts,
    st.sampled_from(["vllm", "mlx", "mlx-vlm", "vllm-mlx"]),
    st.sampled_from([{}, {TEMPERATURE: None}, {TEMPERATURE: 0}, {LENGTH: None}]),
)
def test_whatever_is_said_every_decision_is_sound(
    said: list[tuple[str, str, int]], thinking: Thinking | None, backend: str, prefer: dict[str, Any]
) -> None:
    facts = [fact(rule, None if rule.endswith("unusable") else value, key) for rule, key, value in said]
    decisions = decided(*facts, thinking=thinking, prefer=prefer, backend=backend)
    for key, decision in decisions.items():
        shown = to_json(decision)
        assert shown["why"]
        assert (decision.value is None) == (decision.status in ("none", "unknown")), key
    for key, value in prefer.items():
        assert (decisions[key].value, decisions[key].why) == (value, (Reason(WeighReason.SET_BY_USER),))


def test_greedy_decoding_by_the_vendor_leaves_out_what_a_family_draws_with() -> None:
    file = sampling.evidence(repository(do_sample=False, repetition_penalty=1.1))
    table = [
        fact("sampling-table", 0.8, "parameters.top_p"),
        fact("card", 1.5, "parameters.presence_penalty"),
    ]
    found = decided(*file, *table, prefer={"parameters.top_k": 5})
    values = {key: found[key].value for key in found if key.startswith("parameters.")}
    assert values == {
        TEMPERATURE: 0, "parameters.top_p": None, "parameters.top_k": 5, "parameters.repeat_penalty": 1.1,
        "parameters.presence_penalty": None,
    }  # fmt: skip
    assert [reason.kind for reason in found["parameters.top_p"].why] == [SamplingReason.GREEDY]
    drawn = decided(*file, *table, prefer={TEMPERATURE: 0.5})
    assert drawn["parameters.top_p"].value == 0.8
