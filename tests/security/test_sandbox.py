"""The sandbox: what its children may take, and what becomes of a call whose child starves or dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from importer import kept
from importer.analysis import ANALYSE, Question
from importer.chat_template.render import RENDER, Rendered, Renderer, RenderExchange, RenderJob, RenderRefused
from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sandbox import OverLimit, Sandbox, SandboxReason, pool
from importer.signals.engine_capabilities import Machine
from tests.sandboxing import fresh, kill, meddling, stopped_for
from tests.waiting import wait_until

__all__ = ["fresh"]

ROOT = str(Path(__file__).resolve().parents[2])
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
own_children = pytest.mark.usefixtures("fresh")


def exchange(template: str) -> RenderExchange:
    return RenderExchange(template, [RenderJob([])])


def question(**texts: str) -> Question:
    files = tuple(RepoFile(path) for path in texts)
    snapshot = Snapshot(
        "acme/x", "acme/x", "0" * 40, files, {k.replace("__", "."): v for k, v in texts.items()}
    )
    return Question(snapshot, "linux", Machine("cpu"))


def test_a_call_is_answered_again_and_again_by_one_process() -> None:
    with Sandbox() as sandbox:
        answers = [sandbox.call(RENDER, exchange(f"{{{{ 1 + {n} }}}}"), "it") for n in range(3)]
        assert len(sandbox.pids) == 1
    assert [a.results for a in answers if not isinstance(a, OverLimit)] == [
        (Rendered("1"),), (Rendered("2"),), (Rendered("3"),)
    ]  # fmt: skip


def test_errors_of_ours_cross_with_their_fields() -> None:
    with Sandbox() as sandbox, pytest.raises(RepositoryError) as caught:
        sandbox.call(ANALYSE, question(config__json="{"), "acme/x")
    assert (caught.value.kind, caught.value.details["file"]) == ("broken-json", "config.json")


def test_a_text_over_its_time_is_told_and_the_child_goes_on() -> None:
    with Sandbox() as sandbox:
        readme = "- temperature 0.9, recommended\n" * 50_000
        over = sandbox.call(
            ANALYSE, question(config__json='{"model_type": "llama"}', README__md=readme), "acme/x",
            seconds=0.02,
        )  # fmt: skip
        assert isinstance(over, OverLimit)
        assert over.reason.kind is SandboxReason.TIME
        (pid,) = sandbox.pids
        sandbox.call(RENDER, exchange("x"), "it")
        assert sandbox.pids == (pid,)


def test_a_rendering_over_its_time_is_a_refusal() -> None:
    with Renderer(cpu_seconds=0.2) as renderer:
        (result,) = renderer.render(ENDLESS, [RenderJob([])]).results
    assert isinstance(result, RenderRefused)
    assert result.kind == "limit"


def test_what_is_nested_deeper_than_python_goes_is_told() -> None:
    deep: dict[str, object] = {}
    for _ in range(3000):
        deep = {"x": deep}
    asked = question(config__json="{}")
    asked.snapshot.info["config"] = deep  # type: ignore[index]
    with Sandbox() as sandbox:
        over = sandbox.call(ANALYSE, asked, "acme/x")
    assert isinstance(over, OverLimit)
    assert over.reason.kind is SandboxReason.DEPTH


@pytest.mark.slow
@linux
def test_a_large_program_keeps_its_child() -> None:
    script = (
        "from importer.sandbox import Sandbox\n"
        "from importer.chat_template.render import RENDER, RenderExchange, RenderJob\n"
        "large = b'x' * 300 * 2**20\n"
        "with Sandbox() as sandbox:\n"
        "    for _ in range(2):\n"
        "        sandbox.call(RENDER, RenderExchange('x', [RenderJob([])]), 'it')\n"
        "        print(*sandbox.pids)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    first, second = told.stdout.split()
    assert first == second


@pytest.mark.slow
@own_children
def test_a_child_that_died_unasked_is_replaced() -> None:
    with Sandbox() as sandbox:
        sandbox.call(RENDER, exchange("x"), "it")
        (pid,) = sandbox.pids
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        sandbox.call(RENDER, exchange("x"), "it")
        assert sandbox.pids != (pid,)


@linux
def test_a_child_killed_once_costs_nothing() -> None:
    with Sandbox() as sandbox, meddling(kill, times=1) as met:
        assert sandbox.call(RENDER, exchange("{{ 1 }}"), "it") == RENDER.answer((Rendered("1"),))
        assert len(met) == 1


@linux
def test_a_child_that_stands_still_for_a_while_answers() -> None:
    with Sandbox(wall_seconds=60) as sandbox, meddling(stopped_for(0.3)) as met:
        assert sandbox.call(RENDER, exchange("{{ 1 }}"), "it") == RENDER.answer((Rendered("1"),))
        assert len(met) == 1


@pytest.mark.slow
@own_children
def test_as_many_children_as_there_may_be_work_at_a_time() -> None:
    with Sandbox(2) as sandbox:
        threads = [
            threading.Thread(target=sandbox.call, args=(RENDER, exchange(ENDLESS), "it", 0.3))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        seen = set[int]()
        while any(thread.is_alive() for thread in threads):
            seen.add(len(sandbox.pids))
            time.sleep(0.02)
        assert max(seen) == 2
    assert sandbox.pids == ()


@own_children
def test_closing_leaves_no_process() -> None:
    with Sandbox() as sandbox:
        sandbox.call(RENDER, exchange("{{ 1 }}"), "it")
        (pid,) = sandbox.pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@own_children
@pytest.mark.usefixtures("importer_home")
def test_an_analysis_is_kept_until_a_file_of_the_model_or_of_importer_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def children(asked: Question) -> int:
        with Sandbox() as sandbox:
            answers.append(sandbox.call(ANALYSE, asked, "acme/x"))
            return len(sandbox.pids)

    answers = list[object]()
    one = question(config__json='{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}')
    other = question(config__json='{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    assert [children(one), children(one), children(other), children(one)] == [1, 0, 1, 0]
    assert answers[0] == answers[1] == answers[3]
    for damaged in kept.place("answers").iterdir():
        damaged.write_text('{"kind"')
    assert [children(one), children(one)] == [1, 0]
    monkeypatch.setattr(pool, "_files", lambda: b"a later importer")
    assert [children(one), children(one)] == [1, 0]
    assert answers[-1] == answers[0]


def test_an_answer_depends_on_code_tables_and_templates_alike() -> None:
    known = pool._files().decode()
    for file in ("sandbox/pool.py", "conventions/json.jinja", "engines/vllm.toml", "parser_defaults.json"):
        assert f"/{file}'" in known
    assert "__pycache__" not in known


@own_children
@pytest.mark.usefixtures("importer_home")
def test_an_error_and_an_exceeded_limit_are_not_kept() -> None:
    with Sandbox() as sandbox:
        for seconds, asked in (
            (1e-9, question(config__json="{}", x__py="")),
            (None, question(config__json="{")),
        ):
            with suppress(RepositoryError):
                assert isinstance(sandbox.call(ANALYSE, asked, "acme/x", seconds), OverLimit)
    assert not kept.place("answers").exists()


@own_children
def test_closing_ends_what_is_under_way_at_once() -> None:
    with Sandbox() as sandbox, ThreadPoolExecutor() as threads:
        calls = [threads.submit(sandbox.call, RENDER, exchange(ENDLESS), "it", 60) for _ in range(2)]
        while not sandbox.pids:
            time.sleep(0.01)
        sandbox.close()
        errors = [call.exception() for call in calls]
        assert [getattr(error, "kind", None) for error in errors] == ["closed", "closed"]
        assert sandbox.pids == ()
        assert sandbox.call(RENDER, exchange("{{ 1 }}"), "it") == RENDER.answer((Rendered("1"),))


def alone(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that limits itself as children do."""
    given = f"import sys; sys.path.insert(0, {ROOT!r})\nfrom importer.sandbox import limits\n{code}"
    return subprocess.run([sys.executable, "-I", "-c", given], capture_output=True, text=True, check=False)


