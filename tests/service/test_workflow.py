"""The workflow that regenerates the tables: what it may do, and its own steps on a repository here."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import one_of_each

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
# ``gh`` is not here: this one notes what it was told, and has pull request 7 open where a file says so.
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$NOTED"
[ "$2" = list ] && [ -e "$NOTED.open" ] && echo 7
exit 0
"""


def workflow(path: Path) -> dict[str, Any]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return {"on" if key is True else key: value for key, value in data.items()}  # YAML 1.1 takes on for true


TABLES = workflow(FOLDER / "tables.yml")
JOBS: dict[str, Any] = TABLES["jobs"]


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in FILES:
        for name, job in workflow(path)["jobs"].items():
            yield from ((name, step) for step in job["steps"])


def script(job: str, name: str) -> str:
    return str(next(s["run"] for s in JOBS[job]["steps"] if s["name"] == name))


def test_it_runs_by_the_clock_and_by_hand_only() -> None:
    assert {*TABLES["on"]} == {"schedule", "workflow_dispatch"}
    assert all("pull_request_target" not in path.read_text() for path in FILES)


def test_privileges_are_the_least() -> None:
    assert TABLES["permissions"] == {}
    assert JOBS["regenerate"]["permissions"] == {"contents": "read"}
    assert JOBS["propose"]["permissions"] == {"contents": "write", "pull-requests": "write"}


def test_what_may_write_installs_and_runs_nothing_of_others() -> None:
    text = str(JOBS["propose"])
    assert not re.search(r"\b(pip|make|python|npm|curl)\b", text)


def test_a_fork_is_left_alone() -> None:
    assert JOBS["regenerate"]["if"] == "github.event.repository.fork == false"
    assert JOBS["propose"]["needs"] == "regenerate"
    assert "patch != ''" in JOBS["propose"]["if"]


def test_everything_is_pinned() -> None:
    for path in FILES:
        for name, job in workflow(path)["jobs"].items():
            systems = job.get("strategy", {}).get("matrix", {}).get("system", [job["runs-on"]])
            assert all(re.fullmatch(r"[a-z]+-[0-9.]+", system) for system in systems)
            assert job["timeout-minutes"] <= (300 if name == "nightly" else 60)
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for _, step in steps() if "uses" in step)


def test_nothing_of_others_becomes_a_script() -> None:
    """An expression inside a script is pasted into it; in the environment it stays a text."""
    assert not [name for name, step in steps() if "${{" in step.get("run", "")]


