"""The frame of a validation: trials and intervals, order and time, the journal, rendering, who is blamed."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from importer import demo
from importer.engines.base import Death
from importer.hub import local
from importer.proof.prove import NO_CALLS
from importer.proof.result import Proof, Verdict
from importer.run import rendering
from importer.validation import blame, proved
from importer.validation.client import KEPT, Client, Exchange, bounded
from importer.validation.context import Context, holds
from importer.validation.errors import Refused, ReplyError, TemplateRefusedError, TimedOut, Unreachable
from importer.validation.journal import Journal, complaining, hidden
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, wilson
from importer.validation.probes import (
    PROBES,
    Probe,
    health,
    long_prompt,
    reasoning_off,
    system_role,
    two_user_turns,
)
from importer.validation.promise import Promise
from importer.validation.prompts import GREETING, TRIP, TWO_USERS, WEATHER, WEATHER_ANSWERED, Prompt
from importer.validation.rendering import Rendering
from importer.validation.reply import Reply
from importer.validation.run import probe, validate
from tests.test_validation_client import BODY, DOCUMENT, STREAM, Running, http, say, server


@pytest.mark.parametrize(
    ("agreed", "trials", "low", "high"),  # as statsmodels' proportion_confint(method="wilson") gives them
    [
        (1, 1, 0.2065, 1.0),
        (3, 3, 0.4385, 1.0),
        (0, 3, 0.0, 0.5615),
        (2, 3, 0.2077, 0.9385),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_wilsons_interval(agreed: int, trials: int, low: float, high: float) -> None:
    assert wilson(agreed, trials) == pytest.approx((low, high), abs=5e-5)


def test_every_outcome_has_its_interval_and_what_was_not_asked_has_none() -> None:
    assert (Pass("x").agreeing, Pass("x").interval) == (1, wilson(1, 1))
    assert Inconclusive("x", "model", trials=3, agreed=2).interval == wilson(2, 3)
    assert NotApplicable("x").interval is None


def context(render: object = None, **more: object) -> Context:
    return Context(Promise(tool_parser="x"), "m", Client("http://127.0.0.1:1"), render=render, **more)  # type: ignore[arg-type]


def test_trials_are_counted_with_those_that_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["no", "no", "yes"])
    monkeypatch.setattr(Client, "chat", lambda *_: Reply(next(answers), finish_reason="stop"))

    def judge(reply: Reply) -> Outcome:
        return Pass("x") if reply.content == "yes" else Inconclusive("x", "model")

    outcome = context().judged(GREETING, judge)
    assert (outcome.outcome, outcome.trials, outcome.agreeing) == ("pass", 3, 1)


class Slow:
    """A probe that says when it ran."""

    LESSON = "."

    def __init__(self, name: str, spans: list[tuple[str, float, float]], *, alone: bool) -> None:
        self.NAME, self.ALONE, self.spans = name, alone, spans

    def needs(self, promise: Promise, /) -> None:
        return None

    def run(self, ctx: Context, /) -> Outcome:
        begun = time.monotonic()
        time.sleep(0.05)
        self.spans.append((self.NAME, begun, time.monotonic()))
        return Pass("ran")


def test_what_measures_runs_after_the_others_and_with_nothing_beside_it() -> None:
    spans: list[tuple[str, float, float]] = []
    names = ("one", "first", "two", "second", "three")
    probes: list[Probe] = [Slow(n, spans, alone=n in ("first", "second")) for n in names]
    with server(say(http(BODY))) as url:
        report = validate(DOCUMENT, Running(url), probes=[health, *probes])
    assert [row.probe for row in report.rows] == ["health", *names, "stops-cleanly"]
    assert [name for name, _, _ in sorted(spans, key=lambda s: s[1])][3:] == ["first", "second"]
    times = {name: (begun, ended) for name, begun, ended in spans}
    assert max(times[n][1] for n in ("one", "two", "three")) <= times["first"][0]
    assert times["first"][1] <= times["second"][0]
    assert all(row.seconds >= 0.05 for row in report.rows if row.probe in names)


def test_a_row_says_trials_interval_and_time() -> None:
    def answer(connection: socket.socket) -> None:
        time.sleep(0.05)
        connection.sendall(http(BODY))

    with server(answer) as url:
        rows = validate(DOCUMENT, Running(url), probes=[health]).to_json()["outcomes"]
    assert (rows[0]["trials"], rows[0]["agreed"], rows[0]["interval"]) == (1, 1, [0.207, 1.0])
    assert rows[0]["seconds"] >= 0.05
    assert rows[0]["log"] == ""


def test_a_client_that_leaves() -> None:
    gone, log = threading.Event(), list[Exchange]()

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + STREAM[:70])
        connection.settimeout(10)
        with suppress(ConnectionError):  # what a client has not read when it leaves makes its end a reset
            connection.recv(1)
        gone.set()

    with server(answer) as url:
        Client(url).leave({"stream": True}, log, after=1)
        assert gone.wait(10)
        gone.clear()
        Client(url).leave({"stream": True}, log)
        assert gone.wait(10)
    assert [bytes(e.received) for e in log] == [STREAM[:70], b""]
    assert log[0].first is not None
    assert [e.error for e in log] == [None, None]


def test_long_requests_are_kept_in_part() -> None:
    assert bounded({"messages": [{"content": "x" * 100}]}) == {"messages": [{"content": "x" * 100}]}
    kept = bounded({"messages": [{"role": "user", "content": "x" * 100_000}], "max_tokens": 3})
    assert kept is not None
    assert (kept["max_tokens"], kept["messages"][0]["role"]) == (3, "user")
    assert len(json.dumps(kept)) < KEPT


TRACEBACK = """INFO: POST /v1/chat/completions
Traceback (most recent call last):
  File "server.py", line 1, in handle
    raise ValueError(x)
