"""Parsers that a guessed reasoning block cannot refute."""

from __future__ import annotations

from importer.chat_template.samples import Sample, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.proof.prove import unsettled
from importer.proof.result import ParserVerdict
from tests.facts import as_reason

NEEDED = ("thinking-whole", "thinking-off-said")
SAMPLE = Sample("thinking-whole", "", "<think>\nhm\n</think>\n\nyes")
ANSWERS = "hunyuan_a13b"  # its source has <answer> behind <think>


def marked(name: str, source: str = "prompt", failed: str = "thinking-whole") -> bool:
    thinking = Thinking(markers=("<think>", "</think>"), source=source)
    verdict = ParserVerdict(name, "C", (), {failed: as_reason("no reasoning")}, NEEDED)
    (found,) = unsettled([verdict], TemplateAnalysis("d", (SAMPLE,), thinking), "vllm")
    return found.unsettled


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
