"""The client against a server that answers whatever a test wants: broken, slow, cut, enormous."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from importer.document.document import Document
from importer.errors import UsageError
from importer.progress import Step
from importer.validation import client as client_module
from importer.validation.client import Client, Exchange, trim
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, ReplyError, RequestRefused, ServerUnreachable, TimedOut
from importer.validation.expectations import always
from importer.validation.outcome import Outcome, Pass
from importer.validation.probe import Probe, ProbeOptions
from importer.validation.probes import PROBES
from importer.validation.probes.chat import QUESTIONS, plain_chat
from importer.validation.probes.requests import malformed_requests
from importer.validation.probes.sampling import sampling_arrives
from importer.validation.probes.server import health, model_listed
from importer.validation.remote import the_model
from importer.validation.run import validate
from importer.validation.turn_forms import FORMS, text_of, variants
from tests.dripping import DRIPS, dripping
from tests.facts import as_reason
from tests.openai_api import api
from tests.tiers import one_of_each
from tests.waiting import PATIENCE

Answer = Callable[[socket.socket], None]
BODY = json.dumps(
    {"choices": [{"message": {"role": "assistant", "content": "Hello!"}, "finish_reason": "stop"}]}
).encode()
STREAM = b"""data: {"choices": [{"delta": {"content": "Hel"}}]}

data: {"choices": [{"delta": {"content": "lo!"}, "finish_reason": "stop"}]}

data: [DONE]

"""
ASK = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]}


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode() + body


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """A listening socket; every connection's request is read and ``answer`` writes what comes back."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def handle(connection: socket.socket) -> None:
            with connection:
                connection.recv(65536)
                try:
                    answer(connection)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)
                except OSError:
                    pass  # the client has left, as some tests make it

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(connection,)).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def say(data: bytes) -> Answer:
    return lambda connection: connection.sendall(data)


NAMED: Document = {
    "name": "chat",
    "backend": "mlx",
    "parameters": {"model": "/srv/Toy-1B"},
    "importer": {"schema": 1, "model_id": "acme/Toy-1B"},
}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("other", "chat"), "chat"),
        (("other", "acme/Toy-1B", "/srv/Toy-1B"), "acme/Toy-1B"),  # what mlx-lm finds in the Hub's cache
        (("other/Toy", "/home/me/Toy-1B"), "/home/me/Toy-1B"),  # fetched to a folder of that name
        (("other",), "other"),
        ((), "default_model"),  # mlx-lm without a readable list
    ],
)
def test_the_documents_model_is_found_among_the_servers(names: tuple[str, ...], found: str) -> None:
    with api(names=names, knows=names or ("default_model",)) as (url, _):
        assert the_model(Client(url), None, NAMED) == found


@pytest.mark.parametrize(("names", "named"), [(("a", "b"), None), (("a",), "c"), ((), "c")])
def test_a_model_that_is_not_there_is_one_error_with_the_servers_names(
    names: tuple[str, ...], named: str | None
) -> None:
    knows = names or ("z",)
    with api(names=names, knows=knows) as (url, asked), pytest.raises(UsageError, match="no model") as raised:
        the_model(Client(url), named, NAMED)
    assert raised.value.kind == "unknown-model"
    assert raised.value.details["known"] == (", ".join(names) or "none that it lists")
    assert len(asked) == (named is not None)


def test_a_name_that_no_list_has_is_asked_for() -> None:
    with api(names=("a", "b"), knows=("a", "b", "alias")) as (url, asked):
        assert the_model(Client(url), "alias", NAMED) == "alias"
        assert the_model(Client(url), "a", NAMED) == "a"
    assert [body["model"] for body in asked] == ["alias"]


@pytest.mark.parametrize("name", one_of_each(DRIPS, tier="slow"))
def test_an_answer_that_drips_is_not_waited_for(name: str) -> None:
    """Neither its headers nor its body, that drip for ever: each byte alone would be in time."""
    with dripping(DRIPS[name]) as port, pytest.raises(TimedOut):
        Client(f"http://127.0.0.1:{port}", 1.0).get("/v1/models", [])


def test_whole_and_streamed_are_kept_as_they_came() -> None:
    log: list[Exchange] = []
    with server(say(http(BODY))) as url:
        assert Client(url + "/v1/").chat(ASK, log).content == "Hello!"
    with server(say(http(STREAM))) as url:
        assert Client(url).chat(ASK | {"stream": True}, log).content == "Hello!"
    kept = [exchange.to_json() for exchange in log]
    assert [k["body"] for k in kept] == [BODY.decode(), STREAM.decode()]
    assert [(k["method"], k["path"], k["status"], k["error"]) for k in kept] == [
        ("POST", "/v1/chat/completions", 200, None)
    ] * 2
    assert kept[0]["request"] == ASK


