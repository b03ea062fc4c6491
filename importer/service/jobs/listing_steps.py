"""The jobs of an organisation: one lists its models, and each model has a job that imports it in one step."""

from __future__ import annotations

from collections.abc import Mapping

from importer.app.decide import finalize, prove_studied, study_snapshot
from importer.app.organisation import SKIPPED, refusal, snapshot_of
from importer.app.session import ImportSession
from importer.config_file.name_allocator import Names
from importer.errors import ImporterError
from importer.hub import organisation
from importer.hub.organisation import Entry, Page
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress
from importer.progress import Step as Part
from importer.service.domain.failures import failure
from importer.service.domain.gallery import Gallery
from importer.service.domain.import_request import LISTED, filters_of, request_of, stored
from importer.service.jobs.import_steps import need_choice, save
from importer.service.jobs.live_jobs import LiveJob, Stopped
from importer.service.jobs.steps import Result, Results, Step
from importer.service.settings import Settings
from importer.storage import jobs
from importer.storage.jobs import Job

USUAL = 10_000  # repositories of an import that names no limit
OWN = ("organisation", "filter", "limit", "next", "places")  # members of a request that imports do not have


class ListingSteps:
    """The step of a listing. Each page is one transaction, with the place where a later process goes on."""

    def __init__(self, gallery: Gallery, budget: Budget) -> None:
        self._gallery, self._budget = gallery, budget

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"list": self.list}

    def list(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Make a job for each model that the list names; those that it refuses have ended already."""
        body = stored(
            {key: value for key, value in live.job.request.items() if key not in ("next", "places")}
        )
        filters = organisation.parse_filters(filters_of(body))
        url = live.job.request.get("next") or organisation.first(str(body.organisation), filters)
        most, places = body.limit or USUAL, int(live.job.request.get("places", 0))
        with under(self._budget, progress):
            for page in organisation.pages(url, filters):
                places = self._keep(live, page, places, most)
                progress(Part(f"{places:,} listed", places, most))
                if places >= most:
                    break
        result = {"listed": places, "more": places >= most}
        with self._gallery.database.writing() as connection:
            if not jobs.end(connection, live.job, "succeeded", result=result):
                raise Stopped
        return result

    def _keep(self, live: LiveJob, page: Page, places: int, most: int) -> int:
        """Add the jobs of a page; return how many there are now."""
        job = live.job
        options = {key: value for key, value in job.request.items() if key not in OWN}
        entries = page.entries[: most - places]
        request = {**job.request, "next": page.following, "places": places + len(entries)}
        with self._gallery.database.writing() as connection:
            if not jobs.amend(connection, job, request):
                raise Stopped
            root = jobs.get(connection, job.root)
            for place, entry in enumerate(entries, places + 1):
                asked = {**options, "reference": entry.repo, LISTED: entry.to_json()}
                error = refusal(entry)
                if error is None:
                    jobs.create(connection, "listed", asked, job.by, root=root, place=place)
                else:
                    jobs.add_ended(connection, root, place, asked, skipped(entry.repo, error))
        return places + len(entries)


class ListedSteps:
    """The one step of a listed import: begun again by another process, it does the same from the caches."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings, budget: Budget) -> None:
        self._gallery, self._bench, self._settings, self._budget = gallery, bench, settings, budget

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"import": self.one}

    def one(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Import a model and end the job; one that cannot be imported is skipped with its reason."""
        job, bound = live.job, _Bound(self._budget)
        entry = Entry.from_json(job.request[LISTED])
        try:
            return self._import(job, entry, progress, bound)
        except ImporterError as error:
            if error.kind not in SKIPPED:
                raise
            result = skipped(entry.repo, error)
        with self._gallery.database.writing() as connection:
            if not jobs.end(connection, job, "succeeded", result=result, binds=bound.name):
                raise Stopped
        return result

    def _import(self, job: Job, entry: Entry, progress: Progress, bound: _Bound) -> Result:
        body = stored(job.request)
        with under(self._budget, progress):
            snapshot = snapshot_of(entry)
            request = request_of(body, self._settings)
            with self._gallery.checkout() as folder:
                request = request.after(Names(folder).known(snapshot, request.name, request.slot))
            studied = study_snapshot(snapshot, request, self._bench, progress)
            need_choice(studied, self._settings)
            decided = finalize(studied, prove_studied(studied, self._bench, progress), progress)
        return save(self._gallery, job, body, decided, bound.name)


class _Bound:
    """What holds up an import: the Hub's limit, where a request waited for it meanwhile."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._before = budget, budget.bound

    @property
    def name(self) -> str:
        """Return the name of what binds, as events have it."""
        return "hub-limit" if self._budget.bound > self._before else "workers"


def skipped(repo: str, error: ImporterError) -> dict[str, object]:
    """Return the result of a job without a document."""
    return {"skipped": error.kind, "model": repo, "error": failure(error)}
