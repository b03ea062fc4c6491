"""Parser workers that replay recordings, and outlive a test where an engine has to answer."""

from __future__ import annotations

import atexit
from collections.abc import Hashable

import pytest

from importer import launcher
from importer.engines import parsers
from importer.engines.parsers import SETTINGS, ParserWorker
from importer.engines.worker_process import JsonLinesWorker
from importer.launcher import Purpose
from tests.recordings import RECORDINGS, RecordedWorker

UNREAD = {"HF_HOME"}  # a worker is offline, and reads the folder that a question names
MOST = 2  # idle workers of a process: each holds 0.3 to 0.7 GB


class WarmWorkers:
    """Idle processes of parser workers that were left in order, handed to the next of the same kind.

    They are real processes, asked over their real pipes, as the second import of a session asks them.
    One that was lost is never kept. ``fresh_workers`` is for tests of the start and the end of a process.
    """

    def __init__(self) -> None:
        self.enabled = True
        self._idle: dict[Hashable, JsonLinesWorker] = {}

    def install(self) -> None:
        """Stand between every parser worker of this process and its process."""
        start = ParserWorker._start

        def started(worker: ParserWorker) -> JsonLinesWorker:
            kept = self._idle.pop(_kind(worker), None)
            if kept is not None and kept._process.poll() is None:
                return kept
            if kept is not None:
                kept.close()
            before = worker._conversation
            start(worker)
            process, worker._conversation = worker._conversation, before
            assert process is not None
            return process

        def take(worker: ParserWorker) -> None:
            recorded = RECORDINGS.of(worker, lambda: started(worker)) if self.enabled else None
            if recorded is not None:
                worker._conversation = recorded
            elif self.enabled:
                worker._conversation = started(worker)
            else:
                start(worker)

        def leave(worker: ParserWorker, *_: object) -> None:
            asked = worker._conversation
            kept = asked.process if isinstance(asked, RecordedWorker) else asked
            if self.enabled and kept is not None and kept._process.poll() is None:
                worker._conversation = None
                self._keep(_kind(worker), kept)
            worker.close()

        setattr(ParserWorker, "_start", take)  # noqa: B010 - mypy lets no method be assigned
        setattr(ParserWorker, "__exit__", leave)  # noqa: B010
        atexit.register(self.end)

    def _keep(self, kind: Hashable, process: JsonLinesWorker) -> None:
        before = self._idle.pop(kind, None)
        self._idle[kind] = process
        oldest = next(iter(self._idle)) if len(self._idle) > MOST else None
        for one in (before, None if oldest is None else self._idle.pop(oldest)):
            if one is not None:
                one.close()

    def end(self) -> None:
        """End them all."""
        while self._idle:
            self._idle.popitem()[1].close()


def _kind(worker: ParserWorker) -> Hashable:
    """What a process was started with: its Python, its script, its environment."""
    variables = launcher.environment(Purpose.PARSERS, SETTINGS)
    return (
        str(worker.python), str(parsers.SCRIPT), worker.name,
        *sorted((name, value) for name, value in variables.items() if name not in UNREAD),
    )  # fmt: skip


WARM_WORKERS = WarmWorkers()


@pytest.fixture
def fresh_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parser worker starts a process of its own and ends it."""
    monkeypatch.setattr(WARM_WORKERS, "enabled", False)
