"""Decisions by completeness: before claims, after the user; settings complete a parser; equals are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.samples import Thinking
from importer.decisions.decide import decide
from importer.decisions.decision import Chosen, KnownNone, Preferences, Target, Undecided
from importer.decisions.parsers import ParserReason
from importer.document.attention import AttentionReason, attention
from importer.proof.completeness import ranked
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule, is_warning
from tests.facts import as_reason

NAMES = ("deepseek_r1", "qwen3", "glm45", "glm47", "poolside_v1", "hf")
CLASSES = {"glm45": "Glm", "glm47": "Glm"}
TARGET = Target(
    "vllm", "9.9",
    {
        "tool_parser": {"hermes": "Hermes", "granite4": "Granite4", "llama3_json": "Llama"},
        "reasoning_parser": {name: CLASSES.get(name, name) for name in NAMES},
    },
    proves=True,
)  # fmt: skip
NEEDED = {"reasoning_parser": ("thinking-whole",), "tool_parser": ("one-call",)}


def verdict(key: str, name: str, passed: str, failed: str = "", **more: Any) -> ParserVerdict:
    problems = {case: as_reason("left no content") for case in failed.split()}
    classes = TARGET.parsers[key]
    return ParserVerdict(name, classes[name], tuple(passed.split()), problems, NEEDED[key], **more)


def proof(key: str, *verdicts: ParserVerdict, shown: bool = True) -> Proof:
    return Proof("vllm", "9.9", "d", {key: verdicts}, {}, tools_rendered=shown)


def claim(rule: Rule, key: str, value: str | None) -> Evidence:
    return Evidence(rule, key, value, "table", as_reason(f"{rule} says {value}"))


def decided(key: str, found: Proof, *claims: Evidence, **preferences: Any) -> dict[str, Any]:
    facts = [*claims, *found.evidence()]
    return decide(facts, Preferences(preferences), TARGET, Thinking(), found.setting)


R1 = verdict("reasoning_parser", "deepseek_r1", "thinking-whole", "plain")
QWEN = verdict("reasoning_parser", "qwen3", "thinking-whole plain", effect="one")
GLM = verdict("reasoning_parser", "glm45", "thinking-whole plain", effect="one")
SAID = verdict(
    "reasoning_parser", "poolside_v1", "thinking-whole plain", setting={"enable_thinking": True}, effect="two"
)


def test_a_parser_that_loses_the_plain_answer_is_not_chosen_whoever_names_it() -> None:
    """As MiniCPM5-1B, that a list gave ``deepseek_r1``: an answer without reasoning came back empty."""
    for rule in (Rule.FAMILY_TABLE, Rule.MODEL_TYPE, Rule.REPOSITORY_CLAIM, Rule.NAME_LIKE):
        chosen = decided(
            "reasoning_parser",
            proof("reasoning_parser", QWEN, GLM, R1),
            claim(rule, "reasoning_parser", "deepseek_r1"),
        )
        assert chosen["reasoning_parser"].value == "qwen3"
        (lost,) = chosen["reasoning_parser"].overruled
        assert lost.value == "deepseek_r1"
        assert lost.why.kind is ParserReason.BEATEN


def test_the_familys_own_parser_stays_where_it_loses_a_trifle_alone() -> None:
    """As R1 on SGLang, that always thinks; and GLM-4.5, whose parser reads null as text."""

    def value(
        key: str, found: Proof, name: str, thinking: Thinking, rule: Rule = Rule.FAMILY_TABLE
    ) -> object:
        facts = [claim(rule, key, name), *found.evidence()]
        return decide(facts, Preferences(), TARGET, thinking, found.setting)[key].value

    always, key = Thinking(markers=("<think>", "</think>")), "reasoning_parser"
    for rule, chosen in ((Rule.FAMILY_TABLE, "deepseek_r1"), (Rule.NAME_LIKE, "qwen3")):
        assert value(key, proof(key, QWEN, GLM, R1), "deepseek_r1", always, rule) == chosen
    switched = replace(always, switch="enable_thinking")
    assert value(key, proof(key, QWEN, GLM, R1), "deepseek_r1", switched) == "qwen3"

    key = "tool_parser"
    whole = verdict(key, "hermes", "one-call null parallel numeric-text")
    for failed, chosen in (("null", "llama3_json"), ("parallel", "hermes"), ("null numeric-text", "hermes")):
        own = verdict(key, "llama3_json", "one-call", failed)
        assert value(key, proof(key, whole, own), "llama3_json", Thinking()) == chosen


def test_a_guessed_block_does_not_refute_the_declared_parser() -> None:
    """As Hunyuan A13B, whose answers have a block of their own that its template never writes."""
    key = "reasoning_parser"
    open_one = verdict(key, "deepseek_r1", "", "thinking-whole", unsettled=True)
    family = claim(Rule.FAMILY_TABLE, key, "deepseek_r1")
    chosen = decided(key, proof(key, QWEN, open_one), family)[key]
    assert isinstance(chosen, Chosen)
    assert (chosen.value, chosen.status) == ("deepseek_r1", "table")
    assert any(is_warning(reason) for reason in chosen.why)
    assert not any(lost.value == "deepseek_r1" for lost in chosen.overruled)
    assert decided(key, proof(key, open_one), family)[key].value == "deepseek_r1"
    read = claim(Rule.NAME_LIKE, key, "qwen3")
    assert decided(key, proof(key, QWEN, open_one), family, read)[key].value == "qwen3"
    assert decided(key, proof(key, QWEN, open_one))[key].value == "qwen3"


def test_without_a_better_one_the_declared_parser_stays() -> None:
    found = proof("reasoning_parser", R1, verdict("reasoning_parser", "hf", "thinking-whole", "plain"))
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "deepseek_r1")
    assert decided("reasoning_parser", found, named)["reasoning_parser"].value == "deepseek_r1"


def test_a_setting_makes_the_declared_parser_complete_and_is_written() -> None:
    """As Laguna, whose parser reads nothing unless the variable of the template is named."""
    found = proof("reasoning_parser", QWEN, SAID)
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "poolside_v1")
    chosen = decided("reasoning_parser", found, named)
    assert chosen["reasoning_parser"].value == "poolside_v1"
    assert chosen["chat_template_kwargs"].value == {"enable_thinking": True}
    assert "chat_template_kwargs" not in decided("reasoning_parser", found)
    own = decided("reasoning_parser", found, named, chat_template_kwargs={"enable_thinking": False})
    assert own["chat_template_kwargs"].value == {"enable_thinking": False}


def test_a_pair_that_loses_more_is_not_chosen_and_warns_the_user() -> None:
    """As minicpmv and ling3 beside hermes: alone each reads all, whole and streamed."""
    lossy = {"qwen3": {"hermes": as_reason("the stream is another answer")}}
    found = replace(proof("reasoning_parser", QWEN, GLM), pairs=lossy)
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "qwen3")
    assert decided("reasoning_parser", found, named)["reasoning_parser"].value == "qwen3"
    beside = decided("reasoning_parser", found, named, tool_parser="hermes")["reasoning_parser"]
    assert beside.value == "glm45"
    users = decided("reasoning_parser", found, tool_parser="hermes", reasoning_parser="qwen3")
    assert any(is_warning(r) and "beside hermes loses" in render(r) for r in users["reasoning_parser"].why)
    alone = replace(proof("reasoning_parser", QWEN), pairs=lossy)
    kept = decided("reasoning_parser", alone, named, tool_parser="hermes")["reasoning_parser"]
    assert kept.value == "qwen3"
    assert any(is_warning(r) and "beside hermes loses" in render(r) for r in kept.why)


def test_equals_are_named() -> None:
    chosen = decided("reasoning_parser", proof("reasoning_parser", QWEN, GLM, SAID))["reasoning_parser"]
    assert Reason(ParserReason.SAME_EFFECT, parsers=("glm45",)) in chosen.why
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "poolside_v1")
    other = decided("reasoning_parser", proof("reasoning_parser", QWEN, SAID), named)["reasoning_parser"]
    assert not any(why.kind is ParserReason.SAME_EFFECT for why in other.why)


def test_a_template_that_shows_no_tools_names_no_parser() -> None:
    hermes = verdict("tool_parser", "hermes", "one-call")
    hidden = proof("tool_parser", hermes, shown=False)
    assert isinstance(decided("tool_parser", hidden)["tool_parser"], Undecided)
    by_template = claim(Rule.TEMPLATE_FORMAT, "tool_parser", "hermes")
    assert isinstance(decided("tool_parser", hidden, by_template)["tool_parser"], Undecided)
    named = claim(Rule.MODEL_TYPE, "tool_parser", "hermes")
    assert decided("tool_parser", hidden, named)["tool_parser"].value == "hermes"
    assert decided("tool_parser", proof("tool_parser", hermes))["tool_parser"].value == "hermes"


def test_a_parser_of_unmarked_calls_is_not_chosen_for_marked_ones() -> None:
    llama = verdict("tool_parser", "llama3_json", "one-call", liberal=True)
    assert isinstance(decided("tool_parser", proof("tool_parser", llama))["tool_parser"], Undecided)
    named = claim(Rule.FAMILY_TABLE, "tool_parser", "llama3_json")
    assert decided("tool_parser", proof("tool_parser", llama), named)["tool_parser"].value == "llama3_json"
    both = proof("tool_parser", llama, verdict("tool_parser", "granite4", "one-call"))
    assert decided("tool_parser", both, named)["tool_parser"].value == "granite4"


def test_names_alike_of_several_classes_wait_for_a_proof() -> None:
    likes = [claim(Rule.NAME_LIKE, "tool_parser", name) for name in ("hermes", "granite4")]
    assert isinstance(decide(likes, Preferences(), TARGET)["tool_parser"], Undecided)
    assert isinstance(decide(likes[:1], Preferences(), TARGET)["tool_parser"], Chosen)
    found = proof("tool_parser", verdict("tool_parser", "granite4", "one-call"))
    assert decided("tool_parser", found, *likes)["tool_parser"].value == "granite4"


KEY = "reasoning_parser"
OPENED = Thinking(markers=("<think>", "</think>"), opened=True)
SWITCHED = Thinking(markers=("<think>", "</think>"), switch="enable_thinking")


def test_a_template_that_thinks_has_precedence_over_a_name_without_a_parser() -> None:
    """As any model that reasons under the name of one that does not."""
    facts = [claim(Rule.FAMILY_TABLE, KEY, None), *proof(KEY, QWEN).evidence()]
    for thinking, kind in ((OPENED, ParserReason.THINKS_OPENED), (SWITCHED, ParserReason.THINKS_SWITCHED)):
        chosen = decide(facts, Preferences(), TARGET, thinking)[KEY]
        assert (chosen.value, chosen.status) == ("qwen3", "proved")
        assert [(lost.value, lost.why.kind) for lost in chosen.overruled] == [(None, kind)]
    for quiet in (None, Thinking(), Thinking(markers=("<think>", "</think>"), source="stripped")):
        assert isinstance(decide(facts, Preferences(), TARGET, quiet)[KEY], KnownNone)


def test_reasoning_that_no_parser_reads_is_a_warning() -> None:
    """As markers of a new model beside calls of a known form."""
    marked = Thinking(markers=("<pondering>", "</pondering>"), source="rendered")
    unread = proof(KEY, verdict(KEY, "qwen3", "", "thinking-whole"))
    warned = decide(unread.evidence(), Preferences(), TARGET, marked)
    assert isinstance(warned[KEY], Undecided)
    assert [one.key for one in attention(warned) if one.kind is AttentionReason.PARSER] == [KEY]
    for quiet in (None, replace(marked, source="stripped")):
        silent = decide(unread.evidence(), Preferences(), TARGET, quiet)
        assert not any(is_warning(reason) for reason in silent[KEY].why)


def test_a_declared_parser_that_loses_the_plain_answer_of_a_silent_template_is_left_out() -> None:
    """As a further training of an instruct model under the name of the family that thinks."""
    lost = {"qwen3": as_reason("left no content")}
    found = Proof("vllm", "9.9", "d", {}, {}, plain=lost)
    named = claim(Rule.FAMILY_TABLE, KEY, "qwen3")
    shown = claim(Rule.TEMPLATE_FORMAT, KEY, None)
    silent = decided(KEY, found, named, shown)[KEY]
    assert isinstance(silent, KnownNone)
    assert [(o.value, o.why.kind) for o in silent.overruled] == [("qwen3", ParserReason.LOSES_PLAIN)]
    assert isinstance(decided(KEY, found, named)[KEY], Undecided)
    other = claim(Rule.NAME_LIKE, KEY, "glm45")  # it leaves the plain answer as it is
    assert decided(KEY, found, named, shown, other)[KEY].value == "glm45"
    own = decided(KEY, found, named, reasoning_parser="qwen3")[KEY]
    assert own.value == "qwen3"
    assert any(is_warning(reason) for reason in own.why)
    assert Proof.from_json(found.to_json()).evidence() == found.evidence()


verdicts = st.builds(
    lambda name, plain, off, steps, liberal: verdict(
        "reasoning_parser", name,
        " ".join(["thinking-whole", *["plain"] * plain, *["off"] * off]),
        " ".join([*["plain"] * (not plain), *["off"] * (not off)]),
        stepwise=("plain",) * steps, liberal=liberal,
    ),
    st.sampled_from(NAMES), st.booleans(), st.booleans(), st.integers(0, 1), st.booleans(),
)  # fmt: skip


@given(
    st.lists(verdicts, max_size=5, unique_by=lambda v: v.parser),
    st.lists(
        st.tuples(st.sampled_from([r for r in Rule if r.names_parsers]), st.sampled_from([*NAMES, None]))
    ),
)
def test_no_claim_chooses_a_parser_that_reads_less(
    found: list[ParserVerdict], claims: list[tuple[Rule, str | None]]
) -> None:
    facts = [claim(rule, "reasoning_parser", name) for rule, name in claims]
    decision = decided("reasoning_parser", proof("reasoning_parser", *found), *facts)["reasoning_parser"]
    by_name = {v.parser: v for v in found}
    if found and isinstance(decision, Chosen):
        chosen = by_name[decision.value]
        steady = {v.parser: set(v.passed).difference(v.stepwise) for v in found if not v.liberal}
        assert not any(read > set(chosen.passed) for read in steady.values())
    assert isinstance(decision, Chosen | KnownNone | Undecided)


def reasoning(found: Proof, *claims: Evidence) -> Any:
    return decided("reasoning_parser", found, *claims)["reasoning_parser"]


def test_a_failed_case_of_the_chosen_parser_is_a_warning() -> None:
    """As LFM2.5-8B: a plain answer comes back as reasoning, whichever parser is chosen."""
    one = reasoning(proof("reasoning_parser", R1))
    assert any(is_warning(r) and "content is null" in render(r) for r in one.why)
    forced = verdict("reasoning_parser", "qwen3", "thinking-whole", "thinking-none")
    told = reasoning(proof("reasoning_parser", forced))
    assert any("content is null" in render(r) for r in told.why)
    assert not any(map(is_warning, told.why))  # the model was told to think
    quotes = verdict("tool_parser", "hermes", "one-call", "quotes")
    calls = decided("tool_parser", proof("tool_parser", quotes))["tool_parser"]
    assert any(is_warning(r) and "fails a case, quotes: left no content" in render(r) for r in calls.why)
    vendors = claim(Rule.FAMILY_TABLE, "tool_parser", "hermes")
    noted = decided("tool_parser", proof("tool_parser", quotes), vendors)["tool_parser"]
    assert any("fails a case, quotes" in render(r) and not is_warning(r) for r in noted.why)


def test_a_family_without_a_switch_writes_no_plain_answer() -> None:
    """As DeepSeek-R1, that thinks in every answer: its vendor's parser is no warning; with a switch it is."""
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "deepseek_r1")
    facts = [named, *proof("reasoning_parser", R1).evidence()]
    for thinking, warned in ((Thinking(source="stripped"), False), (SWITCHED, True)):
        decision = decide(facts, Preferences(), TARGET, thinking)["reasoning_parser"]
        assert decision.value == "deepseek_r1"
        assert any("content is null" in render(r) for r in decision.why)
        assert any(is_warning(r) and "content is null" in render(r) for r in decision.why) is warned


