"""Hung, slow and overloaded servers: a verdict in a stated time; the steps and the speed of a validation."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from itertools import pairwise

import pytest

from importer.progress import Step
from importer.reasons import Reason
from importer.validation import client as client_module
from importer.validation.client import TOTAL_LIMIT, Client
from importer.validation.context import SIDE_BY_SIDE, Context
from importer.validation.errors import AnswerFailure, Overloaded
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, NotShown, Pass, ProbeRow
from importer.validation.probes import PROBES
from importer.validation.probes import server as server_probes
from importer.validation.probes.chat import plain_chat
from importer.validation.probes.server import (
    WITHIN,
    FirstAnswerReason,
    first_answer,
    health,
    model_listed,
    paced,
)
from importer.validation.progress import SilenceReason, listened, speed
from importer.validation.prompts import GREETING
from importer.validation.remedy import Remedy
from importer.validation.run import probe
from tests.facts import as_reason
from tests.serving import listening
from tests.waiting import PATIENCE

WORDS = ["Hello", "to", "all", "of", "you", "out", "there", "in", "the", "wide", "world", "."]


class Talking(BaseHTTPRequestHandler):
    """Answers each chat with ``WORDS``; a word is a token."""

    pause = 0.0
    wbufsize = 0

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refuses():
            return
        usage = {"prompt_tokens": 5, "completion_tokens": len(WORDS)}
        if not request.get("stream"):
            time.sleep(self.pause * len(WORDS))
            message = {"role": "assistant", "content": " ".join(WORDS)}
            self._answer(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
            return
        self.send_response(200)
        self.end_headers()
        for number, word in enumerate(WORDS):
            time.sleep(self.pause)
            ends = "stop" if number + 1 == len(WORDS) else None
            event = {"choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": ends}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())

    def refuses(self) -> bool:
        return False

    def _answer(self, status: int, body: object, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def serving(handler: type[Talking], kind: type[HTTPServer] = ThreadingHTTPServer) -> Iterator[str]:
    server = kind(("127.0.0.1", 0), handler)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_port}"


def ask(url: str, *, total: float = TOTAL_LIMIT, steps: Callable[[str], None] = print) -> dict[str, ProbeRow]:
    bench = Context(Expectations(), "m", Client(url, deadline=time.monotonic() + total))
    return {row.probe: row for row in probe(bench, PROBES, steps)}


def unasked(rows: dict[str, ProbeRow]) -> list[ProbeRow]:
    return [row for row in rows.values() if row.outcome.gives(CommonReason.NOT_ASKED)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), [(ThreadingHTTPServer, (0.0, 0.5)), (HTTPServer, (0.8, 1.0))])
def test_a_server_is_heard_while_another_waits(
    kind: type[HTTPServer], share: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one answers nobody meanwhile, as a machine without time does."""
    monkeypatch.setattr(Talking, "pause", 0.1)
    with serving(Talking, kind) as url:
        client, begun = Client(url), time.monotonic()
        reply, silent = listened(client, lambda: client.chat({"messages": []}, []))
        seconds = time.monotonic() - begun
    assert reply.content == " ".join(WORDS)
    assert share[0] * seconds <= silent <= share[1] * seconds


def test_a_server_that_answers_health_alone_has_a_verdict_in_a_stated_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 2 * WITHIN < 100  # the streamed greeting, then the whole one
    monkeypatch.setattr(server_probes, "WITHIN", 0.3)
    over, asked = threading.Event(), list[int]()

    class Hangs(Talking):
        def refuses(self) -> bool:
            asked.append(1)
            over.wait(PATIENCE)
            return True

    with serving(Hangs) as url:
        rows = ask(url)
        over.set()
    assert len(asked) == 2
    assert isinstance(rows["health"].outcome, Pass)
    first = rows["first-answer"].outcome
    assert (first.outcome, first.attribution) == ("inconclusive", "environment")
    assert first.gives(AnswerFailure.TIMED_OUT)
    assert len(unasked(rows)) == len(PROBES) - 2
    assert {row.outcome.follows for row in unasked(rows)} == {("first-answer",)}


@pytest.mark.parametrize(
    ("rate", "plain", "reads", "prompt"),
    [(4.0, 48, 30.0, 192), (12.0, 60, 100.0, 500), (300.0, None, 60.0, None)],
)
def test_a_slow_engine_has_shorter_answers_and_prompts(
    rate: float, plain: int | None, reads: float, prompt: int | None
) -> None:
    measured = Pass(Reason(FirstAnswerReason.MEASURED, rate=rate, reads=reads))
    promise = paced(Expectations(max_tokens=4096), measured)
    assert (promise.plain, promise.prompt) == (plain, prompt)
    assert promise.limit(256) == min(256, plain or 256)
    assert promise.limit(256, tools=True) == 256
    assert promise.room(2000) == min(2000, prompt or 2000)
    unknown = paced(promise, Pass(as_reason("answered")))
    assert (unknown.limit(256), unknown.room(2000)) == (256, 2000)


