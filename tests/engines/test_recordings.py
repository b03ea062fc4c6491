"""Recordings of parser workers: found by everything that decides an answer, and compared with an engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.engines.parsers import SCRIPT
from importer.engines.worker_process import JsonLinesWorker
from importer.launcher import Purpose, isolated
from tests import recordings
from tests.recordings import Mode, RecordedWorker, Recordings

FAULTY = Path(__file__).parents[1] / "faulty_worker.py"
Asked = Callable[[Mode, str], tuple[Recordings, bool]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Ask a worker for its name; returns the recordings, and whether a process answered."""
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    monkeypatch.setattr(recordings, "FILE", tmp_path / "answers.xz")
    monkeypatch.setattr(recordings, "_recorded", recordings._recorded.__wrapped__)

    def start() -> JsonLinesWorker:
        return JsonLinesWorker(isolated(str(FAULTY), python=sys.executable), Purpose.PARSERS, {})

    def ask(mode: Mode, kind: str) -> tuple[Recordings, bool]:
        kept = Recordings()
        kept.mode = mode
        worker = RecordedWorker(kept, kind, start)
        try:
            assert [*worker.ask("hello", 60)] == [{"engine": "faulty", "version": "1"}]
            return kept, worker.process is not None
        finally:
            worker.close()

    return ask


def test_an_engine_answers_what_is_not_recorded_of_its_kind(asked: Asked) -> None:
    kept, started = asked(Mode.RENEW, "one version")
    kept.write()
    assert started
    assert not asked(Mode.REPLAY, "one version")[1]
    assert asked(Mode.REPLAY, "another version")[1]
    assert asked(Mode.COMPARE, "one version")[1]


def test_another_answer_than_the_recorded_one_fails_a_comparison(asked: Asked) -> None:
    kept, _ = asked(Mode.RENEW, "one version")
    kept._renewed = dict.fromkeys(kept._renewed, '["another"]')
    kept.write()
    with pytest.raises(AssertionError, match="recorded"):
        asked(Mode.COMPARE, "one version")


def test_programs_beside_a_worker_decide_none_of_its_answers() -> None:
    modules = recordings._program(SCRIPT.parent, "mlx_worker")
    assert {"__main__", "mlx_worker", "serving", "wire"} <= modules.keys()
    assert not {"vllm_worker", "tokens"} & modules.keys()
