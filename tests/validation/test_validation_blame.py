"""Who is blamed: the journal's complaints, deaths, refusals by the template, the parser that mends it."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from importer.app.local_evidence import rendering
from importer.engines.deaths import Death, Died
from importer.progress import silent
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import NO_CALLS, Proof
from importer.reasons import Reason
from importer.sentences import render
from importer.validation import cause, failures, proof_check, tool_markup
from importer.validation.client import Client, Exchange
from importer.validation.context import Context
from importer.validation.errors import (
    AnswerFailure,
    ReplyError,
    RequestRefused,
    ServerUnreachable,
    TemplateRefusedError,
    TimedOut,
)
from importer.validation.evidence_sources import Journal, complaining, hidden
from importer.validation.expectations import Expectations, always, promise_of
from importer.validation.outcome import Fact, Fail, Inconclusive, Outcome, Stage, differs, note, reason_text
from importer.validation.probe import Probe
from importer.validation.probes import PROBES
from importer.validation.probes.server import first_answer
from importer.validation.progress import SilenceReason
from importer.validation.prompts import GREETING, SUM, TWO_USERS
from importer.validation.remedy import OTHER_REASONING_PARSER, OTHER_TOOL_PARSER
from importer.validation.reply import Reply
from importer.validation.run import probe
from importer.validation.trace import Trace
from tests.facts import as_reason
from tests.framing import context, repository
from tests.judging import remedy, words
from tests.serving import listening
from tests.validation.test_validation_client import BODY, http, say, server
from tests.waiting import PATIENCE

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


def test_no_secret_leaves_the_journal() -> None:
    assert hidden("token hf_0123456789abcdef, Bearer abc.def and http://me:pw@host/x") == (
        "token …, Bearer … and http://…host/x"
    )
    assert complaining(["INFO: nothing", "x = Error"]) == []


DEATHS = (Death(r"(?P<words>Bang: .*)", Died.LAST_WORDS),)


def dead(tmp_path: Path, text: str, *, alive: bool = False) -> Journal:
    log = tmp_path / "engine.log"
    log.write_text(text)
    return Journal(log, lambda: alive, DEATHS)


def test_a_lost_connection_to_an_engine_that_is_gone_is_its_death(tmp_path: Path) -> None:
    gone = failures.failed(
        ServerUnreachable(Reason(AnswerFailure.UNREACHABLE, problem="refused")),
        context(journal=dead(tmp_path, "Bang: memory\n")),
    )
    assert (gone.outcome, gone.attribution) == ("fail", "engine")
    assert "Bang: memory" in words(gone)
    alive = failures.failed(
        TimedOut(as_reason("late")), context(journal=dead(tmp_path, "Bang: x\n", alive=True))
    )
    assert (alive.outcome, alive.attribution, words(alive)) == ("inconclusive", "environment", "late")
    hangs = failures.failed(
        TimedOut(as_reason("late")), context(journal=dead(tmp_path, TRACEBACK, alive=True))
    )
    assert (hangs.outcome, hangs.attribution) == ("fail", "engine")
    assert words(hangs) == "late; its log: ValueError: shapes (3,4) and (5,) do not fit"


def test_an_engine_that_answers_nothing_is_not_asked_for_ever() -> None:
    """A thread that generates had died: /health went on answering, and 50 probes waited two minutes each."""

    over = threading.Event()

    class Hangs(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            over.wait(PATIENCE)

    hung = ThreadingHTTPServer(("127.0.0.1", 0), Hangs)
    with listening(hung):
        client = Client(f"http://127.0.0.1:{hung.server_port}", time_limit=0.2)
        later = [one for one in PROBES if one is not first_answer]
        rows = probe(Context(Expectations(), "m", client), later, lambda _: None)
        over.set()
    told = [row.outcome for row in rows if row.outcome.gives(SilenceReason.NO_ANSWERS)]
    assert len(told) > 3
    assert {(one.outcome, one.attribution, one.trials) for one in told} == {
        ("inconclusive", "environment", 0)
    }


@pytest.mark.parametrize("says", ["EngineCore encountered an issue", "Model is not loaded"])
def test_equal_refusals_of_all_chats_are_one_row_in_the_engines_words(
    says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> Any:
        raise RequestRefused(400, says)

    monkeypatch.setattr(Client, "read", refuses)
    monkeypatch.setattr(Client, "chat", refuses)
    monkeypatch.setattr(Client, "get", lambda *_: b'{"data": [{"id": "m"}]}')
    rows = probe(Context(Expectations(tool_parser="hermes"), "m", Client("http://x")), PROBES, silent)
    failed = [row for row in rows if isinstance(row.outcome, Fail)]
    assert [row.probe for row in failed] == [first_answer.name]
    assert says in reason_text(failed[0].outcome)
    assert {row.outcome.follows for row in rows if isinstance(row.outcome, Inconclusive)} == {
        (first_answer.name,)
    }


def test_an_engine_whose_threads_end_in_the_middle_is_one_row() -> None:
    """mlx-lm answered 404 to each request since."""
    served: list[None] = []

    def answer(connection: socket.socket) -> None:
        served.append(None)
        refusal = http(b'{"error": "generation thread died"}', "404 Not Found")
        connection.sendall(http(BODY) if len(served) < 16 else refusal)

    with server(answer) as url:
        bench = Context(Expectations(tool_parser="hermes"), "m", Client(url))
        rows = probe(bench, [one for one in PROBES if not one.alone], silent)
    died = [row for row in rows if row.outcome.gives(AnswerFailure.DIED) and isinstance(row.outcome, Fail)]
    assert len(died) == 1
    assert "generation thread died" in reason_text(died[0].outcome)
    assert died[0].outcome.attribution == "engine"
    refused = [
        row.probe for row in rows if isinstance(row.outcome, Fail) and "died" in reason_text(row.outcome)
    ]
    assert refused == [died[0].probe]
    later = [row for row in rows if row.outcome.follows == (died[0].probe,)]
    assert len(later) > 3


@pytest.mark.parametrize(
    "error", [RequestRefused(500, "oops"), ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says="oops"))]
)
def test_a_server_error_is_told_with_the_logs_last_exception(
    tmp_path: Path, error: RequestRefused | ReplyError
) -> None:
    told = failures.failed(error, context(journal=dead(tmp_path, TRACEBACK, alive=True)))
    assert told.attribution == "engine"
    assert words(told).endswith("its log: ValueError: shapes (3,4) and (5,) do not fit")
    quiet = failures.failed(RequestRefused(400, "no"), context(journal=dead(tmp_path, TRACEBACK, alive=True)))
    assert (quiet.attribution, "log" in words(quiet)) == ("configuration", False)


ALTERNATING = (
    "{%- for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<s>{{ m.content }}{% endfor %}"
)


@pytest.mark.parametrize("status", [400, 500])
def test_a_refusal_by_the_template_is_told_in_its_words(tmp_path: Path, status: int) -> None:
    """Whichever status the engine makes of it."""
    with rendering(repository(tmp_path, ALTERNATING), {}) as render:
        ctx = context(render, log=[Exchange("POST", "/x", {"messages": list(TWO_USERS.messages)})])
        told = failures.failed(RequestRefused(status, "Bad Request"), ctx)
        assert (told.attribution, "roles must alternate" in words(told)) == ("configuration", True)
        assert remedy(told)
        with pytest.raises(TemplateRefusedError, match="roles must alternate"):
            render(TWO_USERS)
        fine = context(render, log=[Exchange("POST", "/x", {"messages": list(GREETING.messages)})])
        assert words(failures.failed(RequestRefused(400, "no"), fine)) == "the engine answered 400: no"


def instead(options: list[str], known: Proof) -> str:
    change = proof_check.instead({"options": options}, known)
    return "" if change is None else render(change)


def test_another_parser_is_told_where_the_documents_does_not_read() -> None:
    known = proof("hermes", refuted="deepseek")
    assert "Set tool_parser:hermes" in instead(["tool_parser:deepseek"], known)
    assert proof_check.instead({"options": ["tool_parser:hermes"]}, known) is None
    assert proof_check.instead({}, known) is None
    assert proof_check.instead({"options": ["tool_parser:deepseek"]}, proof()) is None


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
    assert proof_check.runs_on(context()) == token


def proof(*reads: str, refuted: str = "deepseek", engine: str = "vllm", **more: object) -> Proof:
    verdicts = [ParserVerdict(n, n.title(), ("one-call",), {}, ("one-call",)) for n in reads]
    verdicts.append(
        ParserVerdict(refuted, refuted.title(), (), {"one-call": as_reason("read no call")}, ("one-call",))
    )
    fields = {
        "engine": engine,
        "version": "1.0",
        "template": "t",
        "verdicts": {"tool_parser": tuple(verdicts)},
    }
    return Proof(**{**fields, "written": {}, **more})  # type: ignore[arg-type]


LOST = Fail(as_reason("the model wrote a call and it arrived as content"), Stage.PARSED, OTHER_TOOL_PARSER)


@pytest.mark.parametrize(
    ("named", "asked", "mend"),
    [
        ("deepseek", proof("hermes"), ("Set tool_parser:hermes in options: it reads what the template "
         "writes; deepseek does not (one-call: read no call).")),
        ("gone", proof("hermes"), "Set tool_parser:hermes in options: it reads what the template writes."),
        ("hermes", proof("hermes"), ""),  # the model does not do it, and no setting would mend that
        ("x", proof(), ("No tool parser of vllm 1.0 reads what the template writes: use another template, "
         "or no tool parser.")),
        ("json_tools", proof("json_tools", engine="mlx", inferred={"tool_parser": None}),
         'Set "tool_parser_type": "json_tools" in tokenizer_config.json; mlx 1.0 infers none.'),
        ("json_tools", proof("glm47", "json_tools", engine="mlx", inferred={"tool_parser": None}),
         'Set "tool_parser_type": "json_tools" in tokenizer_config.json; mlx 1.0 infers none.'),
        ("x", proof("hermes", verdicts={}), render(OTHER_TOOL_PARSER)),
        ("x", proof("hermes", verdicts={}, unasked={"tool_parser": NO_CALLS}),
         "Leave tool_parser out of options: the template renders no tool calls."),
        ("x", None, render(OTHER_TOOL_PARSER)),
    ],
)  # fmt: skip
def test_the_parser_that_would_mend_it_is_the_proofs(named: str, asked: Proof | None, mend: str) -> None:
    ctx = Context(Expectations(tool_parser=named), "m", Client("http://127.0.0.1:1"), proof=asked)
    assert remedy(cause.by_proof(LOST, ctx)) == mend


@pytest.mark.parametrize(
    ("mend", "broken", "blamed"),
    [
        (OTHER_REASONING_PARSER, (Stage.DRAWN, Stage.STREAM), "model"),  # the proved parser reads it whole
        (None, (Stage.DRAWN, Stage.STREAM), "engine"),
        (None, (Stage.DRAWN, Stage.PARSED), "model"),
    ],
)
def test_a_probe_of_the_contract_blames_no_parser_that_the_proof_names(
    mend: Reason | None, broken: tuple[Stage, ...], blamed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = differs("content", "", "Hello!", Stage.WHOLE if mend is None else Stage.PARSED, mend)
    facts = [Fact(stage, "broken", GREETING.name, note("")) for stage in broken]
    monkeypatch.setattr(cause, "trace", lambda *_: Trace(tuple(facts)))
    one = Probe("contract", ".", always, lambda ctx: ctx.noted(GREETING, lambda _: failure, failure))
    assert cause.of(one, context()).attribution == blamed


def test_a_failed_probe_keeps_what_the_log_said_meanwhile(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("WARNING: before\n")

    def complain(_ctx: Context) -> Outcome:
        with log.open("a") as more:
            more.write(TRACEBACK)
        raise RequestRefused(500, "oops")

    with server(say(http(BODY))) as url:
        bench = Context(Expectations(), "m", Client(url), journal=Journal(log, lambda: True))
        rows = probe(bench, [Probe("loud", ".", always, complain)], silent)
    assert words(rows[0].outcome).endswith("ValueError: shapes (3,4) and (5,) do not fit")
    assert "Traceback" in rows[0].log
    assert "before" not in rows[0].log


def promising(promise: Expectations) -> Context:
    return Context(promise, "m", Client("http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("got multiple values for keyword argument 'add_generation_prompt'", "add_generation_prompt"),
        ("top_p must be in (0, 1], got 0.0.", "top_p"),
        ("repetition_penalty must be greater than zero", "repeat_penalty"),
        ("the model does not exist", ""),
        ("a conversation about temperature is not for us", ""),
    ],
)
def test_a_refusal_that_names_a_setting_of_the_document(said: str, mend: str) -> None:
    promise = promise_of(
        {
            "parameters": {"top_p": 0.0, "temperature": 1.0, "repeat_penalty": -1.0},
            "chat_template_kwargs": {"add_generation_prompt": False},
        }
    )
    told = failures.failed(RequestRefused(400, said), promising(promise))
    assert told.attribution == "configuration"
    assert mend in remedy(told) if mend else not remedy(told)


def test_settings_that_change_the_numbers() -> None:
    plain = {"load_format": "mistral", "quantization": None, "engine_args": {"dtype": "auto"}}
    assert promise_of(plain).altering == {}
    assert promise_of({"engine_args": {"kv_bits": 2}}).altering == {"engine_args.kv_bits": 2}


def test_what_is_held_to_a_form_begins_behind_a_thought(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Fail(as_reason("get_time was named, and none came: ''"), Stage.WHOLE)
    thinker = promising(Expectations(reasoning_parser="qwen3"))
    thought = "<think>\nHm.\n</think>\n\nHello!"
    monkeypatch.setattr(Context, "raw", lambda _, asked, **__: thought if asked is SUM else '{"name": "Ada"}')
    told = tool_markup.unended(empty, GREETING, thinker)
    assert (told.outcome, told.attribution) == ("inconclusive", "model")
    assert tool_markup.unended(empty, GREETING, promising(Expectations())) == empty
    for written in (thought, "analysis: hm. final: Hello!"):
        monkeypatch.setattr(Context, "raw", lambda *_, written=written, **__: written)
        assert tool_markup.unended(empty, GREETING, thinker) == empty