ValueError: shapes (3,4) and (5,) do not fit
INFO: 127.0.0.1 "POST /v1/chat/completions" 500
WARNING 01-02 tokens hf_abcdefghijklmnop are old
"""


def test_a_journal_tells_what_was_complained_of_since_it_was_opened(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("ERROR: long ago\n")
    journal = Journal(log, lambda: True).from_here()
    assert (journal.complaints(), journal.raised(), journal.death()) == ("", None, None)
    with log.open("a") as more:
        more.write(TRACEBACK)
    told = journal.complaints().splitlines()
    assert told[0].startswith("Traceback")
    assert told[3:] == ["ValueError: shapes (3,4) and (5,) do not fit", "WARNING 01-02 tokens … are old"]
    assert journal.raised() == "ValueError: shapes (3,4) and (5,) do not fit"
    log.unlink()
    assert (journal.complaints(), journal.raised()) == ("", None)


@pytest.mark.parametrize(
    "line", ["(EngineCore pid=7) ERROR 11-20 [core.py:9] torch.OutOfMemoryError: no room", "KeyError: 'x'"]
)
def test_exceptions_are_found_behind_what_loggers_put_in_front(tmp_path: Path, line: str) -> None:
    log = tmp_path / "engine.log"
    log.write_text(f"INFO: all is well\n{line}\nINFO: bye\n")
    raised = Journal(log, lambda: True).raised()
    assert raised is not None
    assert line.endswith(raised)


def test_no_secret_leaves_the_journal() -> None:
    assert hidden("token hf_0123456789abcdef, Bearer abc.def and http://me:pw@host/x") == (
        "token …, Bearer … and http://…host/x"
    )
    assert complaining(["INFO: nothing", "x = Error"]) == []


DEATHS = (Death(r"Bang: (.*)", "it went bang: {0}"),)


def dead(tmp_path: Path, text: str, *, alive: bool = False) -> Journal:
    log = tmp_path / "engine.log"
    log.write_text(text)
    return Journal(log, lambda: alive, DEATHS)


def test_a_lost_connection_to_an_engine_that_is_gone_is_its_death(tmp_path: Path) -> None:
    gone = blame.failed(Unreachable("refused"), context(journal=dead(tmp_path, "Bang: memory\n")))
    assert (gone.outcome, gone.attribution) == ("fail", "engine")
    assert "it went bang: memory" in gone.reason
    alive = blame.failed(TimedOut("late"), context(journal=dead(tmp_path, "Bang: x\n", alive=True)))
    assert (alive.outcome, alive.attribution, alive.reason) == ("inconclusive", "environment", "late")
    hangs = blame.failed(TimedOut("late"), context(journal=dead(tmp_path, TRACEBACK, alive=True)))
    assert (hangs.outcome, hangs.attribution) == ("fail", "engine")
    assert hangs.reason == "late; its log: ValueError: shapes (3,4) and (5,) do not fit"


def test_an_engine_that_answers_nothing_is_not_asked_for_ever() -> None:
    """A thread that generates had died: /health went on answering, and 50 probes waited two minutes each."""

    over = threading.Event()

    class Hangs(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            over.wait(30)

    with ThreadingHTTPServer(("127.0.0.1", 0), Hangs) as hung:
        threading.Thread(target=hung.serve_forever).start()
        client = Client(f"http://127.0.0.1:{hung.server_port}", time_limit=0.2)
        rows = probe(Context(Promise(), "m", client), PROBES, lambda _: None)
        over.set()
        hung.shutdown()
    told = [row.outcome for row in rows if row.outcome.reason.startswith("not asked: ")]
    assert len(told) > 20
    assert {(one.outcome, one.attribution, one.trials) for one in told} == {
        ("inconclusive", "environment", 0)
    }


@pytest.mark.parametrize("error", [Refused(500, "oops"), ReplyError("the engine reports an error: oops")])
def test_a_server_error_is_told_with_the_logs_last_exception(
    tmp_path: Path, error: Refused | ReplyError
) -> None:
    told = blame.failed(error, context(journal=dead(tmp_path, TRACEBACK, alive=True)))
    assert told.attribution == "engine"
    assert told.reason.endswith("its log: ValueError: shapes (3,4) and (5,) do not fit")
    quiet = blame.failed(Refused(400, "no"), context(journal=dead(tmp_path, TRACEBACK, alive=True)))
    assert (quiet.attribution, "log" in quiet.reason) == ("configuration", False)


ALTERNATING = (
    "{%- for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<s>{{ m.content }}{% endfor %}"
)


def repository(tmp_path: Path, template: str, **settings: object) -> Path:
    (tmp_path / "chat_template.jinja").write_text(template)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path


@pytest.mark.parametrize("status", [400, 500])
def test_a_refusal_by_the_template_is_told_in_its_words(tmp_path: Path, status: int) -> None:
    """Whichever status the engine makes of it."""
    with rendering(repository(tmp_path, ALTERNATING), {}) as render:
        ctx = context(render, log=[Exchange("POST", "/x", {"messages": list(TWO_USERS.messages)})])
        told = blame.failed(Refused(status, "Bad Request"), ctx)
        assert (told.attribution, "roles must alternate" in told.reason) == ("configuration", True)
        assert told.mend
        with pytest.raises(TemplateRefusedError, match="roles must alternate"):
            render(TWO_USERS)
        fine = context(render, log=[Exchange("POST", "/x", {"messages": list(GREETING.messages)})])
        assert blame.failed(Refused(400, "no"), fine).reason == "the engine answered 400: no"


def test_what_fails_without_a_template_is_the_files_fault(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    asked = [Exchange("POST", "/x", {"messages": list(GREETING.messages)})]
    with rendering(tmp_path, {}) as render:
        for error in (Refused(500, "no template"), Refused(400, "no"), ReplyError("Internal server error")):
            told = blame.failed(error, context(render, log=asked))
            assert (told.attribution, told.mend) == ("configuration", blame.FETCH_TEMPLATE)
        assert (
            blame.failed(Refused(500, "broke"), context(render)).attribution == "engine"
        )  # no chat was asked


def test_another_parser_is_told_where_the_documents_does_not_read() -> None:
    known = proof("hermes", refuted="deepseek")
    assert "Set tool_parser:hermes" in str(proved.instead({"options": ["tool_parser:deepseek"]}, known))
    assert proved.instead({"options": ["tool_parser:hermes"]}, known) is None
    assert proved.instead({}, known) is None
    assert proved.instead({"options": ["tool_parser:deepseek"]}, proof()) is None


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call><|im_end|>', None),
        ('[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]</s>', None),
        ("get_weather<arg_value>Paris</arg_value></tool_call><|observation|>It rains.", "<|observation|>"),
        ('get_weather({"city": "Paris"})<|im_end|>\n<|im_start|>user\nHi', "<|im_end|>"),
        ("I cannot look that up.<|im_end|>Hi", None),
        ("", None),
    ],
)
def test_an_answer_that_goes_on_behind_its_call_shows_where_it_should_end(
    monkeypatch: pytest.MonkeyPatch, written: str, token: str | None
) -> None:
    monkeypatch.setattr(Context, "look", lambda *_: Reply("", behind=written, finish_reason="stop"))
    assert proved.runs_on(context()) == token


@pytest.mark.parametrize(("says", "silent"), [({"enable_thinking": False}, True), ({}, False)])
def test_a_document_may_switch_thinking_off_by_itself(says: dict[str, bool], silent: bool) -> None:
    with rendering(demo.MODEL, {"chat_template_kwargs": says}) as render:
        assert reasoning_off.silent(context(render)) is silent
    assert not reasoning_off.silent(context(None))


def test_prompts_are_rendered_as_engines_render_them() -> None:
    with rendering(demo.MODEL, {"chat_template_kwargs": {"enable_thinking": False}}) as render:
        asked = render(WEATHER)
        assert asked is not None
        assert "get_weather" in asked.partition("Paris")[0]
        assert asked.endswith("<think>\n\n</think>\n\n")
        thinking = render(Prompt("x", GREETING.messages, switches={"enable_thinking": True}))
        assert thinking is not None
        assert thinking.endswith("<|im_start|>assistant\n")
        answered = render(WEATHER_ANSWERED)
        assert answered is not None
        assert '{"location": "Paris"}' in answered  # an object, and not the text of one
        assert "Zo\\u00eb" not in (render(TRIP) or "")


def test_without_a_template_nothing_is_rendered(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with Rendering(local.resolve("x", tmp_path)) as render:
        assert (render(GREETING), render.digest, render.bos) == (None, "", "<s>")
        assert context(render).raw(GREETING) is None
    assert context().raw(GREETING) is None


def test_a_template_with_and_without_tools(tmp_path: Path) -> None:
    named = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "with {{ tools | length }}"},
    ]
    with rendering(repository(tmp_path, "", chat_template=named, bos_token="<s>"), {}) as render:
        assert (render(GREETING), render(WEATHER), render.bos) == ("plain", "with 1", "<s>")


@pytest.mark.parametrize(
    ("written", "shown", "fits"),
    [
        ("<think>\nSum.\n</think>\n\nIt is four.<|im_end|>", "It is four.", True),
        ("Let me see. <tool_call>{}</tool_call> Done.", "Let me see.\n\nDone.", True),
        ("<tool_call>{}</tool_call>", "", True),
        ("<tool_call>{}</tool_call>", "I cannot look that up.", False),
        ("", "", False),
    ],
)
def test_what_is_shown_must_be_left_of_what_was_written(written: str, shown: str, fits: bool) -> None:
    assert holds(written, shown) is fits


def proof(*reads: str, refuted: str = "deepseek", engine: str = "vllm", **more: object) -> Proof:
    verdicts = [Verdict(n, n.title(), ("one-call",), {}, ("one-call",)) for n in reads]
    verdicts.append(Verdict(refuted, refuted.title(), (), {"one-call": "read no call"}, ("one-call",)))
    fields = {
        "engine": engine,
        "version": "1.0",
        "template": "t",
        "verdicts": {"tool_parser": tuple(verdicts)},
    }
    return Proof(**{**fields, "written": {}, **more})  # type: ignore[arg-type]


LOST = Fail("the model wrote a call and it arrived as content", "configuration", blame.OTHER_TOOL_PARSER)


@pytest.mark.parametrize(
    ("named", "asked", "mend"),
    [
        ("deepseek", proof("hermes"), ("Set tool_parser:hermes in options: it reads what the template "
         "writes; deepseek does not (one-call: read no call).")),
        ("gone", proof("hermes"), "Set tool_parser:hermes in options: it reads what the template writes."),
        ("hermes", proof("hermes"), ("hermes reads what the template writes, and the model writes otherwise: "
         "use its own template.")),
        ("x", proof(), ("No tool parser of vllm 1.0 reads what the template writes: use another template, "
         "or no tool parser.")),
        ("json_tools", proof("json_tools", engine="mlx", inferred={"tool_parser": None}),
         'Set "tool_parser_type": "json_tools" in tokenizer_config.json; mlx 1.0 infers none.'),
        ("json_tools", proof("glm47", "json_tools", engine="mlx", inferred={"tool_parser": None}),
         'Set "tool_parser_type": "json_tools" in tokenizer_config.json; mlx 1.0 infers none.'),
        ("x", proof("hermes", verdicts={}), blame.OTHER_TOOL_PARSER),
        ("x", proof("hermes", verdicts={}, unasked={"tool_parser": NO_CALLS}),
         "Leave tool_parser out of options: the template renders no tool calls."),
        ("x", None, blame.OTHER_TOOL_PARSER),
    ],
)  # fmt: skip
def test_the_parser_that_would_mend_it_is_the_proofs(named: str, asked: Proof | None, mend: str) -> None:
    ctx = Context(Promise(tool_parser=named), "m", Client("http://127.0.0.1:1"), proof=asked)
    assert blame.mended(LOST, ctx).mend == mend


def test_a_template_that_was_never_proved_is_said(tmp_path: Path) -> None:
    with rendering(repository(tmp_path, "other"), {}) as render:
        told = blame.mended(LOST, context(render, proof=proof("x")))
    assert "not the one that was proved" in told.mend
    assert blame.mended(Pass("fine"), context(proof=proof("x"))) == Pass("fine")


class Busy:
    """A probe with many exchanges."""

    NAME, LESSON = "busy", "."

    def needs(self, promise: Promise, /) -> None:
        return None

    def run(self, ctx: Context, /) -> Outcome:
        for number in range(100):
            ctx.log.append(Exchange("POST", f"/{number}"))
        return Pass("done")


def test_of_many_exchanges_the_first_and_the_last_are_kept() -> None:
    with server(say(http(BODY))) as url:
        (row,) = probe(Context(Promise(), "m", Client(url)), [Busy()], lambda _: None)
    paths = [e["path"] for e in row.outcome.evidence]
    assert (len(paths), paths[0], paths[19], paths[20], paths[-1]) == (40, "/0", "/19", "/80", "/99")


def test_an_endless_answer_names_the_token_that_a_completion_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    talks_on = Fail("it goes on into another turn", "configuration", blame.END_TOKEN)
    asked = Exchange("POST", "/v1/chat/completions", {"messages": list(GREETING.messages)})
    monkeypatch.setattr(Context, "raw", lambda *_, **__: "Hello!<|im_end|>\n<|im_start|>user\nHi")
    told = blame.mended(talks_on, context(log=[asked]))
    assert told.mend == "Make <|im_end|> an end-of-sequence token in generation_config.json."
    assert blame.mended(talks_on, context()).mend == blame.END_TOKEN


class Loud:
    """A probe that fails while the engine complains."""

    NAME, LESSON = "loud", "."

    def __init__(self, log: Path) -> None:
        self.log = log

    def needs(self, promise: Promise, /) -> None:
        return None

    def run(self, ctx: Context, /) -> Outcome:
        with self.log.open("a") as more:
            more.write(TRACEBACK)
        raise Refused(500, "oops")


def test_a_failed_probe_keeps_what_the_log_said_meanwhile(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("WARNING: before\n")
    bench = context(journal=Journal(log, lambda: True))
    with server(say(http(BODY))) as url:
        rows = probe(
            Context(bench.promise, "m", Client(url), journal=bench.journal), [Loud(log)], lambda _: None
        )
    assert rows[0].outcome.reason.endswith("ValueError: shapes (3,4) and (5,) do not fit")
    assert "Traceback" in rows[0].log
    assert "before" not in rows[0].log


@pytest.mark.parametrize(
    ("status", "plain", "expected"),
    [
        (400, 200, "pass"),
        (404, 200, "pass"),  # how mlx-lm says that a template refused
        (404, 404, "fail"),  # nothing is served under that name
        (401, 401, "fail"),
        (500, 200, "fail"),
    ],
)
@pytest.mark.parametrize("asked", [system_role, two_user_turns, long_prompt])
def test_a_refusal_is_clean_where_it_is_of_this_request_alone(
    monkeypatch: pytest.MonkeyPatch, asked: Probe, status: int, plain: int, expected: str
) -> None:
    def chat(_client: Client, body: dict[str, object], *_: object, **__: object) -> Reply:
        told = plain if body["messages"] == [*GREETING.messages] else status
        if told != 200:
            raise Refused(told, "no")
        return Reply("Hello!", finish_reason="stop")

    monkeypatch.setattr(Client, "chat", chat)
    asking = replace(context(), promise=Promise(context=16))
    try:
        outcome = asked.run(asking).outcome
    except Refused as refused:
        outcome = refused.outcome().outcome
    assert outcome == expected
