"""SGLang's worker without the engine: its own chat server, of its sources, over the tokens of a sample."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from importer.chat_template.samples import Sample
from importer.engines import registries
from importer.engines.install import Installed
from importer.engines.parsers import ParserQuestion, ParserWorker, Reading
from tests.engines.test_parser_worker_engine import CALL, CHATML, JSON, OPENED, TAGS, TALK, THOUGHT

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]
NATIVE = "{{ messages }}{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"


@pytest.fixture(scope="module")
def worker(sglang_engine: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("sglang", sglang_engine.python) as worker:
        yield worker


def calls(reading: Reading) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reading.calls]


def read(worker: ParserWorker, sample: Sample, **pair: str) -> Reading:
    ask = ParserQuestion(**pair)
    return worker.read(CHATML, [sample], [ask])[ask][0]


def test_it_lists_what_the_registry_says(worker: ParserWorker) -> None:
    registry = registries.load("sglang", worker.version())
    for kind in ("tool", "reasoning"):
        listed = {p.name: (p.class_name, p.module, p.aliases) for p in worker.list() if p.kind == kind}
        known = {e.name: (e.class_name, e.module, e.aliases) for e in registry.entries[kind].values()}
        assert listed == known


def test_every_parser_answers_and_only_its_format_is_read(worker: ParserWorker) -> None:
    asks = [ParserQuestion(p.name) for p in worker.list() if p.kind == "tool"]
    found = worker.read(CHATML, [JSON, TAGS], asks)
    json_readers = {
        a.tool for a, (one, _) in found.items() if not one.error and calls(one) == [("weather", CALL)]
    }
    tag_readers = {
        a.tool for a, (_, two) in found.items() if not two.error and calls(two) == [("weather", CALL)]
    }
    assert {"hermes", "qwen", "qwen25"} <= json_readers
    assert {"qwen3_coder", "step3p5", "nanbeige"} <= tag_readers
    assert not json_readers & tag_readers
    failing = {a.tool for a, readings in found.items() if readings[0].error}
    assert failing <= {"response_template", "deepseekv4", "deepseekv41"}  # each needs what is not there


def test_reasoning_is_read_first_and_calls_in_the_rest(worker: ParserWorker) -> None:
    assert (read(worker, THOUGHT, reasoning="qwen3").reasoning or "").strip() == "hm"
    thought = replace(JSON, completion=f"<think>\nhm\n</think>\n\n{JSON.completion}")
    both = read(worker, thought, tool="qwen", reasoning="qwen3")
    assert ((both.reasoning or "").strip(), calls(both)) == ("hm", [("weather", CALL)])
    assert read(worker, TALK, tool="qwen").content == "Nothing to call."


def test_a_block_that_the_prompt_opened_is_read_by_the_parser_that_supposes_it(worker: ParserWorker) -> None:
    forced = read(worker, OPENED, reasoning="deepseek-r1")
    assert ((forced.reasoning or "").strip(), (forced.content or "").strip()) == ("hm", "Yes.")


def test_a_stream_gives_the_same_as_the_whole_or_names_its_split(worker: ParserWorker) -> None:
    ask = ParserQuestion("qwen3_coder")
    (replay,) = worker.stream(CHATML, [TAGS], [ask])[ask]
    assert calls(replay.whole) == [("weather", CALL)]
    assert replay.count > 20
    assert replay.different == len(replay.examples) == 0


def test_a_name_that_the_server_lacks_is_an_error(worker: ParserWorker) -> None:
    assert read(worker, TALK, tool="no-such").error is not None
    assert read(worker, TALK, reasoning="no-such").error is not None


def test_auto_is_what_its_rules_say_of_the_template(worker: ParserWorker) -> None:
    template = "{% if tools %}<tool_call>{{ tools }}{% endif %}" + NATIVE
    assert worker.infer(replace(CHATML, chat_template=template)).reasoning == "qwen3"
    assert worker.infer(replace(CHATML, chat_template="{{ messages }}")) == ParserQuestion(None, None)
