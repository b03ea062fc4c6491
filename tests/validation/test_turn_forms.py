"""Published forms of turns: as our own models are trained, each of its own, with markers as tokens."""

from __future__ import annotations

import pytest

from importer.validation.prompts import NAME_RECALL, SUM
from importer.validation.turn_forms import FORMS, text_of, variants
from tests.judging import rendering
from tests.models.formats import FORMATS

BY_NAME = {form.name: form for form in FORMS}


@pytest.mark.parametrize(
    ("base", "form"), [("hermes", "ChatML"), ("qwen3coder", "ChatML"), ("mistral", "Mistral")]
)
def test_a_form_writes_what_its_familys_template_writes(base: str, form: str) -> None:
    with rendering(FORMATS[base].folder) as render:
        for prompt in (SUM, NAME_RECALL):
            assert text_of(BY_NAME[form], prompt) == render(prompt)


def test_each_form_is_another_one() -> None:
    texts = [text_of(form, NAME_RECALL) for form in FORMS]
    assert len(set(texts)) == len(FORMS) == len(BY_NAME)


def test_markers_are_all_that_no_words_are() -> None:
    assert BY_NAME["ChatML"].markers == ("<|im_start|>", "<|im_end|>")
    assert BY_NAME["Mistral"].markers == ("<s>", "[INST]", "[/INST]", "</s>")
    assert BY_NAME["Alpaca"].markers == ()


def test_other_gaps_come_behind_the_published_ones() -> None:
    first, *others = variants(BY_NAME["ChatML"])
    assert first == BY_NAME["ChatML"]
    assert others[0].user == "<|im_start|>user"
    assert others[0].answer == "<|im_start|>assistant"
    assert first not in others
    assert len(set(others)) == len(others)
