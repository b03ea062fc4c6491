"""Imports while the machine starves the sandbox, and of repositories that are made to cost time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from importer.app.decide import ImportRequest, decide_snapshot
from importer.app.session import ImportSession
from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sandbox import pool
from tests.commandline import Desk, desk
from tests.sandboxing import fresh, kill, meddling, stop, stopped_for
from tests.waiting import processor_seconds

__all__ = ["desk", "fresh"]
SECONDS = 30.0  # of processor time; the budget of a question is 10 s, and there are two
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def hostile(**texts: str) -> Snapshot:
    files = {"config.json": '{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}'}
    texts = {**files, **{path.replace("__", "."): text for path, text in texts.items()}}
    return Snapshot("acme/x", "acme/x", "0" * 40, tuple(RepoFile(path) for path in texts), texts)


TOKENS = json.dumps({"added_tokens_decoder": {str(n): {"content": f"<t{n}>"} for n in range(34_000)}})
CHATML = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
SAID = "{% set said = messages[-1].content | string %}"
LITERALS = SAID + "{{ said[:10] }}',{[]:1},'{{ said[-10:] }}" + "&#" + "9" * 5_000 + ";"
ENTITIES = SAID + "{{ said[:10] }}&#" + "9" * 5_000 + ";{{ said[-10:] }}"
HEADS = SAID + "{{ said[:10] * 9000 }}{{ said[-10:] }}"
BRACKETS = "{{ messages[-1].content }}" + "<" + "think" * 19_000
HOSTILE: dict[str, Callable[[], Snapshot]] = {
    "tokens": lambda: hostile(tokenizer_config__json=TOKENS, chat_template__jinja=CHATML),
    "markers": lambda: hostile(chat_template__jinja=BRACKETS),
    "literals": lambda: hostile(chat_template__jinja=LITERALS),
    "entities": lambda: hostile(chat_template__jinja=ENTITIES),
    "heads": lambda: hostile(chat_template__jinja=HEADS),
    "table": lambda: hostile(README__md="|a|b|\n|" + "-" * 100_000 + "x"),
    "files": lambda: replace(hostile(), files=tuple(RepoFile(f"f{n}", n) for n in range(200_000))),
    "merges": lambda: hostile(
        README__md="---\na0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12))
        + "---\n"
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("fresh")  # whose time counts once they have ended
@pytest.mark.parametrize("name", HOSTILE)
def test_no_repository_takes_more_than_the_budget(name: str) -> None:
    began = processor_seconds()
    told = "read"
    with ImportSession(proves=False) as bench:
        try:
            decide_snapshot(HOSTILE[name](), ImportRequest("acme/x"), bench)
        except RepositoryError as error:
            told = error.kind
    assert told in {"read", "too-costly"}
    assert processor_seconds() - began < SECONDS


def imported(desk: Desk) -> dict[str, bytes]:
    """The import of a model that is there already, with what a person wrote into its document.

    From here on each run starts a child of its own.
    """
    desk.sandbox = None
    ran = desk("acme/chat", "--yes", "--no-validate")
    assert ran.code == 0, ran.err
    path = desk.folder / "models" / "chat.yaml"
    path.write_text(path.read_text() + "# mine\n")
    return desk.files()


@pytest.mark.slow
@linux
def test_a_sandbox_killed_once_is_no_matter(desk: Desk) -> None:
    before = imported(desk)
    with meddling(kill, times=1) as met:
        ran = desk("acme/chat", "--dry-run", "--json")
    assert (ran.code, len(met)) == (0, 1)
    assert desk("acme/chat", "--dry-run", "--json").out == ran.out
    assert desk.files() == before


@linux
@pytest.mark.parametrize(("do", "kind"), [(kill, "lost"), (stop, "starved")])
def test_a_sandbox_lost_for_good_writes_nothing(desk: Desk, do: Callable[[int], None], kind: str) -> None:
    before = imported(desk)
    if do is stop:
        desk.monkeypatch.setattr(pool, "WALL_SECONDS", 1.0)
    with meddling(do) as met:
        ran = desk("acme/chat", "--yes", "--no-validate", "--json")
    assert ran.code == 75
    assert len(met) in (2, 3)  # one that dies before it is asked is replaced
    assert kind in ran.out
    assert desk.files() == before


@pytest.mark.nightly
@linux
@pytest.mark.slow
def test_a_sandbox_stopped_for_16_seconds_decides_the_same(desk: Desk) -> None:
    desk.sandbox = None
    calm = desk("acme/chat", "--dry-run", "--json")
    began = time.monotonic()
    with meddling(stopped_for(16), times=1) as met:
        ran = desk("acme/chat", "--dry-run", "--json")
    assert (ran.code, len(met), ran.out) == (0, 1, calm.out)
    assert time.monotonic() - began > 15


@pytest.mark.slow
def test_a_busy_machine_decides_the_same(desk: Desk) -> None:
    desk.sandbox = None
    calm = desk("acme/chat", "--dry-run", "--json")
    loops = [
        subprocess.Popen(["nice", "-n", "5", sys.executable, "-c", "while True: pass"]) for _ in range(20)
    ]
    try:
        ran = desk("acme/chat", "--dry-run", "--json")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert (ran.code, ran.out) == (0, calm.out)
