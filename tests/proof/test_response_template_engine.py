"""Derived response templates on the real readers: vLLM's ``hf`` parsers and transformers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from importer.chat_template.vocabulary import Vocabulary
from importer.engines.install import Installed
from importer.engines.parsers import ParserQuestion, ParserWorker, Tokens
from importer.proof.template_proof import TemplateProof, prove_template, with_template
from importer.proof.verdicts import judge_tool
from tests import template_texts as texts
from tests.analysing import analysed
from tests.proof.test_response_template import HEAD, UNKNOWN

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]
NONE = Vocabulary(())
THINKS = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{- '<ponder>' + m.reasoning_content + '</ponder>' }}{% endif %}
{{- m.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""


@pytest.fixture(scope="module")
def worker(vllm_engine: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("vllm", vllm_engine.python) as one:
        yield one


def proved(text: str, worker: ParserWorker) -> TemplateProof | None:
    return prove_template(analysed(text, NONE), Tokens(chat_template=text, eos="<|im_end|>"), [worker])


@pytest.mark.parametrize("text", [
    texts.CHATML_JSON, texts.XML_PARAMETERS, *(HEAD.replace("CALL", UNKNOWN[n]) for n in UNKNOWN)
], ids=["json", "xml", *UNKNOWN])  # fmt: skip
def test_a_derived_template_is_complete(text: str, worker: ParserWorker) -> None:
    proof = proved(text, worker)
    assert proof is not None
    assert proof.failed == {}
    assert proof.complete
    assert proof.fields == ("tool_parser",)
    assert {"one-call", "parallel", "renamed", "parallel-brackets", "code"} <= set(proof.passed)


def test_reasoning_of_an_unknown_mark(worker: ParserWorker) -> None:
    proof = proved(THINKS, worker)
    assert proof is not None
    assert proof.complete
    assert proof.fields == ("reasoning_parser",)


def test_calls_in_pythons_syntax_are_not_offered(worker: ParserWorker) -> None:
    """Nothing tells the end of a call from a bracket in its text, so a variant refutes each candidate."""
    proof = proved(texts.PYTHONIC, worker)
    assert proof is not None
    assert not proof.complete


def test_a_wrong_template_is_refuted(worker: ParserWorker) -> None:
    """The reading follows the template in the tokenizer's settings, and that of no other."""
    text = HEAD.replace("CALL", UNKNOWN["tagged"])
    analysis = analysed(text, NONE)
    proof = prove_template(analysis, Tokens(chat_template=text, eos="<|im_end|>"), [worker])
    assert proof is not None
    fields = {**proof.template["fields"]}
    fields["tool_calls"] = {**fields["tool_calls"], "close_pattern": "</never>"}
    tokens = with_template(Tokens(chat_template=text, eos="<|im_end|>"), {**proof.template, "fields": fields})
    samples = [s for s in analysis.samples if s.case == "parallel"]
    ask = ParserQuestion("hf")
    assert judge_tool(samples[0], worker.read(tokens, samples, [ask])[ask][0]) is not None
