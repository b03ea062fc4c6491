"""Clusters that answer as none does: each odd answer is one sentence of one kind, never a fault of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from importer import launchers
from importer.errors import LauncherError
from importer.launchers import kubernetes, ray
from importer.launchers.answers import Question
from importer.launchers.base import Absent, Queued, RemoteRun, RemoteTask, Running, parse_target
from importer.launchers.kubernetes import Items, Pod, state_of
from tests.any_json import altered
from tests.launchers.test_http import answering
from tests.odd_answers import RUN, SOUND, items, job, odd, pod, put, text, wrong
from tests.tiers import one_of_each
from tests.waiting import PATIENCE

DIGEST = f"sha256:{'a' * 64}"
TASK = RemoteTask(RUN, b"{}", DIGEST, "vllm")
KUBERNETES, SLURM, SSH = map(parse_target, ("k8s:tests/ml?image=x", "slurm:gpu", "ssh:box"))
PROGRAMS = ("kubectl", "ssh", "sbatch", "squeue", "sacct", "scontrol", "scancel")
ESCAPES = ("\x1b", "\0", "\n")


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of programs before all others, with sound answers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in PROGRAMS:
        put(folder, tool)
    for name, data in SOUND.items():
        (folder / name).write_bytes(text(data))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield folder
    for large in folder.iterdir():
        large.unlink()


def refused(ask: Callable[[], object], tool: str) -> LauncherError:
    """The error of an odd answer, with its fields and one printable sentence."""
    with pytest.raises(LauncherError) as told:
        ask()
    error = told.value
    assert (error.kind, error.exit_code, error.details["tool"]) == ("cluster-answer", 8, tool), error
    sentence = str(error)
    assert sentence.isprintable()
    assert len(sentence) < 500
    return error


QUESTIONS = {"get-job": "kubectl", "get-pods": "kubectl", "ray": "Ray", "ray-logs": "Ray"}
CASES = [(question, name) for question in QUESTIONS for name in (*odd(SOUND[question]), *wrong(question))]


@pytest.mark.parametrize(("question", "name"), one_of_each(CASES, lambda case: case[0], "slow"))
def test_an_odd_answer_has_its_kind(bin_folder: Path, question: str, name: str) -> None:
    data = {**odd(SOUND[question]), **wrong(question)}[name]()
    tool = QUESTIONS[question]
    if tool == "Ray":
        path = f"/api/jobs/{RUN}{'/logs' if question == 'ray-logs' else ''}"
        with answering({path: (200, data)}) as place:
            launcher, run = launchers.get(parse_target(place)), RemoteRun(RUN, "ray", place)
            refused(lambda: (launcher.logs if question == "ray-logs" else launcher.state)(run), tool)
        return
    (bin_folder / question).write_bytes(data)
    refused(lambda: launchers.get(KUBERNETES).state(RemoteRun.of(RUN, KUBERNETES)), tool)


def test_what_tools_are_known_to_print_around_json_does_not_matter(bin_folder: Path) -> None:
    run = RemoteRun.of(RUN, KUBERNETES)
    warning = b"Warning: policy/v1beta1 is deprecated\nW0102 03:04:05.6 7 loader.go:223] Config not found\n"
    (bin_folder / "get-job").write_bytes(warning + text(job()))
    assert launchers.get(KUBERNETES).state(run) == Running("gpu-07")
    (bin_folder / "get-job").write_bytes(b"")
    (bin_folder / "get-job.err").write_bytes(warning)
    assert launchers.get(KUBERNETES).state(run) == Absent()
    (bin_folder / "ssh").write_text("#!/bin/sh\ncat >/dev/null\necho Welcome\necho queued\n")
    assert launchers.get(SSH).state(RemoteRun.of(RUN, SSH)) == Queued()


def test_an_error_beside_a_success_is_no_absent_job(bin_folder: Path) -> None:
    """kubectl ends with 0 and nothing where there is no Job; nothing with an error is another thing."""
    (bin_folder / "get-job").write_bytes(b"")
    (bin_folder / "get-job.err").write_bytes(b"error: \x1b[31mno credentials\n")
    error = refused(lambda: launchers.get(KUBERNETES).state(RemoteRun.of(RUN, KUBERNETES)), "kubectl")
    assert "no credentials" in str(error)
    assert not any(one in str(error.details) for one in ESCAPES)


@pytest.mark.parametrize("made", [b"", b"job.batch/run-1 is created", b"\xff", b"{}"])
def test_a_creation_without_an_object_is_noticed(bin_folder: Path, made: bytes) -> None:
    (bin_folder / "get-job").write_bytes(b"")
    (bin_folder / "create").write_bytes(made)
    refused(lambda: launchers.get(KUBERNETES).submit(TASK), "kubectl")


@pytest.mark.parametrize("made", [{}, {"submission_id": "another"}, []])
def test_a_submission_of_ray_without_its_id_is_noticed(made: object) -> None:
    path = f"/api/jobs/{RUN}"
    with answering({path: (404, b""), "/api/jobs/": (200, text(made)), ".zip": (200, b"")}) as place:
        refused(lambda: launchers.get(parse_target(place)).submit(TASK), "Ray")


# Slurm and ssh answer in words; a script of ours prints the last line.

Said = Mapping[str, tuple[bytes, bytes, int]]


def played(folder: Path, said: Said) -> None:
    for tool, (output, errors, code) in said.items():
        (folder / tool).unlink(missing_ok=True)
        (folder / f"{tool}-out").write_bytes(output)
        (folder / f"{tool}-err").write_bytes(errors)
        place = f'"{folder}/{tool}'
        (folder / tool).write_text(f'#!/bin/sh\ncat {place}-out"\ncat {place}-err" >&2\nexit {code}\n')
        (folder / tool).chmod(0o755)


SUBMISSIONS: Mapping[str, tuple[Said, str]] = {
    "failure-with-output": ({"sbatch": (b"Submitted batch job 7\n", b"", 1)}, "cluster-refused"),
    "failure-with-blank-error": ({"sbatch": (b"", b" \n\n", 1)}, "cluster-refused"),
    "failure-in-many-lines": ({"sbatch": (b"", b"x\n" * 100_000, 1)}, "cluster-refused"),
    "failure-in-no-text": ({"sbatch": (b"", b"\xff\0\x1b[31m", 1)}, "cluster-refused"),
    "killed": ({"sbatch": (b"", b"", 137)}, "cluster-refused"),
    "silent-success": ({"sbatch": (b"", b"", 0)}, "cluster-answer"),
    "words": ({"sbatch": (b"Submitted batch job 7\n", b"", 0)}, "cluster-answer"),
    "negative": ({"sbatch": (b"-7\n", b"", 0)}, "cluster-answer"),
    "wide-digits": ({"sbatch": ("７\n".encode(), b"", 0)}, "cluster-answer"),
    "huge": ({"sbatch": (b"7" * 5000 + b"\n", b"", 0)}, "cluster-answer"),
    "option": ({"sbatch": (b"--me\n", b"", 0)}, "cluster-answer"),
    "utf-16": ({"sbatch": ("7\n".encode("utf-16"), b"", 0)}, "cluster-answer"),
    "banner-before": ({"sbatch": (b"Welcome\n7\n", b"", 0)}, "cluster-answer"),
    "queue-in-words": ({"squeue": (b"--me\n", b"", 0)}, "cluster-answer"),
    "queue-with-blanks": ({"squeue": (b"7\n\n8\n", b"", 0)}, "cluster-answer"),
    "queue-fails-silently": ({"squeue": (b"", b"", 1)}, "cluster-refused"),
}


@pytest.mark.parametrize("name", one_of_each(SUBMISSIONS, lambda name: SUBMISSIONS[name][1], "slow"))
def test_an_odd_answer_to_a_submission_has_its_kind(bin_folder: Path, name: str) -> None:
    said, kind = SUBMISSIONS[name]
    played(bin_folder, {"squeue": (b"", b"", 0), **said})
    with pytest.raises(LauncherError) as told:
        launchers.get(SLURM).submit(TASK)
    assert (told.value.kind, str(told.value).isprintable()) == (kind, True)
    jobs = Path.home() / ".cache" / "importer-runs" / RUN / "jobs"
    assert not jobs.exists() or not jobs.read_text()


@pytest.mark.parametrize("number", [b"7\n", b"7", b"7;gpu\n"])
def test_a_job_of_slurm_has_its_number(bin_folder: Path, number: bytes) -> None:
    played(bin_folder, {"squeue": (b"", b"", 0), "sbatch": (number, b"sbatch: warning: x\n", 0)})
    run = launchers.get(SLURM).submit(TASK)
    assert (Path.home() / ".cache" / "importer-runs" / RUN / "jobs").read_text().strip() == "7"
    played(bin_folder, {"squeue": (b"PENDING|Priority|\n", b"", 0)})
    assert launchers.get(SLURM).state(run) == Queued("Priority")


STATES: Mapping[str, bytes] = {
    "words": b"nothing here\n", "banner-before": b"Welcome!\nRUNNING|None|gpu-1\n", "bars": b"||||||\n",
    "unknown-state": b"SLEEPING|None|gpu-1\n", "one-field": b"RUNNING|x\n", "no-text": b"\xff\xfe\n",
    "lower-case": b"running|None|gpu-1\n", "bom": b"\xef\xbb\xbfRUNNING|None|gpu-1\n",
    "ansi": b"\x1b[31mRUNNING|a|b\n", "long": b"x" * 100_000, "large": b"RUNNING|" * (100 * 2**17),
}  # fmt: skip


@pytest.mark.parametrize("name", one_of_each(STATES, tier="slow"))
def test_an_odd_state_of_slurm_has_its_kind(bin_folder: Path, name: str) -> None:
    played(bin_folder, {"squeue": (b"", b"", 0), "sbatch": (b"7\n", b"", 0)})
    run = launchers.get(SLURM).submit(TASK)
    played(bin_folder, {"squeue": (STATES[name], b"", 0)})
    refused(lambda: launchers.get(SLURM).state(run), "squeue")


WORDS = (
    b"", b"{}", b"exit", b"exit x", b"exit -1", "exit ٧".encode(), b"running\nbye", b"Running", b"absent\0",
    "running".encode("utf-16"), b"\x1b[2J",
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_an_odd_answer_over_ssh_has_its_kind(bin_folder: Path, number: int) -> None:
    (bin_folder / "ssh.answer").write_bytes(WORDS[number])
    (bin_folder / "ssh").write_text(f'#!/bin/sh\ncat >/dev/null\ncat "{bin_folder}/ssh.answer"\n')
    refused(lambda: launchers.get(SSH).state(RemoteRun.of(RUN, SSH)), "ssh")
    refused(lambda: launchers.get(SSH).submit(TASK), "ssh")


# The command as it is called.

COMMANDS: Mapping[str, tuple[str, str, bytes, str]] = {
    "text": ("k8s:tests/ml?image=x", "get-job", b"no JSON", "cluster-answer"),
    "object": ("k8s:tests/ml?image=x", "get-job", b'{"a":1}', "cluster-answer"),
    "deep": ("k8s:tests/ml?image=x", "get-pods", b"[" * 100_000, "cluster-answer"),
    "ssh": ("ssh:box", "ssh-said", b"\x1b[31mWelcome", "cluster-answer"),
    "slurm": ("slurm:gpu", "sbatch-said.code", b"1", "cluster-refused"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(COMMANDS, lambda name: COMMANDS[name][3]))
def test_the_command_ends_with_one_sentence(bin_folder: Path, tmp_path: Path, name: str) -> None:
    target, file, answer, kind = COMMANDS[name]
    (bin_folder / file).write_bytes(answer)
    done = command(tmp_path, target)
    assert done.returncode == 8, done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == kind
    assert "\n" not in error["message"]
    assert b"Traceback" not in done.stderr


def command(folder: Path, target: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "x.yaml").write_text("name: x\nbackend: mlx\nparameters:\n  model: acme/x\n")
    words = ("validate", "x", "--dir", "d", "--on", target, "--json", *more)
    env = {**os.environ, "IMPORTER_HOME": str(folder / "home")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "importer", *words],
        cwd=folder, env=env, capture_output=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


FAR = """#!{python}
import base64, json, pathlib, re, sys
here, text = pathlib.Path(__file__).parent, sys.stdin.read()
if 'mkdir -p "$root"' in text:
    task = re.search("task.json\\" <<'END_OF_TASK'.*?\\n(.*?)\\nEND_OF_TASK", text, re.S)[1]
    (here / "task").write_bytes(base64.b64decode(task))
    print("submitted")
elif "echo absent" in text:
    print("exit 0")
elif 'cat "$d/output"' in text:
    from importer.launchers.bundle import Result
    task, report = json.loads((here / "task").read_text()), json.loads((here / "report").read_text())
    for line in Result(task["task"], task["digest"], "1", {{}}, report).to_lines():
        print(line)
"""
GOOD = {"engine": {"name": "mlx"}, "passed": True, "outcomes": [], "seconds": {"start": 1.0}}
REPORTS: Mapping[str, tuple[Any, int, str]] = {
    "good": (GOOD, 0, ""),
    "outcome": ({**GOOD, "outcomes": [{"a": 1}]}, 8, "bad-result"),
    "seconds": ({**GOOD, "seconds": {"start": "x"}}, 8, "bad-result"),
    "fit": ({**GOOD, "fit": {"weights": 1}}, 8, "bad-result"),
    "score": ({**GOOD, "score": {"a": 1}}, 8, "bad-result"),
    "digest": ({**GOOD, "digest": "another"}, 8, "other-digest"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(REPORTS, lambda name: REPORTS[name][1]))
def test_an_odd_report_for_a_document_without_a_receipt(bin_folder: Path, tmp_path: Path, name: str) -> None:
    report, code, kind = REPORTS[name]
    (bin_folder / "report").write_bytes(text(report))
    (bin_folder / "ssh").write_text(FAR.format(python=sys.executable))
    done = command(tmp_path, "ssh:box")
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert (told["error"]["kind"] == kind) if code else told["passed"]


# Any JSON at any place.

TYPES: Mapping[str, tuple[str, Any, Any]] = {
    "job": ("kubectl", kubernetes.Job, job(status={"conditions": [{"type": "Failed", "status": "x"}]})),
    "pods": ("kubectl", Items[Pod], items(pod(), pod(status={"phase": "Pending", "containerStatuses": [
        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "x"}}}]}))),
    "ray": ("Ray", ray.Job, {**SOUND["ray"], "error_type": "x", "driver_agent_http_address": "http://[::1]:1"}),
    "logs": ("Ray", ray.Logs, SOUND["ray-logs"]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(TYPES, tier="slow"))
def test_any_json_at_any_place_is_typed_or_an_odd_answer(name: str) -> None:
    tool, kind, sound = TYPES[name]

    @given(altered(sound))
    def check(data: Any) -> None:
        try:
            found = Question("somewhere", tool, "something").read(kind, json.dumps(data).encode())
        except LauncherError as error:
            if (error.kind, str(error).isprintable()) == ("cluster-answer", True):
                return
            raise
        if isinstance(found, kubernetes.Job):
            state_of(found, [], lambda: "")
        elif isinstance(found, Items):
            state_of(kubernetes.Job.model_validate(job()), found.items, lambda: "")
        elif isinstance(found, ray.Job):
            assert "\n" not in found.node + found.message
        else:
            assert isinstance(found.logs, str)

    check()