def test_a_server_that_refuses_for_load_is_one_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE", 0.5)

    class Busy(Talking):
        def refuses(self) -> bool:
            self._answer(429, {"error": {"message": "slow down"}}, Retry_After="1")
            return True

    with serving(Busy) as url:
        rows = ask(url)
    refused = [row for row in rows.values() if row.outcome.reason.kind is AnswerFailure.OVERLOADED]
    assert [row.probe for row in refused] == ["first-answer"]
    assert refused[0].outcome.attribution == "engine"
    assert refused[0].outcome.remedy is not None
    assert refused[0].outcome.remedy.kind is Remedy.LESS_LOAD
    assert len(unasked(rows)) == len(PROBES) - 2


@pytest.mark.slow
def test_a_refusal_for_load_is_asked_again_after_the_time_that_it_names() -> None:
    times: list[float] = []

    class Recovers(Talking):
        def refuses(self) -> bool:
            times.append(time.monotonic())
            if len(times) < 3:
                self._answer(429, {"error": "slow down"}, Retry_After="1")
            return len(times) < 3

    with serving(Recovers) as url:
        reply = Context(Expectations(), "m", Client(url)).ask(GREETING)
    assert reply.content == " ".join(WORDS)
    assert all(later - sooner >= 1 for sooner, later in pairwise(times))


def test_a_refusal_for_load_later_on_ends_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE", 0.1)
    served: list[int] = []

    class Tires(Talking):
        def refuses(self) -> bool:
            served.append(1)
            if len(served) > 3:
                self._answer(429, {"error": "enough for today"})
            return len(served) > 3

    with serving(Tires) as url:
        rows = ask(url)
    refused = [row for row in rows.values() if row.outcome.reason.kind is AnswerFailure.OVERLOADED]
    assert 1 <= len(refused) <= SIDE_BY_SIDE  # as many as ran side by side
    assert all(isinstance(row.outcome, Inconclusive) for row in refused)
    assert unasked(rows)
    with pytest.raises(Overloaded), serving(Tires) as url:
        Context(Expectations(), "m", Client(url)).ask(GREETING)


def test_the_time_limit_ends_the_requests() -> None:
    with serving(Talking) as url:
        bench = Context(Expectations(), "m", Client(url, deadline=time.monotonic() - 1))
        rows = {row.probe: row for row in probe(bench, (model_listed, plain_chat), print)}
    assert all(not isinstance(row.outcome, Pass) for row in rows.values())
    bench = Context(Expectations(), "m", Client(url, deadline=time.monotonic() + 3600))
    assert bench.client.seconds_left > 3000


@pytest.mark.slow
def test_a_slow_server_is_asked_for_its_contract_until_the_time_is_over() -> None:
    class Slow(Talking):
        pause = 0.05

    with serving(Slow) as url:
        rows = ask(url, total=3)
    slow = rows["first-answer"].outcome
    assert isinstance(slow, Pass)
    assert 0 < slow.reason.fields["rate"] <= 20
    late = [row for row in rows.values() if row.outcome.gives(SilenceReason.TIME_IS_UP)]
    late = [row for row in late if not row.outcome.follows]
    assert late
    assert all(row.outcome.attribution == "environment" and row.outcome.remedy for row in late)
    order = [bool(row.ability) for row in rows.values() if isinstance(row.outcome, Pass)]
    assert sum(order) <= len(order) / 2, "what the model can was asked first"


@pytest.mark.slow
def test_steps_count_and_name_what_runs_and_the_speed_is_that_of_the_server() -> None:
    steps: list[Step] = []

    class Steady(Talking):
        pause = 0.005

    with serving(Steady) as url:
        rows = ask(url, steps=lambda step: steps.append(step) if isinstance(step, Step) else None)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[0].running == (health.name,)
    assert steps[1].running == (first_answer.name,)
    last = steps[-1].figures
    assert last["total"] == len(PROBES)
    assert isinstance(last["seconds"], float)
    outcomes = [row.outcome for row in rows.values()]
    assert sum(isinstance(one, NotApplicable) for one in outcomes) > 1  # they count as neither
    assert last["passed"] <= sum(isinstance(one, Pass) for one in outcomes)
    assert last["failed"] <= sum(isinstance(one, Fail | Inconclusive | NotShown) for one in outcomes)
    assert max(len(step.running or ()) for step in steps) > 1
    measured = speed([*rows.values()])
    assert 20 < measured["tokens_per_second"] < 200.5
    assert Steady.pause <= measured["first_token_seconds"] < 1