def test_a_chunked_stream_is_read_as_it_comes() -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(STREAM), 7):
            part = STREAM[start : start + 7]
            connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        connection.sendall(b"0\r\n\r\n")

    with server(answer) as url:
        assert Client(url).chat(ASK | {"stream": True}, []).content == "Hello!"


@pytest.mark.parametrize(
    ("answer", "kind", "blamed"),
    [
        (http(b'{"error": {"message": "no tool parser"}}', "400 Bad Request"), RequestRefused,
         "configuration"),
        (http(b'{"detail": "Not Found"}', "404 Not Found"), RequestRefused, "configuration"),
        (http(b"<html>oops</html>", "500 Internal Server Error"), RequestRefused, "engine"),
        (http(b"not json"), ReplyError, "engine"),
        (http(BODY[:20], length=len(BODY)), ReplyError, "engine"),
        (b"", ServerUnreachable, "engine"),
        (b"SSH-2.0-OpenSSH\r\n", ServerUnreachable, "engine"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\nhalf", ServerUnreachable, "engine"),
    ],
)  # fmt: skip
def test_every_failure_has_a_kind_and_someone_to_blame(
    answer: bytes, kind: type[ExchangeError], blamed: str
) -> None:
    log: list[Exchange] = []
    with server(say(answer)) as url, pytest.raises(kind) as raised:
        Client(url).chat(ASK, log)
    assert raised.value.outcome().attribution == blamed
    assert log[0].to_json()["error"] == str(raised.value)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ServerUnreachable):
        Client(f"http://127.0.0.1:{port}").get("/health", [])


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_hangs_or_trickles_meets_the_limit(head: bytes) -> None:
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while not ended.wait(0.05):
            connection.sendall(b": still here\n\n" if head else b"")

    with server(answer) as url:
        with pytest.raises(TimedOut) as raised:
            Client(url, time_limit=0.4).chat(ASK | {"stream": True}, [])
        ended.set()
    outcome = raised.value.outcome()
    assert (outcome.outcome, outcome.attribution) == ("inconclusive", "environment")


def test_an_enormous_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_ANSWER", 1000)
    with server(say(http(b"x" * 5000))) as url, pytest.raises(ReplyError, match="larger than 1000"):
        Client(url).chat(ASK, [])


def test_long_bodies_lose_their_middle() -> None:
    assert trim("x" * 10, 10) == "x" * 10
    assert trim("a" * 10 + "b" * 10, 10) == "aaaaa… 10 characters left out …bbbbb"


@dataclass
class Stopped:
    group_ended: bool = True
    port_free: bool = True
    killed: bool = False
    seconds: float = 0.25
    held: int | None = None
    left: int = 0


@dataclass
class Running:
    """A server that is already there, as the runner sees one."""

    base_url: str
    model: str = "m"
    start_seconds: float = 1.5
    report: Stopped = None  # type: ignore[assignment]

    def stop(self) -> Stopped:
        return self.report or Stopped()


DOCUMENT = {
    "name": "m",
    "backend": "mlx",
    "options": ["tool_parser:x"],
    "importer": {"engine": {"name": "mlx", "version": "1"}},
}


def by_name(report: object) -> dict[str, tuple[str, str | None]]:
    return {r.probe: (r.outcome.outcome, r.outcome.attribution) for r in report.rows}  # type: ignore[attr-defined]


def test_an_engine_that_is_not_healthy_is_asked_nothing_more() -> None:
    with server(say(http(b"{}", "503 Service Unavailable"))) as url:
        report = validate(DOCUMENT, Running(url))
    found = by_name(report)
    assert list(found) == [p.name for p in PROBES] + ["stops-cleanly"]
    assert found.pop("health") == ("fail", "engine")
    assert found.pop("stops-cleanly") == ("pass", None)
    assert set(found.values()) == {("inconclusive", "engine")}
    assert not report.passed


