"""Traps to plant for the doctor: a made-up system, engines half there, and what a result must say."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.cli import messages
from importer.demo import MODEL
from importer.engines import get
from importer.engines.doctor import DoctorCase, Fine, Result, Trouble
from importer.engines.install import Installed


def stopped(result: Result, *words: str) -> None:
    """A trouble that ends a run, with a remedy, in these words."""
    assert isinstance(result, Trouble), result
    assert result.stops
    told = f"{messages.text(result.reason)} {messages.text(result.remedy)}"
    for word in words:
        assert word in told


def warned(result: Result, *words: str) -> None:
    """A trouble that does not."""
    assert isinstance(result, Trouble), result
    stopped(replace(result, stops=True), *words)
    assert not result.stops


def fine(result: Result, word: str = "") -> None:
    assert isinstance(result, Fine), result
    assert word in messages.text(result.reason)


def skipped(result: Result) -> None:
    assert result is None


def system(root: Path, files: Mapping[str, str]) -> Path:
    """A machine's files, planted below ``root``."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def engine(
    tmp_path: Path, name: str, found: Mapping[str, str], files: Mapping[str, str] | None = None, **more: Any
) -> DoctorCase:
    """An engine's environment: ``name-version`` to lines of metadata, and files beside them."""
    root = tmp_path / "engine"
    site = root / "venv" / "lib" / "python3.11" / "site-packages"
    for distribution, lines in found.items():
        spelled, _, version = distribution.rpartition("-")
        text = f"Metadata-Version: 2.1\nName: {spelled}\nVersion: {version}\n{lines}\n"
        system(site / f"{spelled}-{version}.dist-info", {"METADATA": text})
    system(site, files or {})
    installed = Installed(name, "1", root / "venv" / "bin" / "python", "managed", root)
    return DoctorCase(engine=get(name), installed=installed, system="linux", arch="x86_64", **more)


DOCUMENT = {"name": "toy", "backend": "mlx"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(MODEL, tmp_path / "model")
