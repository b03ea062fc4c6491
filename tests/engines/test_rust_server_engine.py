"""The released ``vllm-rs`` serves the demo model: its endpoints, and a validation of it."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from importer import engines
from importer.app.local_evidence import rendering
from importer.demo import MODEL
from importer.engines.install import Installed
from importer.validation.client import Client
from importer.validation.evidence_sources import Background
from importer.validation.probe import ProbeOptions
from importer.validation.registry import named
from importer.validation.remote import against
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.xdist_group("rust")]
SERVER = Path(__file__).parents[1] / "rust_server.py"
# What the server does by itself: not log-probabilities, grammars and sampling, for these are its core's.
PROBES = (
    "health", "model-listed", "plain-chat", "prompt-rendered", "stream-equals-whole", "no-special-tokens",
    "reasoning-apart", "answer-ends", "usage-counts", "message-forms", "tokenizer-whole", "tool-call",
    "tool-result-turn", "other-paths",
)  # fmt: skip
ABSENT = {"other-paths"}
STATUSES = {
    "/v1/chat/completions": 400, "/v1/completions": 400, "/tokenize": 400, "/v1/messages": 501,
    "/v1/messages/count_tokens": 501, "/v1/responses": 404, "/v1/embeddings": 404,
    "/v1/chat/completions/render": 403, "/inference/v1/generate": 403,
}  # fmt: skip
DOCUMENT = {
    "name": "demo",
    "backend": "vllm",
    "options": ["tool_parser:hermes", "reasoning_parser:qwen3"],
    "max_model_len": 2048,
    "importer": {"engine": {"name": "vllm", "version": "0.33.0", "frontend": "rust"}},
}


@pytest.fixture(scope="module")
def port(vllm_cuda_engine: Installed) -> Iterator[int]:
    words = [str(vllm_cuda_engine.python), str(SERVER), str(Path(engines.__file__).parent), str(MODEL)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*words, "hermes", "qwen3"], **pipes) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_the_endpoints_of_the_server_are_those_of_the_docs(port: int) -> None:
    found = {}
    for path in STATUSES:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
            connection.request("POST", path, json.dumps({}), {"Content-Type": "application/json"})
            found[path] = connection.getresponse().status
    assert found == STATUSES


def test_the_demo_model_passes_behind_the_server(port: int) -> None:
    client = Client(f"http://127.0.0.1:{port}")
    with rendering(MODEL, DOCUMENT) as render:
        report = against(DOCUMENT, client, "model", Background(render=render), ProbeOptions(named(PROBES)))
    outcomes = {row.probe: (row.outcome.outcome, row.to_json()["reason"]) for row in report.rows}
    assert set(outcomes) == set(PROBES)
    assert {probe for probe, (outcome, _) in outcomes.items() if outcome == "not-applicable"} == ABSENT
    assert {
        probe: said for probe, said in outcomes.items() if said[0] not in ("pass", "not-applicable")
    } == {}
