"""The command line at a terminal, with odd streams and in odd surroundings: processes of their own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import BASE, Desk, receipt
from tests.terminal import take_terminal
from tests.waiting import PATIENCE, FreeTime

COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7])m")
QUESTION = "Accept these decisions and write the document? [y/N] "


def at_terminal(desk: Desk, *words: str, answer: str, **env: str) -> tuple[int, str]:
    """Run at a pseudo-terminal; type ``answer`` at the question. Exit code and all that was shown.

    A Ctrl-C is typed again each second: one that falls between the prompt and the read of the
    answer only marks the signal, as it would for a person who types at that very moment.
    """
    mine, its = pty.openpty()
    surroundings = {"TERM": "xterm-256color", "COLUMNS": "150", **env}
    streams: dict[str, Any] = {"stdin": its, "stdout": its, "stderr": its, "text": False}
    with desk.start(*words, **streams, env=surroundings, preexec_fn=take_terminal) as process:
        os.close(its)
        shown, typed = b"", float("inf")
        clock = FreeTime()
        while True:
            assert not clock.over, shown.decode()
            if select.select([mine], [], [], 0.1)[0]:
                try:
                    shown += os.read(mine, 65536)
                except OSError:  # the other side is closed
                    break
            if QUESTION.encode() in shown and typed == float("inf"):
                typed = 0.0
            if typed <= time.monotonic():
                os.write(mine, answer.encode())
                typed = time.monotonic() + 1 if answer == "\x03" else float("inf")
        code = process.wait(PATIENCE)  # before the terminal goes: its end is a SIGHUP
        os.close(mine)
        return code, shown.decode()


@pytest.mark.slow
def test_accepted_at_the_terminal(desk: Desk) -> None:
    desk.hub.latency = 0.8  # two round trips: long enough for the spinner
    code, shown = at_terminal(desk, "acme/base", answer="y\n", NO_COLOR="1")
    assert code == 0, shown
    assert "parameters.temperature" in shown
    assert "acme/base: resolving" in shown
    assert not COLOUR.search(shown)
    receipt = json.loads((desk.folder / "models" / "base.receipt.json").read_text())
    assert receipt["review"]["state"] == "approved"
    assert receipt["review"]["by"]
    assert "--yes" not in receipt["review"]["by"]


@pytest.mark.slow
def test_stopped_at_the_terminal(desk: Desk) -> None:
    code, shown = at_terminal(desk, "acme/base", answer="\n")
    assert code == 0, shown
    assert "Stopped: nothing was written." in shown
    assert desk.files() == {}


@pytest.mark.slow
def test_ctrl_c_at_the_question(desk: Desk) -> None:
    code, shown = at_terminal(desk, "acme/base", answer="\x03")
    assert code == 130, shown
    assert "Traceback" not in shown
    assert desk.files() == {}


@pytest.mark.nightly
@pytest.mark.slow
def test_json_asks_nothing_at_the_terminal(desk: Desk) -> None:
    code, shown = at_terminal(desk, "acme/base", "--json", answer="")
    assert code == 0
    assert QUESTION not in shown
    assert (
        json.loads((desk.folder / "models" / "base.receipt.json").read_text())["review"]["state"] == "pending"
    )


def closed(*numbers: int) -> dict[str, Any]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return {"preexec_fn": close}


@pytest.mark.slow
def test_closed_streams(desk: Desk) -> None:
    desk.directory("toy", BASE)
    lost = desk.alone("./toy", "--json", stdout=subprocess.DEVNULL, **closed(1))
    assert (lost.code, "The output could not be written" in lost.err) == (5, True)
    quiet = desk.alone("./toy", "--json", stdin=None, stderr=subprocess.DEVNULL, **closed(0, 2))
    assert (quiet.code, quiet.line["name"]) == (0, "toy")


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(desk: Desk) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = desk.alone("info", "match", "a/b", stdout=writing)
    os.close(writing)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_reader_that_leaves_costs_no_document(desk: Desk) -> None:
    """Each import writes its document and every answer of a list is given, though nobody reads any."""
    for words in (("import", "acme/base"), ("acme/base", "--json", "--name", "second")):
        reading, writing = os.pipe()
        os.close(reading)
        ran = desk.alone(*words, stdout=writing)
        os.close(writing)
        assert (ran.code, "Wrote" in ran.err) == (0, True), ran.err
    Path("list").write_text("acme/base\nother/base\n")
    reading, writing = os.pipe()
    os.close(reading)
    assert desk.alone("--from", "list", "--dir", "many", stdout=writing).code == 0
    os.close(writing)
    assert {p.name for p in Path("many").glob("*.yaml")} == {"base.yaml", "other--base.yaml"}
    assert {p.name for p in Path("models").glob("*.yaml")} == {"base.yaml", "second.yaml"}


@pytest.mark.slow
def test_words_that_stdout_cannot_say(desk: Desk) -> None:
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    assert desk.alone("名/\udcff", "--json", env=env).line["reference"] == "名/\udcff"


@pytest.mark.slow
def test_without_a_home(desk: Desk) -> None:
    desk.directory("toy", BASE)
    for name in ("IMPORTER_HOME", "HF_HOME", "HOME", "XDG_DATA_HOME"):
        desk.monkeypatch.delenv(name, raising=False)
    ran = desk.alone("./toy", "--json", env={"HOME": "/nonexistent"})
    assert (ran.code, ran.line["name"]) == (0, "toy"), ran.err


def test_a_home_that_cannot_be_written(desk: Desk) -> None:
    Path("blocked").write_text("a file")
    desk.monkeypatch.setenv("IMPORTER_HOME", str(desk.folder / "blocked"))
    assert desk("acme/base", "--json").line["name"] == "base"
    assert desk("engine", "install", "mlx").code == 5


@pytest.mark.nightly
@pytest.mark.slow
def test_a_list_has_a_bar_at_the_terminal_alone(desk: Desk) -> None:
    desk.hub.latency = 1.0
    Path("list").write_text("acme/base\nother/base\nacme/chat\n" * 8)
    code, shown = at_terminal(desk, "--from", "list", "--dry-run", answer="", NO_COLOR="1")
    assert code == 0, shown
    assert re.search(r"import: \d+ of 24 .*\d+ %", shown), shown[-3000:]
    quiet = desk.alone("--from", "list", "--dry-run")
    assert (len(quiet.out.splitlines()), "%" in quiet.err, "\x1b" in quiet.err) == (24, False, False)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, "80"], ids=["pipe", "80"])
def test_nothing_is_cut_off(desk: Desk, columns: str | None) -> None:
    """In a pipe and at a terminal every figure is there, whole; a line that is left out is counted."""
    words = ("acme/base", "--device", "8xh100", "--goal", "throughput", "--backend", "vllm", "--yes")

    def shown(*words: str) -> str:
        if columns is None:
            return desk(*words).out
        return at_terminal(desk, *words, answer="", NO_COLOR="1", COLUMNS=columns)[1]

    text = shown(*words, "--no-validate")
    for key, decision in receipt(desk)["decisions"].items():
        if key.startswith("parameters.") and decision["value"] is not None:
            assert re.search(
                rf"^{re.escape(key)} +{re.escape(str(decision['value']))} ", text, re.MULTILINE
            ), key
    assert "at best " in text
    for more in (("list",), ("show", "base"), ("why", "base", "--all"))[columns is not None :]:
        text += shown(*more)
    assert "…" not in re.sub(r"… and \d+ more", "", text)
