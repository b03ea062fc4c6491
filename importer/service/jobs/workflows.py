"""The durable workflows: the steps of a job in order, each recorded when it is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from dbos import DBOS, StepOptions
from sqlalchemy.exc import OperationalError

from importer.app.decide import Progress
from importer.errors import ImporterError, InternalError
from importer.gallery.jobs import Job
from importer.service import telemetry
from importer.service.api.problems import problem
from importer.service.jobs import crew
from importer.service.jobs.memory import Stopped

TRIES = 100  # times that a workflow is begun again after its process died
LOG = logging.getLogger(__name__)
Said = Mapping[str, Any]
Step = Callable[[Job, Said, Progress], Said]


@DBOS.workflow(name="import", max_recovery_attempts=TRIES)
def import_model(ident: str, attempt: int) -> None:
    """Import one model."""
    work = crew.current().importing
    _run(
        ident,
        attempt,
        {"resolve": work.resolve, "decide": work.decide, "prove": work.prove, "store": work.store},
    )


@DBOS.workflow(name="validation", max_recovery_attempts=TRIES)
def validate_config(ident: str, attempt: int) -> None:
    """Validate one document on this process's device."""
    work = crew.current().validating
    _run(ident, attempt, {"weights": work.weights, "run": work.run, "store": work.store})


def _run(ident: str, attempt: int, steps: Mapping[str, Step]) -> None:
    """All steps; the first that does not go on ends the job."""
    said: dict[str, Any] = {}
    held = crew.current().held
    try:
        for name, step in steps.items():
            options: StepOptions = {
                "name": name, "retries_allowed": True, "max_attempts": 5, "should_retry": _database,
            }  # fmt: skip
            told = DBOS.run_step(options, _step, ident, attempt, name, step, said)
            if "ended" in told:
                return
            said[name] = told
    finally:
        held.drop(ident)


def _database(error: BaseException) -> bool:
    """A database that is away for a moment is asked again."""
    return isinstance(error, OperationalError)


def _step(ident: str, attempt: int, name: str, step: Step, said: Said) -> Said:
    """One step, or how the job ended instead."""
    with telemetry.of_job(ident):
        begun = time.monotonic()
        told = _done(ident, attempt, name, step, said)
        seconds = round(time.monotonic() - begun, 3)
        LOG.info("%s", name, extra={"said": {"step": name, "seconds": seconds, "ended": told.get("ended")}})
        return told


def _done(ident: str, attempt: int, name: str, step: Step, said: Said) -> Said:
    team = crew.current()
    job = team.begin(ident, attempt, name)
    if job is None:
        return {"ended": "it is no longer this attempt's"}
    progress = team.progress(job)
    try:
        progress.check()
        return step(job, said, progress)
    except Stopped:
        return {"ended": "it was cancelled"}
    except Exception as error:  # one job must not take the others with it
        return _failed(team, job, progress, error)


def _failed(team: crew.Crew, job: Job, progress: crew.Saying, error: Exception) -> Said:
    """How a job ends on a failure; one that comes of being stopped is none."""
    try:
        progress.check()
    except Stopped:
        return {"ended": "it was cancelled"}
    if isinstance(error, OperationalError):
        raise error
    if isinstance(error, ImporterError):
        return team.fail(job, problem(error))
    LOG.error("job %s failed", job.id, exc_info=error)
    return team.fail(job, problem(InternalError("internal", problem=f"{type(error).__name__}: {error}")))
