"""Far ends that behave as none should: each is one sentence of one kind, in time, and leaves no process."""

from __future__ import annotations

import base64
import json
import os
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.app.remote import report_of
from importer.document.store import load
from importer.errors import RemoteError
from importer.transport import exchange as module
from importer.transport.bundle import MARK, Bundle, Frame, Result
from importer.transport.command import parse_command
from importer.transport.exchange import exchange
from importer.version import __version__
from tests.any_json import altered
from tests.tiers import one_of_each
from tests.waiting import PATIENCE, FreeTime, gone

DIGEST = f"sha256:{'a' * 64}"
BUNDLE = Bundle("x", DIGEST, "mlx", "name: x\n", None, None)
LARGE = Bundle("x", DIGEST, "mlx", base64.b64encode(os.urandom(1 << 20)).decode(), None, None)
WAIT, SLACK = 1.0, 4.0  # seconds that a far end may be silent here, and with a free processor beyond it
HELLO = Frame("hello", __version__).line()


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def result(**changes: object) -> bytes:
    fields: dict[str, object] = {"digest": DIGEST, "machine": {"host": "h"}, "report": {"passed": True}}
    return answer(packed(json.dumps(fields | changes).encode()))


def answer(text: str) -> bytes:
    return HELLO + Frame("result", text).line()


# What a far end does in Python, the bytes that it writes first, and the kind.
Shape = tuple[str, Callable[[], bytes], str]
READS, SLEEPS = "sys.stdin.readline()", "time.sleep(600)"


def nothing() -> bytes:
    return b""


def says(data: bytes) -> Callable[[], bytes]:
    return lambda: data


