"""Imports while the machine starves the sandbox, and of repositories that are made to cost time."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from importer import kept
from importer.app.decide import decide_snapshot, prove_studied
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.app.study import study_snapshot
from importer.chat_template.request_coverage.findings import CoverageKind
from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sandbox import pool
from tests.commandline import Desk, desk
from tests.sandboxing import fresh, kill, meddling, stop
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


def test_no_engine_renders_what_is_too_costly_here() -> None:
    """A worker's start and its budget were twenty seconds more, for a template that has no answer to read."""
    macro = "{% macro f(n) %}{{ f(n - 1) }}{{ f(n - 1) }}{% endmacro %}{{ f(40) }}"
    with ImportSession() as bench:
        studied = study_snapshot(hostile(chat_template__jinja=macro + CHATML), ImportRequest("acme/x"), bench)
        proof = prove_studied(replace(studied, python=Path("/no/engine")), bench)
    assert proof is not None
    assert {reason.kind for reason in proof.unasked.values()} == {CoverageKind.TOO_COSTLY}


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


@linux
@pytest.mark.parametrize(
    ("do", "kind"), [(kill, "lost"), pytest.param(stop, "starved", marks=pytest.mark.slow)]
)
def test_a_sandbox_lost_for_good_writes_nothing(desk: Desk, do: Callable[[int], None], kind: str) -> None:
    before = imported(desk)
    shutil.rmtree(kept.place("answers"))
    if do is stop:
        desk.monkeypatch.setattr(pool, "WALL_SECONDS", 0.3)
    with meddling(do) as met:
        ran = desk("acme/chat", "--yes", "--no-validate", "--json")
    assert ran.code == 75
    assert len(met) in (2, 3)  # one that dies before it is asked is replaced
    assert kind in ran.out
    assert desk.files() == before