def test_a_child_can_open_nothing() -> None:
    """Even code that got out of a sandbox finds no file, no socket and no process."""
    attempts = ("open('/etc/hostname')", "socket.socket()", "subprocess.run(['true'])")
    tried = "".join(f"try: {one}\nexcept OSError: print('no')\n" for one in attempts)
    assert alone(f"import socket, subprocess\nlimits.confine(2**29)\n{tried}").stdout.split() == ["no"] * 3


@linux
@pytest.mark.slow
def test_a_step_that_no_signal_interrupts_is_ended_by_the_kernel() -> None:
    done = alone("limits.confine(2**29)\nlimits.deadline(0.1)\npow(3, 10**9)")
    assert done.returncode == -signal.SIGXCPU


def test_limits_within_limits() -> None:
    code = """
limits.confine(2**29)
def spin():
    while True: pass
told = []
try:
    with limits.processor(0.4):
        try:
            with limits.processor(0.1): spin()
        except limits.OutOfTimeError: told.append("inner")
        try:
            with limits.processor(60): spin()
        except limits.OutOfTimeError: told.append("clipped")
        spin()
except limits.OutOfTimeError: told.append("outer")
import signal
print(*told, signal.getitimer(signal.ITIMER_PROF)[0])
"""
    assert alone(code).stdout.split() == ["inner", "clipped", "outer", "0.0"]


@linux
@own_children
def test_the_environment_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    with Sandbox() as sandbox:
        sandbox.call(RENDER, exchange("x"), "it")
        assert b"secret" not in Path(f"/proc/{sandbox.pids[0]}/environ").read_bytes()