ENDS: Mapping[str, Shape] = {
    "ends-at-once": ("", nothing, "no-result"),
    "ends-with-a-status": ("err(b'no such host'); sys.exit(255)", nothing, "no-result"),
    "ends-by-a-signal": ("os.kill(os.getpid(), 9)", nothing, "no-result"),
    "ends-with-words": (READS, says(b"Welcome\nno importer\n"), "no-result"),
    "ends-with-words-of-no-text": ("err(b'\\xff\\0\\x1b[31m')", says(b"\xff\xfe\x1b[2J"), "no-result"),
    "ends-with-many-lines": ("err(b'x\\n' * 1000000); sys.exit(1)", nothing, "no-result"),
    "ends-behind-the-hello": (READS, says(HELLO), "no-result"),
    "ends-in-the-middle-of-the-task": ("os.read(0, 10)", says(HELLO), "no-result"),
    "ends-behind-a-step": (READS, says(HELLO + Frame("step", "\x1b[31m1 of 2").line()), "no-result"),
    "ends-in-the-middle-of-a-result": (READS, lambda: result()[:-9], "bad-result"),
    "closes-its-output": (f"os.close(1); {SLEEPS}", says(HELLO), "no-result"),
    "leaves-its-output-to-a-child": ("os.fork() or time.sleep(600)", says(HELLO), "no-result"),
    "writes-utf-16": (READS, lambda: result().decode().encode("utf-16"), "no-result"),
    "writes-nul": (READS, lambda: result().replace(b"\n", b"\0"), "no-result"),
}
LATE: Mapping[str, Shape] = {
    "never-begins": (SLEEPS, nothing, "too-late"),
    "never-reads": (SLEEPS, says(HELLO), "too-late"),
    "is-silent-behind-the-hello": (f"{READS}; {SLEEPS}", says(HELLO), "too-late"),
    "drips-before-the-hello": ("while 1: out(b'x'); time.sleep(0.05)", nothing, "too-late"),
    "drips-behind-the-hello": ("while 1: out(b'x\\n'); time.sleep(0.05)", says(HELLO), "too-late"),
    "echoes": (f"out(sys.stdin.buffer.readline()); {SLEEPS}", says(HELLO), "too-late"),
    "stops": ("os.kill(os.getpid(), 19)", says(HELLO), "too-late"),
    "steps-for-ever": (
        f"while 1: out(b'{MARK} step x\\n'); time.sleep(0.05)", says(HELLO), "too-late",
    ),
    "stays": (f"[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; {SLEEPS}", says(HELLO), "too-late"),
}  # fmt: skip
NONE: Mapping[str, Shape] = {
    "floods": ("while 1: out((b'y' * 99 + b'\\n') * 999)", nothing, "bad-result"),
    "floods-without-a-line": ("while 1: out(b'y' * 100000)", nothing, "bad-result"),
    "floods-behind-the-hello": ("while 1: out((b'y' * 99 + b'\\n') * 999)", says(HELLO), "bad-result"),
    "floods-with-steps": (f"while 1: out(b'{MARK} step x\\n' * 10000)", says(HELLO), "bad-result"),
    "result-without-a-hello": (READS, lambda: result()[len(HELLO) :], "bad-result"),
    "result-empty": (READS, lambda: answer(""), "bad-result"),
    "result-in-words": (READS, lambda: answer("passed"), "bad-result"),
    "result-not-packed": (READS, lambda: answer(base64.b64encode(b'{"a": 1}').decode()), "bad-result"),
    "result-cut": (READS, lambda: answer(packed(os.urandom(999))[:-400]), "bad-result"),
    "result-that-grows": (READS, lambda: answer(packed(b" " * 100_000_000)), "bad-result"),
    "result-deep": (READS, lambda: answer(packed(b"[" * 100_000 + b"]" * 100_000)), "bad-result"),
    "result-of-many": (READS, lambda: answer(packed(b"[" + b"1," * 2_000_000 + b"1]")), "bad-result"),
    "result-number": (READS, lambda: answer(packed(b"9" * 100_000)), "bad-result"),
    "result-null": (READS, lambda: answer(packed(b"null")), "bad-result"),
    "result-with-more": (READS, lambda: result(more=1), "bad-result"),
    "result-of-nothing": (READS, lambda: result(report=None), "bad-result"),
    "result-of-both": (READS, lambda: result(error={"message": "x"}), "bad-result"),
    "result-of-a-list": (READS, lambda: result(report=[1]), "bad-result"),
    "result-of-no-machine": (READS, lambda: result(machine=None), "bad-result"),
    "result-of-a-number": (READS, lambda: result(digest=7), "bad-result"),
    "result-of-half-a-letter": (READS, lambda: result(machine={"host": "\ud800"}), "bad-result"),
    "result-not-a-number": (READS, lambda: result(report={"seconds": {"start": float("nan")}}), "bad-result"),
    "result-beyond-numbers": (
        READS,
        lambda: answer(packed(b'{"digest": "", "machine": {}, "report": {"a": 1e999}}')),
        "bad-result",
    ),
    "result-of-an-odd-error": (READS, lambda: result(report=None, error={"message": ["x"]}), "bad-result"),
    "other-data": (READS, lambda: result(digest=f"sha256:{'b' * 64}"), "other-digest"),
    "other-data-in-escapes": (READS, lambda: result(digest="\x1b[2J\n"), "other-digest"),
    "other-version": (READS, lambda: Frame("hello", "9.9").line() + result()[len(HELLO) :], "other-version"),
    "no-version": (READS, says(Frame("hello", "").line()), "other-version"),
    "version-in-escapes": (READS, says(Frame("hello", "\x1b]0;x\a" * 9999).line()), "other-version"),
}
SOUND: Mapping[str, Shape] = {
    "plain": (READS, result, ""),
    "behind-a-login": (READS, lambda: b"\x1b[1mWelcome\x1b[0m\n\nLast login: ...\n$ " + result(), ""),
    "with-carriage-returns": (READS, lambda: result().replace(b"\n", b"\r\n"), ""),
    "beside-a-loud-log": ("err(b'x' * 3000000)", result, ""),
    "with-a-failing-exit": ("sys.exit(3)", result, ""),
    "without-an-exit": (f"{READS}; {SLEEPS}", result, ""),
    "with-a-flood-behind-it": (f"{READS}\nwhile 1: out(b'y' * 100000)", result, ""),
    "twice": (READS, lambda: result() + result(report={"passed": False}), ""),
    "without-reading": ("", result, ""),
}
SHAPES = {**ENDS, **LATE, **NONE, **SOUND}
PLAYER = """import os, signal, sys, time
def out(data): sys.stdout.buffer.write(data); sys.stdout.buffer.flush()
def err(data): sys.stderr.buffer.write(data); sys.stderr.buffer.flush()
open({pid!r}, "w").write(str(os.getpid()))
out(open({data!r}, "rb").read())
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("LAGS", "LEAVE", "YIELD"):
        monkeypatch.setattr(module, name, 0.5)
    before = {*psutil.Process().children()}  # of other tests
    yield
    assert {*psutil.Process().children()} <= before  # not even one that nobody collects


def played(folder: Path, does: str, data: bytes) -> str:
    """The text of ``--on`` for a far end."""
    (folder / "data").write_bytes(data)
    code = PLAYER.format(pid=str(folder / "pid"), data=str(folder / "data")) + does
    (folder / "far.py").write_text(code)
    return shlex.join([sys.executable, "-S", "-E", str(folder / "far.py")])


@pytest.mark.parametrize("name", one_of_each(SHAPES, lambda name: SHAPES[name][2], "slow"))
def test_each_far_end_has_its_kind(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    does, data, kind = SHAPES[name]
    wait = WAIT if kind == "too-late" else PATIENCE
    monkeypatch.setattr(module, "SILENT_SECONDS", wait)
    monkeypatch.setattr(module, "WHOLE_SECONDS", 0.5 if name == "steps-for-ever" else PATIENCE)
    command, clock, steps = parse_command(played(tmp_path, does, data())), FreeTime(), list[str]()
    bundle = LARGE if name == "never-reads" else BUNDLE
    if kind:
        with pytest.raises(RemoteError) as told:
            exchange(command, bundle, steps.append, start_seconds=2 * wait)
        error = told.value
        assert (error.kind, error.exit_code) == (kind, 8), error
        assert str(error).isprintable()
        assert len(str(error)) < 600
    else:
        found = exchange(command, bundle, steps.append, start_seconds=2 * wait)
        assert found.report == {"passed": True}
    assert clock.seconds < 2 * WAIT + SLACK
    assert all(step.isprintable() for step in steps)
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_error_of_the_far_end_is_told_with_its_own_words(tmp_path: Path) -> None:
    error = {"kind": "engine-missing", "message": "The engine mlx is not installed.", "exit_code": 6}
    with pytest.raises(RemoteError) as told:
        reported(tmp_path, report=None, error=error)
    assert (told.value.kind, told.value.details["cause"]) == ("far-end", "engine-missing")
    assert "The engine mlx is not installed." in str(told.value)


def reported(folder: Path, **fields: object) -> Any:
    """The report of a far end that has the document."""
    (folder / "x.yaml").write_text("name: x\nbackend: mlx\nparameters:\n  model: acme/x\n")
    stored = load(folder / "x.yaml")
    text = played(folder, READS, result(digest=stored.digest, **fields))
    return report_of(stored, parse_command(text), "mlx", lambda _: None)


GOOD = {"engine": {"name": "mlx"}, "passed": True, "outcomes": [], "seconds": {"start": 1.0}}
REPORTS: Mapping[str, tuple[Any, str]] = {
    "good": (GOOD, ""),
    "outcome": ({**GOOD, "outcomes": [{"a": 1}]}, "bad-result"),
    "seconds": ({**GOOD, "seconds": {"start": "x"}}, "bad-result"),
    "fit": ({**GOOD, "fit": {"weights": 1}}, "bad-result"),
    "digest": ({**GOOD, "digest": "another"}, "other-digest"),
    "unknown": ({**GOOD, "notes": "x"}, "bad-result"),
}
MACHINES: Mapping[str, Any] = {
    "large": {"host": "h" * 1_000_000}, "unknown": {"host": "h", "notes": "x"}, "nested": {"host": {"a": 1}},
    "many": {"cards": ["x"] * 1000}, "device": {"device": {"name": "x" * 1000}},
}  # fmt: skip


@pytest.mark.parametrize("name", one_of_each(REPORTS, lambda name: REPORTS[name][1], "slow"))
def test_a_report_that_no_receipt_could_hold_is_refused(tmp_path: Path, name: str) -> None:
    report, kind = REPORTS[name]
    if kind:
        with pytest.raises(RemoteError) as told:
            reported(tmp_path, report=report)
        assert (told.value.kind, str(told.value).isprintable()) == (kind, True)
    else:
        assert reported(tmp_path, report=report)["remote"]["host"] == "h"


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_that_importer_would_not_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RemoteError) as told:
        reported(tmp_path, report=GOOD, machine=MACHINES[name])
    assert (told.value.kind, told.value.exit_code) == ("bad-result", 8)


def test_a_far_end_does_not_name_the_command(tmp_path: Path) -> None:
    remote = reported(tmp_path, report=GOOD, machine={"host": "h", "where": "ssh:another"})["remote"]
    assert remote["where"] == parse_command(played(tmp_path, READS, b"")).where


@given(altered({"digest": DIGEST, "machine": {"host": "h"}, "report": {"a": [1, {"b": None}]}}))
def test_any_json_is_a_result_or_none(data: Any) -> None:
    try:
        found = Result.unpack(packed(json.dumps(data).encode()))
    except ValueError:
        return
    assert isinstance(found.error if found.report is None else found.report, dict)  # an empty one, too


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=5))
def test_a_result_comes_back_as_it_went(report: dict[str, object]) -> None:
    sent = Result(DIGEST, {"host": "h"}, report)
    frame = Frame.read(Frame("result", sent.pack()).line().strip(b"\n"))
    assert frame is not None
    assert Result.unpack(frame.text) == sent


def test_a_task_holds_no_secret_and_is_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "very-secret")
    (tmp_path / "x.yaml").write_text("name: x\nbackend: mlx\nparameters:\n  model: acme/x\n")
    stored = load(tmp_path / "x.yaml")
    bundle = Bundle.of(stored, "mlx", probes=["health"])
    assert "very-secret" not in repr(bundle)
    assert Bundle.unpack(bundle.pack().encode()) == bundle
    (tmp_path / "there").mkdir()
    assert bundle.write(tmp_path / "there").digest == stored.digest
    seen = tmp_path / "seen"
    text = played(tmp_path, f"open({str(seen)!r}, 'w').write(str(dict(os.environ)))", result())
    exchange(parse_command(text), BUNDLE, lambda _: None)
    assert "very-secret" not in seen.read_text()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"bnVsbA==", packed(b"[]").encode(), packed(b'{"x": 1}').encode(), b"\xff"]
)
def test_a_task_that_is_none_is_told(data: bytes) -> None:
    with pytest.raises(RemoteError) as told:
        Bundle.unpack(data)
    assert told.value.kind == "bad-bundle"


def test_a_model_in_a_folder_beside_the_document_is_not_sent(tmp_path: Path) -> None:
    """It would be another folder at the far end."""
    (tmp_path / "x.yaml").write_text("name: x\nbackend: mlx\nparameters:\n  model: ./weights\n")
    with pytest.raises(RemoteError) as told:
        Bundle.of(load(tmp_path / "x.yaml"), "mlx")
    assert told.value.kind == "folder-beside"
