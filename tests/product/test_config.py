"""The folders of data, caches and logs: the system's, or all below ``IMPORTER_HOME``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from importer import config


@pytest.mark.skipif(sys.platform != "linux", reason="macOS names its own folders")
def test_each_kind_has_the_folder_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IMPORTER_HOME", raising=False)
    for name in ("DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    assert config.home() == tmp_path / "DATA" / "importer"
    assert config.cache() == tmp_path / "CACHE" / "importer"
    assert config.logs() == tmp_path / "STATE" / "importer" / "log"


def test_one_variable_holds_all_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    assert (config.home(), config.cache(), config.logs()) == (tmp_path, tmp_path / "cache", tmp_path / "logs")