def test_the_tests_run_before_there_is_a_pull_request() -> None:
    names = [step["name"] for step in JOBS["regenerate"]["steps"]]
    assert names.index("Ask the sources") < names.index("Test") < names.index("Hand on the difference")
    assert "make test-fast" in script("regenerate", "Test")
    assert re.search(r"^test-fast:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_token_is_in_no_argument_and_no_later_step() -> None:
    assert all("$TOKEN" not in step["run"].replace('%s\' "$TOKEN"', "") for _, step in steps())
    later = JOBS["regenerate"]["steps"][1:]
    assert not [step["name"] for step in later if "token" in str(step.get("env", ""))]


# The steps themselves, on a repository of ours


class Runner:
    """Two jobs on one machine: a folder for each, and a repository that they fetch from and push to."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.origin = place / "acme" / "importer"
        self.noted = place / "noted"
        (place / "bin").mkdir()
        (place / "bin" / "gh").write_text(GH)
        (place / "bin" / "gh").chmod(0o755)
        work = place / "first"
        for folder in TABLES["env"]["PATHS"].split()[1:-1]:
            (work / folder).mkdir(parents=True)
            (work / folder / "here.json").write_text("{}\n")
        (work / "inference_defaults.json").write_text("{}\n")
        (work / "gen_defaults" / "job.py").write_text("")
        (work / "README.md").write_text("here\n")
        self.git("init", "-q", "-b", "main", cwd=work)
        self.git("add", ".", cwd=work)
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", cwd=work)
        self.git("clone", "-q", "--bare", str(work), str(self.origin), cwd=place)
        self.sha = self.git("rev-parse", "HEAD", cwd=work).strip()

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.origin, capture_output=True, text=True, check=True
        )
        return done.stdout

    def run(self, job: str, text: str, **extra: str) -> subprocess.CompletedProcess[str]:
        folder = self.place / job
        (folder / "work").mkdir(parents=True, exist_ok=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "GITHUB_"))}
        given = {k: str(v) for k, v in TABLES["env"].items()}
        env = keep | given | {
            "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}", "NOTED": str(self.noted),
            "HOME": str(folder), "TOKEN": "secret", "RUNNER_TEMP": str(folder),
            "GITHUB_SERVER_URL": f"file://{self.place}", "GITHUB_REPOSITORY": "acme/importer",
            "GITHUB_SHA": self.sha, "GITHUB_REF_NAME": "main", "GITHUB_OUTPUT": str(folder / "output"),
            **extra,
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
        return subprocess.run(
            command, cwd=folder / "work", env=env, capture_output=True, text=True, check=False
        )

    def regenerated(self, **files: str) -> dict[str, str]:
        """The outputs of the first job after these files have been written."""
        assert self.run("regenerate", script("regenerate", "Check out")).returncode == 0
        work = self.place / "regenerate" / "work"
        for name, content in files.items():
            (work / name.replace("__", "/")).with_suffix(".json").write_text(content)
        (work.parent / "body.md").write_text("# What changed\n")
        (work.parent / "field.md").write_text("| contestant |\n")
        self.tested("echo 4 passed")
        done = self.run("regenerate", script("regenerate", "Hand on the difference"))
        assert done.returncode == 0, done.stderr
        output = work.parent / "output"
        lines = output.read_text().splitlines() if output.exists() else []
        return {key.upper(): value for key, _, value in (line.partition("=") for line in lines)}

    def tested(self, make: str) -> str:
        """What a pull request says of the tests, where ``make`` does this."""
        (self.place / "bin" / "make").write_text(f"#!/usr/bin/env bash\n{make}\n")
        (self.place / "bin" / "make").chmod(0o755)
        done = self.run("regenerate", script("regenerate", "Test"))
        assert done.returncode == 0, done.stderr
        return (self.place / "regenerate" / "tests.md").read_text()

    def proposed(self, outputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return self.run("propose", script("propose", "Open or renew the pull request"), **outputs)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_change_becomes_a_branch_and_a_pull_request(runner: Runner) -> None:
    outputs = runner.regenerated(inference_defaults='{"new": 1}\n', gen_defaults__upstream="{}\n")
    done = runner.proposed(outputs)
    assert done.returncode == 0, done.stderr
    assert runner.git("show", "regenerated-tables:inference_defaults.json") == '{"new": 1}\n'
    assert runner.git("show", "regenerated-tables:gen_defaults/upstream.json") == "{}\n"
    assert runner.git("rev-parse", "main").strip() == runner.sha
    told = runner.noted.read_text()
    assert "pr create -R acme/importer --base main --head regenerated-tables" in told
    assert "secret" not in told + done.stdout + done.stderr
    assert (
        runner.place / "propose" / "body.md"
    ).read_text() == "`make test-fast` passes.\n\n# What changed\n| contestant |\n"


@pytest.mark.parametrize("path", one_of_each(["gen_defaults/job.py", ".github/workflows/x.yml"], tier="slow"))
def test_a_difference_that_touches_more_is_refused(runner: Runner, path: str) -> None:
    runner.regenerated()
    work = runner.place / "regenerate" / "work"
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text("changed\n")
    text = script("regenerate", "Hand on the difference").replace("-- $PATHS", "-- .")
    assert runner.run("regenerate", text).returncode == 0
    lines = (work.parent / "output").read_text().splitlines()
    done = runner.proposed({k.upper(): v for k, _, v in (line.partition("=") for line in lines)})
    assert done.returncode == 1
    assert "touches more than the tables" in done.stdout
    assert not runner.noted.exists()
    assert "regenerated-tables" not in runner.git("branch")