def test_a_loss_is_a_case_that_the_first_parser_reads() -> None:
    """As Phi-4: the declared parser loses in streams, and fails a case that the chosen one fails, too."""
    passed = "thinking-whole thinking-cut"
    first = verdict("reasoning_parser", "qwen3", passed, "plain")
    declared = verdict("reasoning_parser", "deepseek_r1", passed, "plain", stepwise=("thinking-whole",))
    other = verdict("reasoning_parser", "glm45", "thinking-whole plain", "thinking-cut", stepwise=("plain",))
    found = proof("reasoning_parser", first, declared, other)
    _, fact = found.evidence()
    assert render(fact.value.incomplete["deepseek_r1"]) == (
        "thinking-whole: lost token by token; qwen3 loses less"
    )


def test_parsers_of_one_effect_stand_by_their_rarity() -> None:
    rarity = {"glm45": (0, 3), "qwen3": (2, 1)}
    assert [v.parser for v in ranked([QWEN, GLM], {}, rarity)] == ["glm45", "qwen3"]
    assert [v.parser for v in ranked([GLM, QWEN], {}, rarity)] == ["glm45", "qwen3"]
    other = replace(QWEN, guessed=True, effect="other")
    assert ranked([other, SAID, GLM], {}, {})[0] is GLM


