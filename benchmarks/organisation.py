"""``python -m benchmarks organisation``: an organisation of generated repositories, imported under limits.

A local Hub lists them and grants requests as the real one does, in shorter windows. The import is killed
twice and begun again. Time is counted as processor time of the importer and its children, so other work on
the machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import organisation_workers
from benchmarks.organisation_repositories import NAME, repositories
from benchmarks.row import HEADING, Row
from benchmarks.surroundings import bare
from importer.engines import get, install
from tests.hubserver import HubServer

QUOTAS = {"api": 1000, "resolvers": 5000}  # requests of a window of 300 s with a free account
REQUESTS, COMPUTE, GROWTH = 2.2, 40.0, 1.15  # budgets: requests, ms of processor time, memory


def main(arguments: list[str]) -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks organisation", description=__doc__)
    parser.add_argument("--repositories", type=int, default=1000, metavar="N")
    parser.add_argument(
        "--window", type=float, default=100.0, metavar="SECONDS", help="of the limits; the Hub: 300"
    )
    parser.add_argument("--unlimited", action="store_true", help="no limits at the Hub")
    parser.add_argument("--no-kills", action="store_true", help="let the import run undisturbed")
    parser.add_argument(
        "--workers", metavar="1,2,4", help="of a service with PostgreSQL, in place of --from-org"
    )
    chosen = parser.parse_args(arguments)
    print(HEADING)
    if chosen.workers is not None:
        counts = [int(one) for one in chosen.workers.split(",")]
        for row in organisation_workers.rows(chosen.repositories, counts, _engine()):
            print(row, flush=True)
        return 0
    for row in rows(
        chosen.repositories, None if chosen.unlimited else chosen.window, kills=not chosen.no_kills
    ):
        print(row, flush=True)
    return 0


def rows(number: int, window: float | None, *, kills: bool) -> Iterator[Row]:
    """Yield the figures of one organisation."""
    repos, gone = repositories(number)
    quotas = None if window is None else {kind: (most, window) for kind, most in QUOTAS.items()}
    with HubServer(repos, quotas=quotas) as hub, tempfile.TemporaryDirectory() as home:
        hub.hidden = gone
        run = _Run(hub, Path(home), proved=_engine())
        begun = time.perf_counter()
        if kills:
            for share in (1 / 3, 2 / 3):
                run.killed_at(int(share * 1.6 * number))
        summary = run.whole()
        seconds = time.perf_counter() - begun
        yield from _figures(number, run, summary, seconds, window)
        few = max(50, number // 10)
        hub.quotas, folder = {}, Path(home) / "few"
        folder.mkdir()
        small = _Run(hub, folder, proved=run.proved, limit=few)
        small.whole()
        cost = (run.processor - small.processor) / (number - few) * 1000
        yield Row(f"that of each beyond the first {few:,}, new templates included", f"{cost:.0f} ms", "")
        again = _Run(hub, Path(home), proved=run.proved, folder="again")
        imported = again.whole()["imported"]
        cost = again.processor / number * 1000
        yield Row("that of each, all templates known", f"{cost:.0f} ms", f"{COMPUTE:.0f} ms", cost <= COMPUTE)
        yield Row("that of each imported one", f"{again.processor / max(1, imported) * 1000:.0f} ms", "")
        grown = run.memory / small.memory
        what = f"memory of {number:,} to that of {few:,}"
        yield Row(what, f"{grown:.2f} x", f"{GROWTH:.2f} x", grown <= GROWTH)
        yield Row("largest resident memory of the process", f"{run.memory / 1024:.0f} MiB", "")


def _figures(
    number: int, run: _Run, summary: Mapping[str, Any], seconds: float, window: float | None
) -> Iterator[Row]:
    asked = Counter(path.partition("?")[0] for path in run.hub.paths())
    answered = sum(e.status < 300 for e in run.hub.log)
    each = len(run.hub.log) / number
    yield Row(f"{number:,} repositories: imported, skipped, failed", f"{summary['imported']:,}, "
              f"{sum(summary['skipped'].values()):,}, {sum(summary['failed'].values()):,}", "")  # fmt: skip
    yield Row("skipped by kind", ", ".join(f"{k} {n}" for k, n in summary["skipped"].items()), "")
    yield Row("failed by kind", ", ".join(f"{k} {n}" for k, n in summary["failed"].items()) or "–", "")
    yield Row("requests for each repository of the list", f"{each:.2f}", f"{REQUESTS}", each <= REQUESTS)
    yield Row("requests for each imported one", f"{len(run.hub.log) / max(1, summary['imported']):.2f}", "")
    yield Row("requests that were refused by the limit", str(sum(e.status == 429 for e in run.hub.log)), "")
    cost = run.processor / number * 1000
    yield Row(
        "processor time for each, all processes", f"{cost:.0f} ms", f"{COMPUTE:.0f} ms", cost <= COMPUTE
    )
    cost = run.processor / max(1, summary["imported"]) * 1000
    yield Row("processor time for each imported one", f"{cost:.0f} ms", "")
    yield Row("whole run", f"{seconds:.0f} s, {number / seconds:.1f}/s", "")
    if window is not None:
        calls = sum(n for path, n in asked.items() if path.startswith("/api/"))
        least = max(0.0, (calls / QUOTAS["api"] - 1) * window)
        yield Row(
            f"of that the limit takes at least ({QUOTAS['api']} calls in {window:.0f} s)",
            f"{least:.0f} s",
            "",
        )
    twice = sum(n - 1 for path, n in asked.items() if n > 1 and path != "/api/models")
    yield Row("answered requests; files and repositories asked twice", f"{answered:,}; {twice}",
              f"{16 * run.kills}", twice <= 16 * run.kills)  # fmt: skip
    found = f"{run.documents():,}; {run.rewritten}"
    yield Row("documents; written after a kill although they were there", found,
              f"{16 * run.kills}", run.rewritten <= 16 * run.kills)  # fmt: skip


class _Run:
    """An import of the organisation, that may be killed and begun again."""

    def __init__(
        self,
        hub: HubServer,
        home: Path,
        *,
        proved: str | None,
        limit: int | None = None,
        folder: str = "models",
    ) -> None:
        self.hub, self.home, self.proved = hub, home, proved
        self.processor, self.memory, self.kills, self.rewritten = 0.0, 0, 0, 0
        self._models = home / folder
        self._words = [
            "--from-org",
            NAME,
            "--json",
            "--yes",
            "--dir",
            str(home / "models"),
            "--backend",
            "mlx",
        ]
        self._words += [] if limit is None else ["--limit", str(limit)]
        self._known: dict[str, int] = {}

    def killed_at(self, requests: int) -> None:
        """Kill a run once the Hub has had so many requests."""
        process = self._start(subprocess.DEVNULL)
        while len(self.hub.log) < requests and process.poll() is None:
            time.sleep(0.02)
        self._known = {p.name: p.stat().st_mtime_ns for p in self._models.glob("*.yaml")}
        os.killpg(process.pid, signal.SIGKILL)
        self._ended(process, -signal.SIGKILL)
        self.kills += 1

    def whole(self) -> dict[str, Any]:
        """Return the summary of a run that nobody kills."""
        with tempfile.TemporaryFile("w+") as out:
            self._ended(self._start(out), 0)
            out.seek(0)
            last = ""
            for line in out:
                last = line
        summary: dict[str, Any] = json.loads(last)["summary"]
        return summary

    def documents(self) -> int:
        """Return the number of documents."""
        return sum(1 for _ in self._models.glob("*.yaml"))

    def _start(self, out: Any) -> subprocess.Popen[str]:
        folders = {"HF_HOME": f"{self.home}/hf", "IMPORTER_HOME": f"{self.home}/home"}
        engine = {} if self.proved is None else {"IMPORTER_MLX_PYTHON": self.proved}
        environment = bare(HF_ENDPOINT=self.hub.url, **folders, **engine)
        command = [sys.executable, "-m", "importer", *self._words]
        return subprocess.Popen(
            command, env=environment, stdout=out, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )

    def _ended(self, process: subprocess.Popen[str], code: int) -> None:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != code:
            raise SystemExit(f"the import ended with {process.returncode}")
        self.processor += usage.ru_utime + usage.ru_stime
        self.memory = max(self.memory, usage.ru_maxrss)
        now = {n: (self._models / n).stat().st_mtime_ns for n in self._known}
        self.rewritten += sum(now[name] != at for name, at in self._known.items())


def _engine() -> str | None:
    """Return the Python of mlx-lm, whose parsers prove the templates; ``None`` where it is not installed."""
    found = install.find(get("mlx"))
    return None if found is None else str(found.python)
