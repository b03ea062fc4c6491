"""The command line of the job."""

from __future__ import annotations

import pytest

from gen_defaults import regenerate
from gen_defaults.__main__ import main as command
from gen_defaults.sources import SOURCES

pytestmark = pytest.mark.slow  # each test makes every file anew


# The command line


def test_bars_are_for_a_terminal(monkeypatch, capsys):
    with regenerate.bars() as told:
        assert told is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with regenerate.bars() as told:
        assert told is not None
        told("a-[1].whl", 5, 10)
        told("a-[1].whl", 5, 10)
    assert "a-[1].whl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--diff"],
        ["--only", "nobody"],
        ["--offline", "/nowhere"],
        ["--vllm", "newest"],
        ["--vllm", ""],
        ["--vllm", "../0.32"],
        ["--vllm", "0.32", "--only", "unsloth"],
    ],
)
def test_arguments_that_mean_nothing(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m gen_defaults" in capsys.readouterr().err


def test_an_unknown_command_names_the_known_ones(capsys):
    assert command(["registries"]) == 2
    assert (
        "abilities | arguments | frontends | observed | processors | response-templates | score | settings | "
        "shapes | shipped | way-in" in capsys.readouterr().err
    )


def test_the_help_names_every_source(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    assert all(name in capsys.readouterr().out.replace("\n", " ") for name in [*SOURCES][:1])
