"""The real vllm-rs: its own parsers read samples without weights, and its registry is the one here."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from importer.chat_template.samples import Sample
from importer.engines import parsers, registries
from importer.engines.parsers import ParserQuestion, ParserWorker
from importer.engines.tokens import Tokens
from importer.engines.vllm import VllmCuda
from importer.sentences import render
from tests.engines.test_parser_worker_engine import (
    ASK,
    CALL,
    CHATML,
    JSON,
    MARKERS,
    OPENED,
    TALK,
    THOUGHT,
    TOOLS,
    calls,
)  # fmt: skip
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.xdist_group("rust")]


@pytest.fixture(scope="module")
def rust(vllm_cuda_engine):
    with ParserWorker("vllm", vllm_cuda_engine.python, frontend="rust") as worker:
        yield worker


def test_the_binary_has_the_parsers_of_the_registry(rust):
    registry = registries.load("vllm", rust.version(), "rust")
    for kind in ("tool", "reasoning"):
        listed = {p.name: (p.class_name, p.module, p.aliases) for p in rust.list() if p.kind == kind}
        known = {e.name: (e.class_name, e.module, e.aliases) for e in registry.entries[kind].values()}
        assert listed == known


def test_calls_reasoning_and_answers_whole_and_streamed(rust):
    pair = ParserQuestion("hermes", "qwen3")
    spoken = dataclasses.replace(JSON, completion=f"<think>\nhm\n</think>\n\n{JSON.completion}")
    samples = [spoken, TALK, THOUGHT, OPENED]
    called, talk, thought, opened = rust.stream(CHATML, samples, [pair])[pair]
    assert (calls(called.whole), called.whole.reasoning) == ([("weather", CALL)], "hm")
    assert talk.whole.content == "Nothing to call."
    assert (thought.whole.reasoning, (thought.whole.content or "").strip()) == ("hm", "Yes.")
    assert (opened.whole.reasoning, (opened.whole.content or "").strip()) == ("hm", "Yes.")
    assert [r.different for r in (called, talk, thought, opened)] == [0, 0, 0, 0]
    assert called.count > 20


def test_a_parser_without_its_markers_costs_no_other_its_answer(rust):
    asks = [ParserQuestion("gemma4"), ParserQuestion("hermes"), ParserQuestion("hf")]
    gemma, hermes, template = (rust.read(CHATML, [JSON], asks)[ask][0] for ask in asks)
    assert gemma.error is not None
    assert "missing" in render(gemma.error)
    assert calls(hermes) == [("weather", CALL)]
    assert template.error is not None
    assert "response_template" in render(template.error)


def test_a_parser_for_both_kinds_is_started_for_both(rust):
    marked = [(m, True) for m in ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>')]
    tokens = Tokens(tokens=(*MARKERS, *marked), eos="<|im_end|>")
    text = '<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:3}<tool_call|>'
    ask = ParserQuestion("gemma4")
    (reading,) = rust.read(tokens, [Sample("one-call", ASK, text, tools=TOOLS)], [ask])[ask]
    assert calls(reading) == [("weather", {"city": "Rome", "days": 3})]


def document(**more: Any) -> dict[str, Any]:
    engine = {"name": "vllm", "version": "0.33.0", "frontend": "rust"}
    parameters = {"model": "o/m", "temperature": 0.6, "top_k": 20}
    options = ["tool_parser:hermes", "reasoning_parser:none"]
    return {
        "name": "m", "backend": "vllm", "parameters": parameters, "options": options, "stopwords": ["END"],
        "importer": {"engine": engine, "unset": ["top_p"]}, "max_model_len": 4096,
        "engine_args": {"mm_processor_kwargs": {"a": 1}, "max_logprobs": 5, "tokenizer_mode": "hf"}, **more,
    }  # fmt: skip


JSONIFIED = """
import json, sys
from vllm.platforms.cpu import CpuPlatform
import vllm.platforms
vllm.platforms._current_platform = CpuPlatform()
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.entrypoints.common.startup import jsonify_non_default_args
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
command = ServeSubcommand()
command.subparser_init(parser.add_subparsers(dest="subparser"))
arguments = parser.parse_args(["serve", *sys.argv[1:]])
command.validate(arguments)
print(json.dumps(jsonify_non_default_args(arguments, exclude={"api_server_count"})))
"""


def test_the_frontend_takes_every_option_of_a_document(vllm_cuda_engine, tmp_path: Path):
    """As ``vllm serve`` hands them on: the frontend reads them before it looks at its sockets."""
    python = vllm_cuda_engine.python
    launch = VllmCuda().launch(document(), tmp_path, 8000)
    words = [*launch.arguments[3:]]
    handed = subprocess.run(
        [python, "-c", JSONIFIED, *words], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert handed.returncode == 0, handed.stderr[-2000:]
    given = json.loads(handed.stdout.splitlines()[-1])
    assert given["tool_call_parser"] == "hermes"
    assert "reasoning_parser" not in given  # vllm serve drops the word none: the frontend guesses
    binary = next(Path(python).parents[1].glob("lib*/python*/site-packages/vllm/vllm-rs"))

    def refused(arguments: dict[str, Any]) -> str:
        command = [binary, "frontend", "--listen-fd", "0", "--input-listener-fd", "0"]
        command += ["--output-listener-fd", "0", "--args-json", json.dumps(arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr

    assert "not implemented" not in refused(given)
    assert "invalid JSON arguments" not in refused(given)
    assert "override_generation_config" in refused(given | {"override_generation_config": {"top_k": 1}})


BUSY = """
import sys
sys.path.insert(0, sys.argv[1])
from parser_worker import scripted_core, wire
scripted_core.START_SECONDS = 0.5
try:
    scripted_core.Frontend(sys.argv[2], ".", None, None, 2)
except (wire.Overrun, scripted_core.FrontendError) as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("script", "says"), [("sleep 60", "Overrun"), ("echo gone; exit 3", "FrontendError gone")]
)
def test_a_busy_machine_is_an_accident_and_a_dead_server_an_error(vllm_cuda_engine, tmp_path, script, says):
    """An accident is asked again; an error would be kept with the proof."""
    server = tmp_path / "server"
    server.write_text(f"#!/bin/sh\n{script}\n")
    server.chmod(0o755)
    folder = Path(parsers.__file__).parent
    command = [vllm_cuda_engine.python, "-c", BUSY, str(folder), str(server)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stdout.startswith(says), done.stdout + done.stderr
