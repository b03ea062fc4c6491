"""Packages of an environment: a release that another package does not allow is a conflict."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from importer.engines import package_conflicts
from importer.engines.deaths import DeathCause, Died
from importer.engines.package_conflicts import Conflict
from importer.engines.parser_worker.requirements import conflicts
from importer.reasons import Reason

ASKS = (
    "beta>=2,<3", "gamma; extra == 'more'", "delta; python_version < '3'", "absent>=1", "not a requirement",
)  # fmt: skip


def installed(folder: Path, name: str, version: str, *requires: str) -> None:
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir(parents=True)
    lines = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (made / "METADATA").write_text("\n".join(lines) + "\n")


def test_releases_are_compared_as_far_as_an_engine_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    installed(tmp_path, "alpha", "1.0", *ASKS, "setuptools==1")
    installed(tmp_path, "setuptools", "2")  # only builds
    installed(tmp_path, "beta", "2.5", "gamma==1.*", "alpha")
    installed(tmp_path, "gamma", "2.0rc1")
    installed(tmp_path, "delta", "1.0", "beta<1")  # nothing needs it
    away = ("alpha", "absent>=1", "")
    assert [*conflicts(["alpha", "none-of-these"])] == [away, ("beta", "gamma==1.*", "2.0rc1")]
    installed(tmp_path / "older", "beta", "1.9")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "older"), *sys.path])
    assert [*conflicts(["alpha"])] == [("alpha", "beta<3,>=2", "1.9"), away]
    installed(tmp_path / "extras", "omega", "1.0", "alpha[more]")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "extras"), str(tmp_path)])
    shutil.rmtree(tmp_path / "gamma-2.0rc1.dist-info")
    assert ("alpha", "gamma", "") in [*conflicts(["omega"])]  # its extra is asked for


def test_an_interpreter_is_asked_and_one_that_cannot_answer_has_none() -> None:
    python = Path(sys.executable)
    assert package_conflicts.conflicts_of(python, ("pytest",)) == ()
    assert package_conflicts.conflicts_of(Path("/bin/false"), ("pytest",)) == ()
    cause = DeathCause(Reason(Died.LAST_WORDS, words="broken"))
    assert package_conflicts.judged(cause, python, ("pytest",)) == cause


def test_an_end_in_a_wrong_environment_is_not_the_engine_s(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Conflict("mlx-lm", "transformers>=5", "4.30.0")
    monkeypatch.setattr(package_conflicts, "conflicts_of", lambda *_: (found,))
    cause = DeathCause(Reason(Died.LAST_WORDS, words="broken"))
    judged = package_conflicts.judged(cause, Path(sys.executable), ("mlx-lm",))
    assert (judged.attribution, judged.reason.kind) == ("environment", Died.PACKAGE_UNFIT)
    other = DeathCause(Reason(Died.LAST_WORDS, words="broken"), "configuration")
    assert package_conflicts.judged(other, Path(sys.executable), ("mlx-lm",)) == other