def test_the_report_keeps_order_evidence_and_time() -> None:
    def answer(connection: socket.socket) -> None:
        time.sleep(0.05)
        connection.sendall(http(BODY))

    steps: list[str] = []
    with server(answer) as url:
        options = ProbeOptions([health, model_listed, plain_chat], progress=steps.append)
        report = validate(DOCUMENT, Running(url), options=options)
    data = report.to_json()
    figures = [step.figures for step in steps if isinstance(step, Step)]
    assert {one["total"] for one in figures} == {
        len(data["outcomes"])
    }  # one count, of the run and its report
    assert (steps[-1], figures[-1]["done"]) == ("stopping the engine", 3)
    assert [o["probe"] for o in data["outcomes"]] == ["health", "model-listed", "plain-chat", "stops-cleanly"]
    assert [o["outcome"] for o in data["outcomes"]] == ["pass", "fail", "pass", "pass"]
    first = data["outcomes"][0]
    assert (first["trials"], first["agreed"], first["interval"], first["log"]) == (1, 1, [0.207, 1.0], "")
    assert first["seconds"] >= 0.05
    assert data["outcomes"][2]["exchanges"][0]["body"] == BODY.decode()
    assert data["outcomes"][2]["lesson"] == plain_chat.lesson
    assert data["engine"] == {"name": "mlx", "version": "1"}
    assert set(data["seconds"]) == {"start", "probes", "stop"}
    assert (data["seconds"]["start"], data["seconds"]["stop"], data["passed"]) == (1.5, 0.25, False)
    assert json.loads(json.dumps(data)) == data


def test_an_interrupt_waits_for_no_answer() -> None:
    begun, over, let = threading.Event(), threading.Event(), threading.Event()

    def wait(_ctx: Context) -> Outcome:
        begun.set()
        let.wait(PATIENCE)
        over.set()
        return Pass(as_reason("answered at last"))

    def interrupt(_ctx: Context) -> Outcome:
        begun.wait(PATIENCE)
        raise KeyboardInterrupt

    probes = [health, Probe("interrupting", ".", always, interrupt), Probe("waiting", ".", always, wait)]
    with server(say(http(BODY))) as url:
        with pytest.raises(KeyboardInterrupt):
            validate(DOCUMENT, Running(url), options=ProbeOptions(probes))
        assert not over.is_set()
        let.set()
        assert over.wait(PATIENCE)


@pytest.mark.parametrize(
    ("stopped", "blamed"),
    [
        (Stopped(group_ended=False), "engine"),
        (Stopped(port_free=False), "environment"),
        (Stopped(killed=True), "engine"),
    ],
)
def test_an_engine_that_does_not_end_fails(stopped: Stopped, blamed: str) -> None:
    with server(say(http(BODY))) as url:
        report = validate(DOCUMENT, Running(url, report=stopped), options=ProbeOptions([health]))
    assert by_name(report)["stops-cleanly"] == ("fail", blamed)
    assert not report.passed


def test_probes_send_no_sampling_but_what_is_theirs_to_send() -> None:
    seen: list[dict[str, object]] = []

    def answer(connection: socket.socket) -> None:
        connection.sendall(http(BODY))

    document = DOCUMENT | {"parameters": {"temperature": 0.6, "top_k": 20}}
    with server(answer) as url:
        plain = validate(document, Running(url))
        ours = validate(DOCUMENT | {"importer": {"client_sampling": {"repeat_penalty": 1.1}}}, Running(url))
    for report in (plain, ours):
        own = (sampling_arrives.name, malformed_requests.name)  # they compare with what is sent
        rows = [r for r in report.rows if r.probe not in own]
        requests = [e["request"] for r in rows for e in r.outcome.evidence if e["request"]]
        assert requests
        seen.extend(requests)
    allowed = {"model", "messages", "tools", "stream", "stream_options", "max_tokens", "tool_choice"}
    allowed |= {"logprobs", "top_logprobs"}  # shown, not changed
    allowed |= {"chat_template_kwargs", "stop", "response_format", "parallel_tool_calls"}
    turns = {text_of(v, p) for form in FORMS for v in variants(form) for p in QUESTIONS}
    forms = [body for body in seen if body.get("prompt") in turns]  # of noise other forms are asked, greedily
    assert {body["temperature"] for body in forms} == {0.0}
    seen = [body for body in seen if body not in forms]
    chance = {"temperature"}  # taken out of an answer that showed nothing
    extra = [set(body) - allowed - (chance if body.get("temperature") == 0 else set()) for body in seen]
    assert set() in extra
    assert {frozenset(e) for e in extra} == {frozenset(), frozenset({"repetition_penalty"})}
