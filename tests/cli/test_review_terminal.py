"""A review at a terminal: what is asked, the person's own editor, and everything that can go wrong in it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.commandline import Desk, document, receipt, state
from tests.terminal import Terminal
from tests.waiting import adopting, gone, wait_until

ASKED = "[a/e/r/q] "
AGAIN = "Edit it again? [Y/n] "

# An editor: each start does the next of its steps; a step is what to replace, or Python on ``path``.
EDITOR = """
import os, pathlib, signal, sys, time
here, path = pathlib.Path(__file__), pathlib.Path(sys.argv[-1])
seen = here.with_name("seen")
seen.mkdir(exist_ok=True)
number = len(list(seen.iterdir()))
assert (path.parent / ".importer" / "document.schema.json").is_file() and path.name == "base.yaml"
(seen / str(number)).write_bytes(path.read_bytes())
step = STEPS[number]
if isinstance(step, str):
    exec(step)
else:
    text = path.read_text()
    for old, new in step.items():
        assert old in text, text
        text = text.replace(old, new)
    path.write_text(text)
"""


def editor(desk: Desk, *steps: dict[str, str] | str) -> dict[str, str]:
    """The environment with an editor that does these steps; its path has a blank, and so has an argument."""
    script = desk.folder / "my editor" / "edit.py"
    script.parent.mkdir()
    script.write_text(f"STEPS = {list(steps)!r}\n{EDITOR}")
    return {"EDITOR": f"{sys.executable} '{script}' --wait 'a b'", "VISUAL": ""}


def seen(desk: Desk, number: int = 0) -> str:
    """What the editor was shown at its start."""
    return (desk.folder / "my editor" / "seen" / str(number)).read_text()


def yaml_of(desk: Desk) -> bytes:
    return (desk.folder / "models" / "base.yaml").read_bytes()


@pytest.fixture(autouse=True)
def nothing_is_left(desk: Desk, tmp_path: Path) -> None:
    """Copies for the editor go into a folder of this test."""
    (tmp_path / "tmp").mkdir()
    desk.monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


def left(desk: Desk) -> list[Path]:
    return list((desk.folder / "tmp").iterdir())


@pytest.mark.slow
def test_edit_until_right_then_accept(desk: Desk) -> None:
    desk("acme/base", "--yes")
    wrong = {"temperature: 0.6": "temperature: 7", "description:": "descripton:"}
    env = editor(desk, wrong, {v: k for k, v in wrong.items()} | {"temperature: 7": "temperature: 0.5"})
    before = yaml_of(desk).decode()
    with Terminal(desk, "review", "base", "-q", **env) as at:
        shown = at.expect(ASKED)
        assert "The same data as approved by" in shown
        assert "review: approved" in shown
        at.type("e\n")
        told = at.expect(AGAIN)
        hot, odd = line_of(before, "temperature"), line_of(before, "description")
        too_hot = f"line {hot}: parameters.temperature: 7 is greater than the maximum of 5"
        assert f"  {too_hot}\n      temperature: 7" in told
        assert f"  line {odd}: descripton: unknown key (did you mean description?)\n" in told
        at.type("\n")
        assert "parameters.temperature: 0.6 → 0.5" in at.expect("review: stale")
        at.expect(ASKED)
        at.type("accept looks fine\n")
        assert at.end() == 0
    assert seen(desk, 0) == before
    comment = "edited in this file; imported: 0.6"
    assert yaml_of(desk).decode() == before.replace(
        "temperature: 0.6  # vendor: generation_config.json", f"temperature: 0.5  # {comment}"
    )
    assert (state(desk)[0], receipt(desk)["review"]["note"]) == ("approved", "looks fine")
    assert left(desk) == []


def line_of(text: str, word: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if word in line and line[:2] != "# ")


@pytest.mark.slow
def test_given_up(desk: Desk) -> None:
    desk("acme/base")
    before = desk.files()
    with Terminal(desk, "review", "base", **editor(desk, {"backend: vllm": "backend: ["}, "")) as at:
        at.expect(ASKED)
        at.type("e\n")
        assert "line 6: " in (found := at.expect(AGAIN))
        assert "      - completion\n" in found
        at.type("n\n")
        at.expect("Given up: models/base.yaml is as it was.")
        at.expect(ASKED)
        at.type("e\n")
        at.expect("Nothing was changed.")
        at.expect(ASKED)
        at.type("\x04")
        assert at.end() == 0
    assert (desk.files(), left(desk)) == (before, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("path.write_text('x'); os.kill(os.getpid(), signal.SIGKILL)", "it ended with signal 9"),
        ("path.unlink()", "No such file"),
        ("import tty; tty.setraw(0); os.kill(os.getpid(), signal.SIGSEGV)", "it ended with signal 11"),
    ],
)
def test_an_editor_that_fails_changes_nothing(desk: Desk, step: str, says: str) -> None:
    """The last one leaves the terminal in raw mode, where Enter is no end of a line."""
    desk("acme/base")
    before = desk.files()
    with Terminal(desk, "review", "base", **editor(desk, step)) as at:
        at.expect(ASKED)
        at.type("e\n")
        assert says in at.expect(ASKED)
        at.type("q\r")
        assert at.end() == 0
    assert (desk.files(), left(desk)) == (before, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("/nonexistent/editor -w", "The editor '/nonexistent/editor' failed: No such file"),
        ("touch pwned;", "Nothing was changed."),
    ],
)
def test_an_editor_that_is_none(desk: Desk, command: str, says: str) -> None:
    desk("acme/base")
    before = desk.files()
    with Terminal(desk, "review", "base", VISUAL=command, EDITOR="true") as at:
        at.expect(ASKED)
        at.type("e\n")
        assert says in " ".join(at.expect(ASKED).split())
        at.type("q\n")
        assert at.end() == 0
    assert desk.files() == before
    assert not (desk.folder / "pwned").exists()  # no shell reads the command: at most a file 'pwned;'


@pytest.mark.slow
def test_a_file_that_changed_while_it_was_edited(desk: Desk) -> None:
    desk("acme/base")
    theirs = "p = pathlib.Path('models/base.yaml'); p.write_text(p.read_text() + '# theirs')"
    mine = "path.write_text(path.read_text().replace('0.6', '0.5'))"
    with Terminal(desk, "review", "base", **editor(desk, f"{theirs}; {mine}")) as at:
        at.expect(ASKED)
        at.type("e\n")
        told = at.expect(ASKED)
        assert "models/base.yaml changed while it was being edited, so it was left as it is now." in told
        at.type("q\n")
        assert at.end() == 0
    assert document(desk)["parameters"]["temperature"] == 0.6
    assert yaml_of(desk).endswith(b"# theirs")
    [kept] = left(desk)
    assert f"Your text is kept in {kept}." in told
    assert "temperature: 0.5" in kept.read_text()


@pytest.mark.slow
def test_a_file_that_changed_while_it_was_looked_at(desk: Desk) -> None:
    desk("acme/base")
    path = desk.folder / "models" / "base.yaml"
    with Terminal(desk, "review", "base") as at:
        at.expect(ASKED)
        path.write_text(path.read_text().replace("0.6", "0.9"))
        at.type("a\n")
        at.expect("models/base.yaml has changed since it was shown")
        at.expect("parameters.temperature: 0.6 → 0.9")
        at.expect(ASKED)
        assert state(desk)[0] == "draft"
        at.type("a\n")
        assert at.end() == 0
    assert receipt(desk)["approved"]["data"]["parameters"]["temperature"] == 0.9


@pytest.mark.slow
def test_a_rejection_needs_a_note(desk: Desk) -> None:
    desk("acme/base")
    with Terminal(desk, "review", "base") as at:
        at.expect(ASKED)
        at.type("r\n")
        at.expect("Why? ")
        at.type("\n")
        at.expect("Not rejected: a rejection says why.")
        at.expect(ASKED)
        at.type("r\n")
        at.expect("Why? ")
        at.type("too hot\n")
        assert at.end() == 0
    assert state(desk)[0] == "rejected"
    assert receipt(desk)["history"][0] == receipt(desk)["review"]


@pytest.mark.slow
def test_words_that_are_no_choice(desk: Desk) -> None:
    desk("acme/base")
    with Terminal(desk, "review", "base", "--explain") as at:
        assert "max_position_embeddings: 512" in at.expect(ASKED)
        at.type("approve\n")
        at.expect("a accepts it as it is")
        at.expect(ASKED)
        at.type("Q\n")
        assert at.end() == 0
    assert receipt(desk)["review"]["state"] == "pending"


@pytest.mark.slow
def test_a_document_that_cannot_be_read_can_be_edited(desk: Desk) -> None:
    desk("acme/base")
    path = desk.folder / "models" / "base.yaml"
    good = path.read_bytes()
    path.write_bytes(good.replace(b"backend: vllm", b"backend: \xff["))
    with Terminal(desk, "review", "base", **editor(desk, f"path.write_bytes({good!r})")) as at:
        at.expect("it is not UTF-8 text")
        at.expect(ASKED)
        at.type("a\n")
        at.expect("Not approved: it cannot be read as it is")
        at.expect(ASKED)
        at.type("e\n")
        at.expect("review: draft")
        at.expect(ASKED)
        at.type("q\n")
        assert at.end() == 0
    assert path.read_bytes() == good


@pytest.mark.slow
@pytest.mark.parametrize("when", ["asked", "again", "editing"])
def test_ctrl_c_leaves_the_document_as_it_was(desk: Desk, when: str) -> None:
    """In the editor it is the editor's: one that dies of it is told of, and the review goes on."""
    desk("acme/base")
    before = desk.files()
    waiting = "signal.signal(2, signal.SIG_DFL); print('editing', flush=True); time.sleep(3600)"
    wrong = {"backend: vllm": "backend: tpu"}
    with Terminal(desk, "review", "base", **editor(desk, waiting if when == "editing" else wrong)) as at:
        at.expect(ASKED)
        if when != "asked":
            at.type("e\n")
            at.expect({"again": AGAIN, "editing": "editing"}[when])
        stop(at)
        if when == "editing":
            at.expect("it ended with signal 2")
            at.expect(ASKED)
            stop(at)
        assert at.end() == 130
    assert "Stopped." in at.shown
    assert (desk.files(), left(desk)) == (before, [])


def stop(at: Terminal) -> None:
    """Ctrl-C, once the reading of an answer has begun."""
    at.settle()
    at.type("\x03")


EDITS = """
import subprocess
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that goes with its command would end both
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(PIDS).write_text(f"{os.getpid()} {child.pid}")
print("editing", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted as Linux does")
def test_a_service_manager_stops_it_while_the_editor_runs(desk: Desk) -> None:
    """Where nobody collects orphans, too: the editor is collected, and what it had started has ended."""
    desk("acme/base")
    before = desk.files()
    pids = desk.folder / "pids"
    waiting = EDITS.replace("PIDS", repr(str(pids)))
    with adopting(), Terminal(desk, "review", "base", **editor(desk, waiting)) as at:
        at.expect(ASKED)
        at.type("e\n")
        at.expect("editing")
        at.signal(signal.SIGTERM)
        assert at.end() == 130
    assert (desk.files(), left(desk)) == (before, [])
    leader, child = map(int, pids.read_text().split())
    assert not psutil.pid_exists(leader)
    assert wait_until(lambda: gone(child))
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
