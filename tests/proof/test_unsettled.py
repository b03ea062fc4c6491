"""Parsers that the samples cannot refute: of a guessed reasoning block, or where no parser reads a turn."""

from __future__ import annotations

from importer.chat_template.samples import Sample, SampleCall, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.prove import unsettled
from tests.facts import as_reason

NEEDED = ("thinking-whole", "thinking-off-said")
SAMPLE = Sample("thinking-whole", "", "<think>\nhm\n</think>\n\nyes")
ANSWERS = "hunyuan_a13b"  # its source has <answer> behind <think>


CALL = Sample(
    "one-call", "", '[TOOL_CALLS][{"name": "go", "arguments": {"to": "Paris"}}]',
    calls=(SampleCall("go", {"to": "Paris"}),),
)  # fmt: skip
READS = ParserVerdict("other", "O", NEEDED, {}, NEEDED)


def marked(name: str, source: str = "prompt", failed: str = "thinking-whole") -> bool:
    thinking = Thinking(markers=("<think>", "</think>"), source=source)
    verdict = ParserVerdict(name, "C", (), {failed: as_reason("no reasoning")}, NEEDED)
    analysis = TemplateAnalysis("d", (SAMPLE,), thinking)
    return unsettled([verdict, READS], analysis, "vllm", "reasoning_parser")[0].unsettled


def kept(name: str, *others: ParserVerdict) -> bool:
    verdict = ParserVerdict(name, "C", (), {"one-call": as_reason("no call")}, ("one-call",))
    return unsettled([verdict, *others], TemplateAnalysis("d", (CALL,)), "sglang", "tool_parser")[0].unsettled


def test_where_no_parser_reads_a_turn_its_markers_speak_for_a_parser() -> None:
    assert kept("mistral")  # it reads '[TOOL_CALLS] ['
    assert not kept("hermes")
    assert not kept("mistral", READS)


def test_a_parser_with_the_block_and_more_markers_is_not_refuted_by_a_guess() -> None:
    assert all(marked(ANSWERS, source) for source in ("prompt", "stripped", "instructed"))


def test_what_the_template_writes_refutes_any_parser() -> None:
    assert not marked(ANSWERS, "rendered")


def test_a_parser_without_further_markers_is_refuted() -> None:
    assert not marked("deepseek_v3")  # no others that the samples lack


def test_a_parser_for_other_markers_is_refuted() -> None:
    assert not marked("gemma4")


def test_an_answer_without_reasoning_is_no_guess() -> None:
    assert not marked(ANSWERS, failed="thinking-off-said")
