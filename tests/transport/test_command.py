"""The text of ``--on``: an argv list of the user's own words, and nothing that a shell reads."""

from __future__ import annotations

import shlex

import pytest

from importer.cli.main import run
from importer.errors import RemoteError, UsageError
from importer.reasons import Reason
from importer.transport.command import FAR_END, CommandReason, parse_command, presets


@pytest.mark.parametrize(
    ("text", "where", "begins", "ends"),
    [
        ("ssh gpu1 --", "ssh", ["ssh", "gpu1", "--"], []),
        ("/opt/bin/go -x 'a b' $(id); `id`", "go", ["/opt/bin/go", "-x", "a b", "$(id);", "`id`"], []),
        ("ssh:me@gpu1", "ssh:me@gpu1", ["ssh", "-T"], ["--", "me@gpu1"]),
        ("ssh:gpu1 -p 22 -F c", "ssh:gpu1", ["ssh", "-p", "22", "-F", "c", "-T"], ["--", "gpu1"]),
        ("ssh:b -p 2 -- py -P -m", "ssh:b", ["ssh", "-p", "2", "-T"], ["--", "b", "py", "-P", "-m"]),
        ("ssh:b;id", "ssh:b;id", ["ssh"], ["--", "b;id"]),
        ("slurm:gpu --gres=gpu:1", "slurm:gpu", ["srun", "--partition=gpu"], ["--gres=gpu:1", "--"]),
        ("k8s:r.io/a@sha256:0f -n ml", "k8s:r.io/a@sha256:0f", ["kubectl"], ["-n", "ml", "--command", "--"]),
        ("ray:ray://h:1 num_gpus=1", "ray:ray://h:1", ["python3", "-c"], ["ray://h:1", "num_gpus=1", "--"]),
    ],
)  # fmt: skip
def test_a_text_is_words(text: str, where: str, begins: list[str], ends: list[str]) -> None:
    command = parse_command(text)
    words = [*command.words]
    assert (command.where, words[: len(begins)]) == (where, begins)
    assert words[len(words) - len(ends) :] == ends
    assert not [word for word in words if "{place}" in word or "{options}" in word]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", CommandReason.EMPTY), (" ", CommandReason.EMPTY), ("''", CommandReason.EMPTY),
        ("ssh 'box", CommandReason.QUOTES), ("ssh box \\", CommandReason.QUOTES),
        ("ssh box\n", CommandReason.UNPRINTABLE), ("ssh \x1b[2J", CommandReason.UNPRINTABLE),
        ("s" * 20_000, CommandReason.UNPRINTABLE), ("shh:box", CommandReason.NO_PRESET),
        ("http://box", CommandReason.NO_PRESET), ("ssh:", CommandReason.NO_PLACE),
        ("ssh:-oProxyCommand=x", CommandReason.NO_PLACE), ("k8s:--kubeconfig=x", CommandReason.NO_PLACE),
    ],
)  # fmt: skip
def test_a_text_that_is_no_command_has_its_reason(text: str, reason: CommandReason) -> None:
    with pytest.raises(UsageError) as told:
        parse_command(text)
    problem = told.value.details["problem"]
    assert isinstance(problem, Reason)
    assert (told.value.kind, problem.kind, str(told.value).isprintable()) == ("bad-target", reason, True)


def test_each_run_has_a_name_of_its_own_and_its_program_by_path() -> None:
    command = parse_command("env importer-{id}")
    (program, one, *rest), (_, other, *_) = command.argv(), command.argv()
    assert (program, one != other, tuple(rest)) == (one and "/usr/bin/env", True, FAR_END)
    with pytest.raises(RemoteError) as told:
        parse_command("no-such-program").argv()
    assert told.value.kind == "program-missing"


def test_presets_are_lines_with_a_place() -> None:
    """Each has its place and its options once; that of Ray is one program of Python."""
    for name, words in presets().items():
        assert sum("{place}" in word for word in words) == words.count("{options}") == 1, name
    assert compile(presets()["ray"][2], "ray", "exec")
    assert shlex.join(presets()["slurm"]).startswith("srun ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--on", "http:box"), "http is no preset"),
        (("--on", "ssh:box", "--port", "1"), "--port: is not valid with --on"),
        (("--on", "ssh:box", "--against", "http://box"), "--against: is not valid with --on"),
        (("--on-timeout", "3"), "--on-timeout: is valid with --on only"),
    ],
)
def test_an_option_that_does_not_fit_is_one_sentence(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", "x", *words]) == 2
    assert says in capsys.readouterr().err
