"""Every kind of error, provoked through the command line."""

from __future__ import annotations

import ast
import functools
import json
import re
import resource
import signal
from pathlib import Path

import pytest

from importer.cli import messages
from importer.errors import BRANCHES, KINDS, ImporterError
from tests.commandline import BASE, REPO, Desk, Ran
from tests.failing import AFTER_SHOWING, APART, CASES, Words, install_failed, probes_failed, worker_failed
from tests.waiting import PATIENCE, wait_until

# A toy engine is started, or looked for.
STARTING = {
    "engine-died", "engine-slow", "weights-not-local", "would-not-run", "port-taken", "no-port", "no-weights",
}  # fmt: skip


def check(kind: str, ran: Ran) -> None:
    """One sentence, a next step, the branch's exit code, and nothing else."""
    assert ran.code == KINDS[kind].exit_code, ran.err
    sentence, hint = ran.err.splitlines()[-2:]
    assert re.fullmatch(shape(f"importer: {messages.sentence_row(kind)}"), sentence)
    steps = messages.HINTS[kind]
    if isinstance(steps, tuple):  # each that the command takes, in this order
        steps = "".join(f"({shape(step)} ?)?" for step in steps)
        assert re.fullmatch(steps, hint)
        assert hint
    else:
        assert callable(steps) or re.fullmatch(shape(messages.hint_row(kind)), hint)
    assert (sentence + hint).isprintable()


def shape(pattern: str) -> str:
    """A sentence of the table as a regular expression: any words where a detail stands.

    A server's own message may be absent, as the usual folder is, and one of a number has no plural.
    """
    pattern = pattern.replace("{said}", "\0").replace("{dir}", "\0").replace("{tries} tries", "{tries}")
    return re.sub(r"\\\{.*?\\\}", ".+", re.escape(pattern)).replace("\0", ".*")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow if k in STARTING else ()) for k in KINDS if k not in APART],
)
def test_a_failure_is_a_sentence_a_step_and_a_code(desk: Desk, kind: str) -> None:
    words = CASES[kind](desk)
    before = desk.files()
    plain = desk(*words)
    check(kind, plain)
    assert plain.out == "" or kind in AFTER_SHOWING
    assert desk.files() == before

    machine = desk(*words, "--json")
    check(kind, machine)
    told = machine.line
    named = ("validate", "show", "review", "export", "report", "fit", "why")
    subject = 1 if words[0] in named else 0
    assert told["reference"] == (None if words[0] in ("engine", "recheck") else words[subject])
    assert told["error"]["kind"] == kind
    assert machine.err.splitlines()[-2:] == [f"importer: {told['error']['message']}", told["error"]["hint"]]
    assert desk.files() == before


def test_every_kind_has_a_case_and_no_other() -> None:
    assert set(CASES) | APART == set(KINDS)
    assert not set(CASES) & APART


@pytest.mark.slow
def test_install_failed(desk: Desk) -> None:
    ran = desk(*install_failed(desk))
    check("install-failed", ran)
    log = Path(ran.err.split("The full log is ")[1].strip().removesuffix("."))
    assert "No matching distribution" in log.read_text()
    assert not (log.parent / "venv").exists()


@pytest.mark.slow
def test_worker_failed(desk: Desk) -> None:
    """Deciding needs no engine: a broken one costs the proof, and the reason says so in the same words."""
    ran = desk(*worker_failed(desk), "--json", "--no-validate")
    assert ran.code == 0, ran.err
    decision = ran.line["decisions"]["tool_parser"]
    sentence = messages.sentence_row("worker-failed").split("{name}")[0]
    assert decision["status"] != "proved"
    assert any(sentence in why for why in decision["why"])


@pytest.mark.slow
def test_probes_failed(desk: Desk) -> None:
    """The report is the answer; the exit code tells the rest."""
    ran = desk(*probes_failed(desk), "--json")
    check("probes-failed", ran)
    report = json.loads(ran.out)
    assert (report["passed"], {o["outcome"] for o in report["outcomes"]} & {"fail"}) == (False, {"fail"})
    receipt = json.loads((desk.folder / "models" / "toy.receipt.json").read_text())
    assert receipt["validation"]["passed"] is False


@pytest.mark.slow
@pytest.mark.parametrize("words", [("info", "match", "acme/base"), ("acme/../base", "--json")])
def test_output_closed(desk: Desk, words: Words) -> None:
    with Path("/dev/full").open("w") as full:
        ran = desk.alone(*words, stdout=full)
    kind = "traversal" if "--json" in words else "output-closed"
    check(kind, ran)


@pytest.mark.slow
def test_cannot_write(desk: Desk) -> None:
    desk.directory("toy", BASE)
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (600, 600))
    ran = desk.alone("./toy", "--json", preexec_fn=limit)
    check("cannot-write", ran)
    assert ran.line["error"]["kind"] == "cannot-write"
    assert desk.files() == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGTERM, ("acme/base",)), (signal.SIGINT, ("--from", "list"))]
)
def test_interrupted_while_the_hub_is_slow(desk: Desk, number: signal.Signals, words: Words) -> None:
    desk.hub.latency = 30
    (desk.folder / "list").write_text("acme/base\nother/base\n")
    with desk.start(*words, "--json") as process:
        assert wait_until(lambda: desk.hub.asked)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    ran = Ran(process.returncode, out, err)
    check("interrupted", ran)
    assert ran.line["error"]["kind"] == "interrupted"
    assert desk.files() == {}


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = ast.get_docstring(ast.parse((REPO / "importer" / "errors.py").read_text())) or ""
    for branch in BRANCHES:
        assert issubclass(branch, ImporterError)
        row = next(line for line in drawn.splitlines() if f"─ {branch.__name__} " in line)
        assert row.endswith(f"exit {branch.exit_code}")
