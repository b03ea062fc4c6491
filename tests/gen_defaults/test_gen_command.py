"""The command line of the job."""

from __future__ import annotations

import pytest

from gen_defaults.__main__ import main as command

pytestmark = pytest.mark.slow  # each test makes every file anew


# The command line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--diff"], ["--only", "nobody"], ["--offline", "/nowhere"], ["--vllm", "newest"],
        ["--vllm", ""], ["--vllm", "../0.32"], ["--vllm", "0.32", "--only", "unsloth"],
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m gen_defaults" in capsys.readouterr().err


def test_an_unknown_command_names_the_known_ones(capsys):
    assert command(["registries"]) == 2
    assert (
        "abilities | arguments | frontends | observed | processors | score | settings | "
        "shapes | shipped" in capsys.readouterr().err
    )
