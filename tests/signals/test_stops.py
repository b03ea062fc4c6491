"""Where an answer ends: the lists of end tokens, and the template that ends it otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from importer.chat_template import analyze as learning
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import read_vocabulary
from importer.hub.snapshot import Snapshot
from importer.signals import sampling
from tests import template_texts as texts

WORDS = ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>")
TOKENS = dict(enumerate(WORDS, 1))
ENDS_AT_IM_END = TemplateAnalysis("", (Sample("answer", "Hi<|im_end|>", "Hello."),), end_of_turn="<|im_end|>")


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer() as warm:
        yield warm


def snapshot(**files: Any) -> Snapshot:
    told = {f"{name}.json": json.dumps(data) for name, data in files.items()}
    return Snapshot("r", "acme/thing", None, (), told)


def tokenizer(eos: str | None = "<|endoftext|>", special: bool = True) -> dict[str, Any]:
    table = {str(i): {"content": text, "special": special} for i, text in TOKENS.items()}
    return {"eos_token": eos, "added_tokens_decoder": table}


def found(study: TemplateAnalysis | None, **files: Any) -> tuple[Any, Any]:
    """The stop words and the end tokens."""
    facts = {e.key: e.value for e in sampling.stop_word_evidence(snapshot(**files), study)}
    return facts.get("stopwords"), facts.get("end_tokens")


@pytest.mark.parametrize(
    ("files", "word", "ends"),
    [
        # The classic: a chat model made from a base model, whose end of text is all that the files know.
        ({"generation_config": {"eos_token_id": 1}}, True, [1, 2]),
        ({"config": {"text_config": {"eos_token_id": [1]}}}, True, [1, 2]),
        ({}, True, [1, 2]),
        # The generation config's list alone is heard where there is one.
        ({"generation_config": {"eos_token_id": [1]}, "config": {"eos_token_id": 2}}, True, [1, 2]),
        ({"generation_config": {"eos_token_id": [2, 1]}}, False, [2, 1]),
        ({"config": {"eos_token_id": 2}}, False, [2, 1]),
        ({"generation_config": {"eos_token_id": ["2", None, -2, True, 2.0, 1]}}, True, [1, 2]),
    ],
)
def test_an_end_of_turn_that_no_list_has_becomes_a_stop_word(
    files: dict[str, Any], word: bool, ends: list[int]
) -> None:
    words, tokens = found(ENDS_AT_IM_END, tokenizer_config=tokenizer(), **files)
    assert words == (["<|im_end|>"] if word else None)
    assert tokens == {str(i): TOKENS[i] for i in ends}


def test_what_is_not_known_adds_nothing() -> None:
    listed = {"special_tokens_map": {"additional_special_tokens": ["<|im_end|>"]}}
    assert found(ENDS_AT_IM_END, **listed, generation_config={"eos_token_id": 7}) == (None, {"7": None})
    assert found(ENDS_AT_IM_END, generation_config={"eos_token_id": 1}) == (None, {"1": None})
    assert found(None, tokenizer_config=tokenizer()) == (None, {"1": "<|endoftext|>"})
    assert found(TemplateAnalysis("", end_of_turn=""), tokenizer_config=tokenizer())[0] is None
    assert found(ENDS_AT_IM_END, **listed)[0] == ["<|im_end|>"], "nothing else can end it"


def test_nothing_that_an_answer_may_hold_becomes_a_stop_word() -> None:
    inside = Sample("thinking-whole", "Hi", "<|channel|>thought<|im_end|><|channel|>answer")
    assert (
        found(TemplateAnalysis("", (inside,), end_of_turn="<|im_end|>"), tokenizer_config=tokenizer())[0]
        is None
    )
    assert found(ENDS_AT_IM_END, tokenizer_config=tokenizer(special=False))[0] is None
    assert found(TemplateAnalysis("", (), end_of_turn="<|im_end|>"), tokenizer_config=tokenizer())[0] is None


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (texts.CHATML_JSON, ["<|im_end|>"]),
        (texts.HEADERS, ["<|eot_id|>", "<|eom_id|>"]),  # of an answer, and of a turn of calls
        (texts.ALTERNATING, ["<end_of_turn>"]),
    ],
)
def test_the_end_is_the_one_that_the_template_writes(renderer: Renderer, text: str, ends: list[str]) -> None:
    files = {"tokenizer_config": tokenizer(), "generation_config": {"eos_token_id": 1}}
    study = learning.analyze(
        Template(text, "chat_template.jinja"), read_vocabulary(snapshot(**files)), renderer
    )
    assert found(study, **files)[0] == ends
    numbers = [i for i, t in TOKENS.items() if t in ends]
    assert found(study, **files | {"generation_config": {"eos_token_id": [1, *numbers]}})[0] is None


CALLS_END = texts.CHATML_JSON.replace(
    "{%- endfor %}\n{{- '<|im_end|>\\n' }}", "{%- endfor %}\n{{- '<|eom_id|>\\n' }}", 1
)


def test_a_turn_of_calls_ends_with_what_stands_behind_its_calls(renderer: Renderer) -> None:
    """As a merge of Gemma 4 whose list has the end of text alone: the model writes the tool's answer."""
    assert "<|eom_id|>" in CALLS_END
    files = {"tokenizer_config": tokenizer("<|im_end|>"), "generation_config": {"eos_token_id": 1}}
    vocabulary = read_vocabulary(snapshot(**files))
    study = learning.analyze(Template(CALLS_END, "chat_template.jinja"), vocabulary, renderer)
    assert found(study, **files) == (
        ["<|eom_id|>"], {"1": "<|endoftext|>", "2": "<|im_end|>", "5": "<|eom_id|>"},
    )  # fmt: skip
    plain = learning.analyze(Template(texts.CHATML_JSON, "chat_template.jinja"), vocabulary, renderer)
    assert found(plain, **files)[0] is None


ROLES = """{% if tools %}<|system|>{{ tools | tojson }}{% endif %}{% for m in messages -%}
<|{{ 'observation' if m.role == 'tool' else m.role }}|>
{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}
{%- endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
CHANNELS = """{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}
{{- '<|return|>' if loop.last and m.role == 'assistant' else '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""


@pytest.mark.parametrize(("text", "words"), [(ROLES, ["<|user|>", "<|observation|>"]), (CHANNELS, None)])
def test_where_nothing_ends_a_turn_the_next_one_begins(
    renderer: Renderer, text: str, words: list[str] | None
) -> None:
    """What follows an answer in history only, as a channel's end does, is no end of the answer itself."""
    names = ["<|endoftext|>", "<|user|>", "<|observation|>", "<|end|>", "<|start|>", "<|return|>"]
    table = {str(i): {"content": n, "special": True} for i, n in enumerate(names)}
    ends = {"eos_token_id": [0, 5]}
    files = {"tokenizer_config": {"added_tokens_decoder": table}, "generation_config": ends}
    study = learning.analyze(
        Template(text, "chat_template.jinja"), read_vocabulary(snapshot(**files)), renderer
    )
    assert study.end_of_turn == ""
    assert found(study, **files)[0] == words
