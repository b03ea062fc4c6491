"""What no engine is to blame for: the system's words in a log, and the signal that ended it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from importer.engines import ENGINES, get, lacking, logs
from importer.engines.deaths import ENVIRONMENT, Death, Died
from importer.engines.lacking import ENVIRONMENT_ERRORS, Lacking
from importer.reasons import Reason
from importer.sentences import placeholders, render
from importer.validation import failures
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import AnswerFailure, RequestRefused, ServerUnreachable
from importer.validation.evidence_sources import Journal
from importer.validation.expectations import Expectations
from importer.validation.explain import explained
from importer.validation.outcome import Fail, Outcome, Pass, ProbeRow, Stage
from importer.validation.remedy import Remedy
from tests.facts import as_reason

SAID = [
    ("OSError: [Errno 28] No space left on device: '/tmp/x'", "no space left"),
    ("OSError: [Errno 122] Disk quota exceeded", "no space left"),
    ("OSError: [Errno 24] Too many open files: '/dev/shm/x'", "ulimit -n"),
    ("ValueError: not allowed to raise maximum limit", "ulimit -n"),
    ("OSError: [Errno 30] Read-only file system: '/root/.cache'", "nothing can be written"),
    ("PermissionError: [Errno 13] Permission denied: '/model/config.json'", "/model/config.json"),
    ("ImportError: libtbb.so.12: cannot open shared object file: No such file",
     "lacks the library libtbb.so.12"),
    ("ImportError: /lib/libm.so.6: version `GLIBC_2.38' not found (required by x.so)", "GLIBC_2.38"),
    ("ImportError: cannot import name 'A' from 'b.c' (/venv/b/c.py)", "cannot import name 'A' from 'b.c'"),
    ("ImportError: cannot import name 'Empty' from 'queue' (/home/me/notes/queue.py)",
     "/home/me/notes/queue.py stands in the way of Python's own module queue"),
    ("cannot import name 'Q' from partially initialized module 'queue' (most likely …) (/me/queue.py)",
     "/me/queue.py stands in the way"),
    ("ImportError: cannot import name 'A' from 'queue' (/usr/lib/python3.11/queue.py)",
     "cannot import name 'A'"),
    ("AttributeError: module 'queue' has no attribute 'LifoQueue'", "a file queue.py on PYTHONPATH hides"),
    ("ImportError: /venv/x.so: undefined symbol: _ZN3c105", "do not fit one another"),
    ("RuntimeError: can't start new thread", "not enough memory"),
    ("ImportError: x.so: failed to map segment from shared object", "not enough memory"),
    ("UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3", "C.UTF-8"),
]  # fmt: skip


def test_advice_on_what_might_happen_did_not_happen() -> None:
    advice = "WARNING: this may lead to `OSError: [Errno 24] Too many open files`. Consider ulimit -n"
    assert lacking.in_text(advice) is None
    assert lacking.in_text(f"{advice}\nOSError: [Errno 24] Too many open files: '/x'") is not None


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_is_no_engines_fault(tmp_path: Path, engine: str) -> None:
    log = tmp_path / "log"
    for words, _ in SAID:
        log.write_text(f"loading\nTraceback (most recent call last):\n  at x\n{words}\n")
        assert logs.explain(log, get(engine).deaths).attribution == ENVIRONMENT, words


@pytest.mark.parametrize(("words", "says"), SAID)
def test_it_is_said_in_a_sentence(tmp_path: Path, words: str, says: str) -> None:
    (tmp_path / "log").write_text(words)
    assert says in render(logs.explain(tmp_path / "log", ()).reason)


def test_a_signal_tells_where_the_log_does_not(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    kinds = {code: logs.explain(tmp_path / "log", (), code).reason.kind for code in (132, 137, 1, 139)}
    assert kinds == {132: Lacking.PROCESSOR, 137: Lacking.KILLED, 1: Died.SILENT, 139: Died.SILENT}


@pytest.mark.parametrize("deaths", [*(get(name).deaths for name in ENGINES), ENVIRONMENT_ERRORS])
def test_each_pattern_finds_the_fields_of_its_sentence(deaths: tuple[Death, ...]) -> None:
    for death in deaths:
        assert {*placeholders(death.kind.text)} == set(re.compile(death.pattern).groupindex)


def test_an_answer_that_never_came_is_blamed_on_what_the_log_tells(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Traceback (most recent call last):\nRuntimeError: can't start new thread\n")
    ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"), journal=Journal(log, lambda: True))
    closed = Reason(AnswerFailure.UNREACHABLE, problem="closed")
    for error in (ServerUnreachable(closed), RequestRefused(500, "oops")):
        told = failures.failed(error, ctx)
        assert isinstance(told, Fail)
        assert told.attribution == "environment"
        assert told.remedy == Reason(Remedy.PROVIDE, lacking=Reason(Lacking.MEMORY))
    assert failures.failed(RequestRefused(400, "no"), ctx).attribution == "configuration"
    aloud = failures.failed(RequestRefused(500, "can't start new thread"), replace(ctx, journal=None))
    assert aloud.attribution == "environment"
    log.write_text("loaded, although a user asked for: [Errno 28]\n")
    assert failures.failed(RequestRefused(500, "oops"), ctx).attribution == "engine"


def row(name: str, outcome: Outcome) -> ProbeRow:
    return ProbeRow(name, "lesson", outcome)


def test_what_the_log_tells_one_probe_explains_the_others_silence() -> None:
    memory = Reason(Lacking.MEMORY)
    closed = Reason(AnswerFailure.UNREACHABLE, problem="closed")
    provide = Reason(Remedy.PROVIDE, lacking=memory)
    lacks = Reason(AnswerFailure.LOG_LACKS, lacking=memory)
    cause = Fail(closed, Stage.MACHINE, provide, notes=(lacks,))
    silent, wrong = Fail(closed, Stage.WHOLE), Fail(as_reason("the arguments are not JSON"), Stage.WHOLE)
    rows = [row("a", cause), row("b", silent), row("c", wrong), row("d", Pass(as_reason("fine")))]
    told = [r.outcome.attribution for r in explained(rows)]
    assert told == ["environment", "environment", "engine", None]
    alone = explained([row("a", replace(cause, notes=())), row("b", silent)])
    assert [r.outcome.attribution for r in alone] == ["environment", "engine"]
