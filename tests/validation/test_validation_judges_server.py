"""Judging the server: its load, context, settings and cache, and what it leaves behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.engines import log_figures as running
from importer.engines.log_figures import EffectiveSettings
from importer.engines.process import StopReport
from importer.validation import served_engine
from importer.validation.errors import ExchangeError, RequestRefused, TimedOut
from importer.validation.expectations import promise_of
from importer.validation.probes.cache import CacheUse, judge_prefix_cache
from importer.validation.probes.server import (
    judge_concurrency,
    judge_context_length,
    judge_parser,
    judge_sampling,
)
from importer.validation.prompts import COUNT, SUM
from importer.validation.reply import Reply
from tests.facts import as_reason
from tests.judging import verdict, words

FOUR, TEN = Reply("Two plus two is four."), Reply("One, two, and so on to ten.")
PROMPTS = [SUM, COUNT]


@pytest.mark.parametrize(
    ("answers", "last", "expected"),
    [
        ([FOUR, TEN], FOUR, "pass"),
        ([TEN, FOUR], FOUR, "fail engine"),
        ([FOUR, RequestRefused(500, "boom")], FOUR, "fail engine"),
        ([FOUR, TimedOut(as_reason("slow"))], FOUR, "fail engine"),
        ([FOUR, TEN], RequestRefused(500, "boom"), "fail engine"),
        ([FOUR, Reply("I would rather not.")], FOUR, "pass"),
        ([FOUR, Reply("One, two, three, four,", finish_reason="length")], FOUR, "pass"),
    ],
)
def test_many_at_once(
    answers: list[Reply | ExchangeError], last: Reply | ExchangeError, expected: str
) -> None:
    assert verdict(judge_concurrency(PROMPTS, answers, lambda: last)) == expected


def test_the_context_that_is_served() -> None:
    assert verdict(judge_context_length(2048, 2048)) == "pass"
    assert verdict(judge_context_length(4096, 2048)) == "fail configuration"
    assert [verdict(judge_context_length(v, 2048)) for v in (None, True, "2048")] == ["not-applicable"] * 3


MIB = 2**20
# As vLLM 0.32.0 writes it, shortened.
LOG = """(APIServer pid=1) INFO [api_utils.py:286] non-default args: {'tool_call_parser': 'hermes', \
'host': '127.0.0.1', 'override_generation_config': {'temperature': 0.6}, 'reasoning_parser': 'qwen3'}
(EngineCore pid=2) INFO [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: \
model='m', structured_outputs_config=X(reasoning_parser='qwen3'), enable_prefix_caching=True, seed=0
(APIServer pid=1) WARNING [model.py:1893] Default vLLM sampling parameters have been overridden by \
the model's `generation_config.json`: `{'temperature': 0.6, 'top_k': 20}`. If this is not intended, relaunch.
"""


def test_what_vllm_says_of_itself() -> None:
    told = running.read_settings(LOG)
    assert told == EffectiveSettings(
        "hermes", "qwen3", {"temperature": 0.6, "top_k": 20}, prefix_caching=True
    )
    bare = LOG.replace("'tool_call_parser': 'hermes', ", "").replace(", 'reasoning_parser': 'qwen3'}", "}")
    assert (running.read_settings(bare).tool_parser, running.read_settings(bare).reasoning_parser) == ("", "")


def test_what_vllm_mlx_says_of_itself() -> None:
    log = "  Tool calling: ENABLED (parser: hermes)\n  Reasoning: Use --reasoning-parser to enable\n"
    assert running.read_settings(log) == EffectiveSettings("hermes", "")
    assert running.read_settings(
        log.replace("ENABLED (parser: hermes)", "Use --x to enable")
    ) == EffectiveSettings("", "")


def test_what_mlx_vlm_says_of_itself() -> None:
    health = b'{"status": "healthy", "loaded_tool_parser": "json_tools", "apc_enabled": false}'
    assert running.read_settings("", health) == EffectiveSettings(
        "json_tools", prefix_caching=False, infers=True
    )
    assert running.read_settings("", health.replace(b'"json_tools"', b"null")).tool_parser == ""


@given(st.text(), st.binary())
def test_what_says_nothing_of_itself(log: str, health: bytes) -> None:
    assert running.read_settings(log, health).sampling is None
    assert running.read_settings("non-default args: {" + log + "}", health).prefix_caching is None
    for body in (b"", b"[]", b'{"status": "ok"}'):
        assert running.read_settings("", body).tool_parser is None


@pytest.mark.parametrize(
    ("said", "promised", "infers", "reads", "expected"),
    [
        ("hermes", "hermes", False, True, "pass"),
        ("", None, False, False, "pass"),
        ("mistral", "hermes", False, True, "fail configuration"),
        ("", "hermes", False, False, "fail configuration"),
        ("hermes", None, False, True, "fail configuration"),
        ("json_tools", None, True, False, "pass"),  # what it infers and nobody promised
        ("json_tools", "hermes", True, True, "pass"),  # another engine's name for what reads the same
        ("json_tools", "hermes", True, False, "fail configuration"),
        ("", "json_tools", True, False, "fail configuration"),
    ],
)
def test_the_parser_that_runs(
    said: str, promised: str | None, infers: bool, reads: bool, expected: str
) -> None:
    outcome = judge_parser("tool_parser", said, promised, infers=infers, reads=reads)
    assert verdict(outcome) == expected


@pytest.mark.parametrize(
    ("said", "promised", "expected"),
    [
        ({"temperature": 0.6, "top_k": 20}, {"temperature": 0.6}, "pass"),
        ({}, {"temperature": 1.0, "top_k": -1}, "pass"),  # vLLM's own defaults
        ({"temperature": 0.1}, {"temperature": 0.6}, "fail configuration"),
        ({}, {"repetition_penalty": 1.2}, "fail configuration"),
        ({"temperature": 0.6}, {"max_tokens": 5}, "not-applicable"),
    ],
)
def test_the_sampling_that_runs(said: dict[str, float], promised: dict[str, float], expected: str) -> None:
    assert verdict(judge_sampling(said, promised)) == expected


ONE, TWO, OTHER = ("", "1"), ("", "2"), ("", "3")


@pytest.mark.parametrize(
    ("cached", "expected"),
    [
        ([300, 300, 256, 300], "pass"),
        ([256, 256, 256, 256], "pass"),  # whole blocks only
        ([0, 0, 0, 0], "fail engine"),  # never hit
        ([300, 0, 300, 300], "fail engine"),  # thrown away with other sampling
        ([300, 300, 300, 0], "fail engine"),  # lost in a batch
        ([300, 300, 999, 300], "fail engine"),  # more than there are
    ],
)
def test_the_second_turn_in_the_cache(cached: list[int], expected: str) -> None:
    found = [CacheUse(str(n), 333, count) for n, count in enumerate(cached)]
    assert verdict(judge_prefix_cache(315, found)) == expected


def test_what_an_engine_leaves_in_shared_memory() -> None:
    good = StopReport(group_ended=True, port_free=True, killed=False, seconds=1.0, held=300 * MIB)
    assert verdict(served_engine.judge_stop(good)) == "pass"
    assert "300 MiB back" in words(served_engine.judge_stop(good))
    left = StopReport(group_ended=True, port_free=True, killed=False, seconds=1.0, held=MIB, left=4096)
    assert verdict(served_engine.judge_stop(left)) == "fail engine"


def test_how_many_images_a_document_allows() -> None:
    assert promise_of({}).images == 0
    assert promise_of({"known_usecases": ["chat", "vision"]}).images == 2
    assert promise_of({"known_usecases": ["vision"], "limit_mm_per_prompt": {"image": 1}}).images == 1
    assert promise_of({"limit_mm_per_prompt": {"image": {"count": 4}}}).images == 4
