"""What a stranger's template rendered is compared in linear time, and none of it is a fault of importer."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from importer.chat_template.request_coverage import compare, conversations
from importer.chat_template.request_coverage.findings import CoverageKind
from importer.engines.deaths import Accident
from importer.engines.worker_process import JsonLinesWorker, WorkerLostError
from importer.launcher import Purpose, isolated
from importer.proof.conversations import CONVERSATIONS, leaves
from importer.proof.prompt_difference import difference
from importer.proof.response_template import derive
from importer.proof.result import PromptCase
from tests.clock.proofs import jsoned

DIGITS = "&#" + "9" * 5_000 + ";"
WRITES = """
import json, os, sys, tempfile
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "folder":
        path = tempfile.mkdtemp()
        open(path + "/tokenizer_config.json", "w").write("a stranger's")
        print(json.dumps({"id": request["id"], "item": path}), flush=True)
    else:
        while True:
            sys.stdout.write("x" * 2**20)
"""


def worker() -> JsonLinesWorker:
    return JsonLinesWorker(isolated("-c", WRITES, python=sys.executable), Purpose.PARSERS, {})


@pytest.mark.parametrize(
    "between", ["',{[]:1},'", "' if " + "-" * 900 + "1 else '", DIGITS, "\\ud800", '"', "\x00"]
)
def test_no_text_between_two_nonces_is_a_fault(between: str) -> None:
    mark = conversations.USERS[0]
    prompt = mark.ends[0] + between + mark.ends[1]
    assert compare.judge(mark, prompt) in (CoverageKind.ALTERED, CoverageKind.CUT)


def test_no_prompt_of_an_engine_is_a_fault() -> None:
    parts = leaves(CONVERSATIONS[PromptCase.NESTED])
    found = difference("nested", f"a {DIGITS}", f"b {DIGITS}", parts)
    assert found is not None


def test_nested_brackets_before_a_call_are_not_all_read() -> None:
    began = time.process_time()
    derive(jsoned("[" * 90_000), ())
    assert time.process_time() - began < 2


def test_a_worker_that_is_killed_leaves_no_file_of_a_stranger() -> None:
    asked = worker()
    (path,) = [next(asked.ask("folder", 20))]
    assert asked._folder.name in path
    asked.close()
    assert not Path(path).exists()


def test_an_answer_without_end_is_left() -> None:
    asked = worker()
    began = time.process_time()
    with pytest.raises(WorkerLostError) as lost:
        next(asked.ask("flood", 60))
    asked.close()
    assert lost.value.reason.kind is Accident.MEMORY
    assert time.process_time() - began < 5
