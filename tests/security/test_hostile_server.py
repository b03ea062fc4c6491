"""A server of strangers ends no run late, fills no memory, and gets one sentence."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest

from importer.validation.client import MAX_ANSWER, MAX_RUN, Budget, Client, weight
from importer.validation.errors import ExchangeError, ReplyError, RunOver, SilenceReason, TimedOut
from importer.validation.reply import LONGEST, Reply, ToolCall
from tests.commandline import Desk, desk
from tests.hostile_api import ENDLESS, LONG, MIXED, hostile_api
from tests.tiers import one_of_each
from tests.weighed import NAME

__all__ = ["desk"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
DOCUMENT = """\
name: chat
backend: vllm
parameters:
  model: ./toy
options:
- tool_parser:hermes
- reasoning_parser:qwen3
"""
LIMIT = 4  # seconds for the first, polite answer on a busy machine
LATE = 30  # seconds; what is endless would take for ever
START = 48 * 2**20  # bytes of an ordinary run
MORE = 250 * 2**20  # bytes
ASK = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]}


@dataclass(frozen=True)
class Ran:
    """How a run ended, its report and errors; the bytes of its peak, its seconds of processor time."""

    code: int
    report: dict[str, Any]
    errors: list[str]
    peak: int
    cpu: float


def against(desk: Desk, url: str, *words: object) -> Ran:
    """Run the real command in a process of its own."""
    folder = desk.folder / "models"
    folder.mkdir(exist_ok=True)
    (folder / "chat.yaml").write_text(DOCUMENT)
    weighed = desk.folder / "weighed.json"
    asked = ("validate", "chat", "--against", url, "--model", "hers", "--json", *words)
    ran = desk.alone(*asked, module=NAME, env={"WEIGHED": str(weighed)})
    figures = json.loads(weighed.read_text())
    report = json.loads(ran.out) if ran.out else {}
    return Ran(ran.code, report, ran.err.splitlines(), figures["peak"], figures["seconds"])


def fine(ran: Ran, code: int = 1) -> None:
    """Whether a run has ended in time and memory, with one sentence."""
    assert ran.code == code
    assert sum(line.startswith("importer: ") for line in ran.errors) == 1
    assert ran.peak < START + MORE
    assert ran.cpu < LATE
    if "seconds" in ran.report:
        assert ran.report["seconds"]["probes"] < LATE


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    "kind", ["chunks", "dense", *one_of_each([None, "gzip", *sorted({*ENDLESS} - {"chunks"})])[1:]]
)
def test_a_server_that_never_ends_or_drips_ends_no_run_late(desk: Desk, kind: str) -> None:
    with hostile_api(kind, polite=1) as url:
        fine(against(desk, url, "--time-limit", LIMIT))


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("kind", one_of_each(["endless-events", "dripping-events", "headers"]))
def test_a_server_that_is_hostile_from_the_first_byte_is_not_asked_on(desk: Desk, kind: str) -> None:
    with hostile_api(kind, gets=True) as url:
        fine(against(desk, url, "--time-limit", LIMIT), 6)


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("size", one_of_each([LONGEST * 3 // 4, LONGEST // 4, MAX_ANSWER // 4, LONG]))
def test_texts_of_every_shape_and_size_are_judged_in_time(desk: Desk, size: int) -> None:
    with hostile_api(MIXED, polite=1, size=size) as url:
        fine(against(desk, url, "--time-limit", LIMIT))


@pytest.mark.slow
@LINUX
def test_what_a_run_has_read_is_the_end_of_it(desk: Desk) -> None:
    with hostile_api("words", polite=1, size=MAX_ANSWER) as url:
        ran = against(desk, url)
    kinds = [row["cause"]["kind"] for row in ran.report["outcomes"]]
    assert "SilenceReason.bytes-spent" in kinds
    fine(ran)


@pytest.mark.parametrize("kind", ["dripping-events", "headers", "chunks", "endless-events"])
def test_the_end_of_a_run_is_asked_inside_of_reads(kind: str) -> None:
    """A byte now and then keeps no exchange alive, and a stream without pauses none either."""
    with hostile_api(kind) as url:
        with pytest.raises((ReplyError, TimedOut)):
            Client(url, time_limit=0.2).chat(ASK | {"stream": True}, [])
        with pytest.raises((ReplyError, RunOver)):
            Client(url, deadline=time.monotonic() + 0.2).chat(ASK | {"stream": True}, [])


def test_the_bytes_of_a_run_are_those_of_all_its_clients() -> None:
    budget = Budget(1_000_000)
    with hostile_api("words", size=300_000) as url:
        log: list[Any] = []
        client = Client(url, budget=budget)
        for _ in range(9):
            with pytest.raises(ExchangeError):
                client.chat(ASK, log)
        with pytest.raises(RunOver) as ended:
            Client(url, budget=budget).chat(ASK, log)
    assert ended.value.reason.kind is SilenceReason.BYTES_SPENT
    assert ended.value.outcome().outcome == "inconclusive"
    assert log[-1].status is None  # nothing was sent


def test_a_value_of_json_counts_as_what_it_takes_in_memory() -> None:
    assert weight(b"a" * 100) == 100
    assert weight(b"[[],[]]") == 7 + 16 * 4
    assert MAX_ANSWER * 16 == MAX_RUN


def test_no_judge_sees_a_longer_text() -> None:
    longest = Reply("a" * LONGEST)
    for more in ("reasoning", "behind", "finish_reason"):
        with pytest.raises(ReplyError):
            replace(longest, **{more: "a"})
    for more in ({"logprobs": ({"token": "a"},)}, {"tool_calls": (ToolCall(0, "", "", "a"),)}):
        with pytest.raises(ReplyError):
            replace(longest, **more)  # type: ignore[arg-type]