def test_a_parser_on_assumed_tokens_is_not_proved() -> None:
    found = proof("reasoning_parser", replace(QWEN, guessed=True))
    assert reasoning(found).status == "declared"
    family = claim(Rule.FAMILY_TABLE, "reasoning_parser", "qwen3")
    assert reasoning(found, family).status == "table"


def sign(*kinds: str) -> Evidence:
    return Evidence(Rule.THINKING_SIGN, "reasoning_parser", list(kinds), "repository", as_reason("its name"))


def test_signs_of_thinking_make_a_template_without_reasoning_no_evidence() -> None:
    """As VibeThinker, whose template is Qwen's: nothing shows that it never thinks."""
    unasked = Proof("vllm", "9.9", "d", {}, {}, {"reasoning_parser": as_reason("renders none")})
    template, base = (
        claim(rule, "reasoning_parser", None) for rule in (Rule.TEMPLATE_FORMAT, Rule.BASE_MODEL_FAMILY)
    )
    own = claim(Rule.FAMILY_TABLE, "reasoning_parser", None)
    assert isinstance(reasoning(unasked, template), KnownNone)
    for kinds, claims in ((("block",), [template]), (("tokens",), [base, template]), (("name",), [own])):
        decision = reasoning(unasked, *claims, sign(*kinds))
        assert isinstance(decision, Undecided), kinds
        # The row of its own family names no parser: a note.
        assert any(map(is_warning, decision.why)) is (own not in claims)
    assert isinstance(reasoning(unasked, own, template, sign("tokens", "block")), KnownNone)
    assert isinstance(reasoning(unasked, base, template, sign("block")), KnownNone)
    named = claim(Rule.NAME_LIKE, "reasoning_parser", "qwen3")
    assert reasoning(unasked, named, template, sign("name")).value == "qwen3"
    silent = reasoning(unasked, sign("switch"))  # as cogito: a switch, and nothing that reads its thoughts
    assert isinstance(silent, Undecided)
    assert is_warning(silent.why[0])


def test_a_parser_without_the_tokens_of_its_format_is_not_named() -> None:
    lacking = Evidence(
        Rule.LACKING_TOKENS, "reasoning_parser", "qwen3", "tekken.json", as_reason("no [THINK]")
    )
    unasked = Proof("vllm", "9.9", "d", {}, {}, {"reasoning_parser": as_reason("renders none")})
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "qwen3")
    decision = reasoning(unasked, lacking, named)
    assert isinstance(decision, Undecided)
    assert [is_warning(reason) for reason in decision.why] == [True]
    other = claim(Rule.NAME_LIKE, "reasoning_parser", "deepseek_r1")
    assert reasoning(unasked, lacking, named, other).value == "deepseek_r1"


def test_without_a_proof_a_switch_is_a_warning() -> None:
    switched = Thinking(markers=("<think>", "</think>"), switch="enable_thinking", default=True)
    named = claim(Rule.FAMILY_TABLE, "reasoning_parser", "deepseek_r1")
    for thinking, warned in ((switched, True), (replace(switched, switch=None), False)):
        decision = decide([named], Preferences(), TARGET, thinking)["reasoning_parser"]
        assert any("follows the template's switch" in render(r) for r in decision.why) is warned
