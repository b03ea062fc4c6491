"""The text of ``--on``, the task that is sent, and the result that comes back."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.app.remote import RemoteOptions, task_of
from importer.config_file.store import load
from importer.errors import LauncherError, UsageError
from importer.launchers import bundle
from importer.launchers.base import PlaceReason, parse_target
from importer.launchers.bundle import Result
from importer.reasons import Reason

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "scheme", "address"),
    [
        ("ray://127.0.0.1:8265", "ray", "//127.0.0.1:8265"),
        ("ray://[::1]:8265?gpus=1", "ray", "//[::1]:8265"),
        ("ssh:box", "ssh", "box"),
        ("ssh:me@box.example:2222?python=/opt/venv/bin/python&importer=sent", "ssh", "me@box.example:2222"),
        ("k8s:kind-dev/ml", "k8s", "kind-dev/ml"),
        ("k8s:arn:aws:eks:eu-1:cluster/x/ml?image=r.io/a@sha256:00", "k8s", "arn:aws:eks:eu-1:cluster/x/ml"),
        ("slurm:gpu?cpus=8&memory=64GiB", "slurm", "gpu"),
    ],
)  # fmt: skip
def test_each_form_is_read(text: str, scheme: str, address: str) -> None:
    target = parse_target(text)
    assert (target.scheme, target.address) == (scheme, address)
    assert target.text == text.partition("?")[0]  # an option is not shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", PlaceReason.NO_SCHEME), ("http://box", PlaceReason.UNKNOWN_SCHEME),
        ("sky:aws/us-east-1", PlaceReason.UNKNOWN_SCHEME), ("ray:box", PlaceReason.BAD_ADDRESS),
        ("ray://user:password@box", PlaceReason.BAD_ADDRESS), ("ray://box:99999", PlaceReason.BAD_ADDRESS),
        ("ray://box/path", PlaceReason.BAD_ADDRESS), ("ssh:-oProxyCommand=x", PlaceReason.BAD_ADDRESS),
        ("ssh:box;id", PlaceReason.BAD_ADDRESS), ("k8s:context", PlaceReason.BAD_ADDRESS),
        ("slurm:a b", PlaceReason.BAD_ADDRESS), ("ssh:box:٢٢", PlaceReason.BAD_ADDRESS),
        ("ssh:box:0", PlaceReason.BAD_ADDRESS), ("ray://[::1]:٢٢", PlaceReason.BAD_ADDRESS),
        ("ssh:[:::::]:22", PlaceReason.BAD_ADDRESS), ("slurm:gpu?gpus=²", PlaceReason.BAD_OPTION),
        ("slurm:gpu?memory=1.٢GiB", PlaceReason.BAD_OPTION), ("ssh:box?pyton=x", PlaceReason.UNKNOWN_OPTION),
        ("ssh:box?python=$(id)", PlaceReason.BAD_OPTION), ("ssh:box?gpus=many", PlaceReason.BAD_OPTION),
        ("ssh:box?gpus=1&gpus=2", PlaceReason.TWICE), ("ssh:box\n", PlaceReason.UNPRINTABLE),
        (f"ssh:{'b' * 3000}", PlaceReason.UNPRINTABLE),
    ],
)  # fmt: skip
def test_each_malformed_form_has_its_reason(text: str, reason: PlaceReason) -> None:
    with pytest.raises(UsageError) as told:
        parse_target(text)
    problem = told.value.details["problem"]
    assert isinstance(problem, Reason)
    assert (told.value.kind, problem.kind) == ("bad-target", reason)
    assert str(told.value)


def made(**changes: object) -> Result:
    fields: dict[str, object] = {
        "task": "t1", "digest": DIGEST, "importer": "0.1.0", "machine": {"host": "h"},
    }  # fmt: skip
    return Result(**{**fields, "report": {"passed": True}, **changes})  # type: ignore[arg-type]


@given(st.dictionaries(st.text(), st.text(max_size=9000) | st.integers() | st.none(), max_size=5), st.text())
def test_a_result_comes_back_through_a_log(report: dict[str, object], noise: str) -> None:
    noise = noise.replace(bundle.MARK, "")
    lines = [noise]
    for line in made(report=report).to_lines():
        lines += [line, noise]
    assert bundle.read_result("\n".join(lines), "t1", DIGEST, "ray://x").report == report


def test_lines_are_short_and_a_missing_one_is_noticed() -> None:
    lines = [*made(report={"text": "".join(map(chr, range(0x4E00, 0x9000)))}).to_lines()]
    assert len(lines) > 3
    assert max(map(len, lines)) < 4100
    with pytest.raises(LauncherError) as told:
        bundle.read_result("\n".join(lines[:1] + lines[2:]), "t1", DIGEST, "ray://x")
    assert told.value.kind == "bad-result"
    assert not bundle.has_result("\n".join(lines[:-1]))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"digest": f"sha256:{'b' * 64}"}, "other-digest"), ({"task": "t2"}, "other-digest"),
        ({"report": None}, "bad-result"), ({"error": {"kind": "x"}}, "bad-result"),
        ({"report": None, "error": {"message": ["x"]}}, "bad-result"), ({"report": [1]}, "bad-result"),
        ({"machine": None}, "bad-result"), ({"task": 7}, "bad-result"),
    ],
)  # fmt: skip
def test_what_is_not_bound_or_not_whole_is_refused(changes: dict[str, object], kind: str) -> None:
    with pytest.raises(LauncherError) as told:
        bundle.read_result("\n".join(made(**changes).to_lines()), "t1", DIGEST, "ray://x")
    assert told.value.kind == kind


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"schema": 9}', b'{"schema": 1, "x": 1}', b"\xff"])
def test_a_task_that_is_none_is_told(data: bytes) -> None:
    with pytest.raises(LauncherError) as told:
        bundle.read(data)
    assert told.value.kind == "bad-bundle"


@pytest.mark.slow
def test_a_task_holds_no_secret_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, importer_home: Path
) -> None:
    """Everything that is sent may be read at the far end."""
    del importer_home
    for name in ("HF_TOKEN", "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "very-secret")
    document = tmp_path / "x.yaml"
    document.write_text("name: x\nbackend: mlx\nparameters:\n  model: acme/x\n")
    target = parse_target("ray://127.0.0.1:1?gpus=2&memory=4GiB&importer=sent")
    task = task_of("importer-x", load(document), "mlx", target, RemoteOptions())
    assert task.wheel is not None
    with ZipFile(task.wheel) as wheel:
        sent = task.bundle + b"".join(wheel.read(name) for name in wheel.namelist())
        assert {"importer/data/parser_defaults.json", "importer/__main__.py"} <= {*wheel.namelist()}
    assert b"very-secret" not in sent + repr(task).encode()
    assert (task.resources.gpus, task.resources.memory) == (2, 4 * 2**30)
    assert bundle.read(task.bundle).unpack(tmp_path / "there").digest == task.digest


def test_a_model_in_a_folder_beside_the_document_is_not_sent(tmp_path: Path) -> None:
    """It would be another folder at the far end."""
    document = tmp_path / "x.yaml"
    document.write_text("name: x\nbackend: mlx\nparameters:\n  model: ./weights\n")
    with pytest.raises(LauncherError) as told:
        task_of("importer-x", load(document), "mlx", parse_target("ssh:box"), RemoteOptions())
    assert told.value.kind == "folder-beside"


def test_a_result_is_compressed() -> None:
    (line,) = made(report={"text": "x" * 100_000}).to_lines()
    assert json.loads(zlib.decompress(b64decode(line.split()[2])))["task"] == "t1"
