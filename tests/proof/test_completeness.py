"""Completeness: who reads all that any parser reads, why another one stands back, and who is alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from importer.proof.completeness import (
    CompletenessReason,
    attainable,
    complete,
    equals,
    incomplete,
    ranked,
    shortfall,
)
from importer.proof.parser_verdict import ParserVerdict
from importer.sentences import render
from tests.facts import as_reason


def verdict(name: str, passed: str, failed: str = "", **more: object) -> ParserVerdict:
    """A verdict that needs ``thinking-whole``."""
    problems = {case: as_reason(f"left no content in {case}") for case in failed.split()}
    return ParserVerdict(name, name.title(), tuple(passed.split()), problems, ("thinking-whole",), **more)  # type: ignore[arg-type]


R1 = verdict("r1", "thinking-whole thinking-cut", "thinking-off")
QWEN = verdict("qwen", "thinking-whole thinking-cut thinking-off", effect="a")
GLM = verdict("glm", "thinking-whole thinking-cut thinking-off", effect="a")
OLMO = verdict("olmo", "thinking-whole thinking-off", "thinking-cut", stepwise=("plain",))
DEAF = verdict("deaf", "", "thinking-whole")


def test_a_parser_that_fails_what_another_reads_stands_back() -> None:
    found = [R1, QWEN, GLM, OLMO, DEAF]
    assert complete(found) == ["qwen", "glm"]
    assert attainable(found) == {"thinking-whole", "thinking-cut", "thinking-off"}
    assert shortfall(R1, attainable(found)) == ("thinking-off",)
    assert ranked([DEAF, R1, GLM, QWEN], {"qwen": (0,), "glm": (1,)})[0] is QWEN
    told = incomplete(found)
    assert set(told) == {"r1", "olmo"}
    assert render(told["r1"]) == "thinking-off: left no content in thinking-off; qwen reads it"


def test_an_irregular_case_decides_among_equals_alone() -> None:
    """As granite-3.3: a parser won by one irregular case, and lost each default answer in a stream."""
    off = ("thinking-off",)
    named = verdict("named", "thinking-whole thinking-off", "thinking-none", default=off)
    lossy = verdict("lossy", "thinking-whole thinking-off thinking-none", stepwise=off, default=off)
    also = verdict("also", "thinking-whole thinking-off thinking-none")
    assert complete([lossy, named]) == ["named"]
    assert complete([named, also]) == ["named", "also"]  # names choose among them
    assert [v.parser for v in ranked([lossy, named, also], {})] == ["also", "named", "lossy"]


def test_a_loss_by_default_counts_more_than_one_on_request() -> None:
    off, on = ("thinking-off",), ("thinking-whole",)
    both = "thinking-whole thinking-off"
    one, other = (
        verdict("one", both, stepwise=off, default=off),
        verdict("other", both, stepwise=on, default=off),
    )
    assert complete([one, other]) == ["other"]


def test_a_case_that_one_reads_whole_and_loses_in_a_stream_refutes_no_other() -> None:
    """As DeepSeek-R1: neither parser has a plain answer in each stream, so its name chooses."""
    fails = verdict("r1", "thinking-whole", "plain", default=("plain",))
    streams = verdict("olmo", "thinking-whole plain", stepwise=("plain",), default=("plain",))
    assert complete([fails, streams]) == ["r1", "olmo"]


def test_a_case_that_nobody_reads_costs_nobody_anything() -> None:
    assert complete([R1, verdict("r2", "thinking-whole thinking-cut", "thinking-off")]) == ["r1", "r2"]


def test_losses_token_by_token_decide_among_parsers_that_read_as_much() -> None:
    lossy = verdict("lossy", "thinking-whole thinking-cut thinking-off", stepwise=("thinking-whole",))
    assert complete([lossy, QWEN]) == ["qwen"]
    assert incomplete([lossy, QWEN])["lossy"].kind is CompletenessReason.LOSES_STREAM


def test_a_parser_of_unmarked_calls_sets_no_standard() -> None:
    """It reads JSON wherever it stands, and so perhaps more than the parser of the format."""
    bare = verdict("bare", "thinking-whole thinking-cut thinking-off more", liberal=True)
    assert complete([bare, QWEN]) == ["qwen"]
    assert incomplete([bare, QWEN])["bare"].kind is CompletenessReason.READS_UNMARKED
    assert complete([bare]) == ["bare"]


def test_a_parser_without_a_setting_comes_first_and_both_are_complete() -> None:
    said = verdict("said", "thinking-whole thinking-cut thinking-off", setting={"enable_thinking": False})
    assert [v.parser for v in ranked([said, QWEN], {})] == ["qwen", "said"]
    assert complete([said, QWEN]) == ["said", "qwen"]


def test_parsers_of_one_effect_are_named() -> None:
    assert equals([QWEN, GLM, R1]) == {"qwen": ("glm",), "glm": ("qwen",)}


CASES = ("thinking-whole", "plain", "cut", "off")
some = st.builds(
    lambda name, bits, steps, liberal: verdict(
        name,
        " ".join(c for c, b in zip(CASES, bits, strict=True) if b),
        " ".join(c for c, b in zip(CASES, bits, strict=True) if not b),
        stepwise=tuple(CASES[: int(steps)]), liberal=liberal,
    ),
    st.sampled_from(list("abcdefgh")), st.tuples(*[st.booleans()] * 4), st.integers(0, 2), st.booleans(),
)  # fmt: skip


def lost(one: ParserVerdict, found: list[ParserVerdict]) -> set[str]:
    return {*one.stepwise} | ({*one.failed} & attainable(found))


@given(st.lists(some, max_size=6, unique_by=lambda v: v.parser))
def test_the_most_complete_read_and_no_strict_parser_reads_more(found: list[ParserVerdict]) -> None:
    best = {v.parser: v for v in found if v.parser in complete(found)}
    assert bool(best) == any(v.reads for v in found)
    strict = [v for v in found if v.reads and not v.liberal]
    for one in best.values():
        assert one.reads
        less = (v for v in strict if set(v.failed) <= set(one.failed) and lost(v, found) < lost(one, found))
        assert one not in strict or not any(less)
    assert set(incomplete(found)) == {v.parser for v in found if v.reads} - set(best)
    assert [v.parser for v in ranked(found, {})][:1] == [*best][:1] or len(best) > 1 or not best
