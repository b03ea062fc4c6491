"""The request for repositories that the Hub lists as quantised from another; the answer is kept for a day."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from urllib.parse import urlencode

from importer import config
from importer.errors import HubError, RepositoryError
from importer.hub import cache, client, endpoint
from importer.hub.client import Deadline
from importer.hub.listing import refusal
from importer.hub.related import MOST, TAG, RelatedReason, RelatedRepositories, RelatedRepository, parse
from importer.reasons import Reason

FIELDS = ("tags", "downloads", "config", "safetensors")


LONGEST = 4 * 1024 * 1024  # bytes; each configuration has its chat template in it


FRESH = timedelta(days=1)


# An import does without the answer, so it waits seconds only.
PATIENCE = Deadline(connect=5.0, read=10.0, whole=15.0, waits=2.0, tries=2)


def quantised_from(repo: str, *, offline: bool = False) -> RelatedRepositories:
    """Return the repositories with weights quantised from ``repo``; never raises for the Hub's answer.

    The source is the Hub's own tag ``base_model:quantized:``. An answer of the last day is used again.
    Offline and after a failure, one of any age is used.
    """
    kept, at = _kept(repo)
    if (
        kept is not None
        and at is not None
        and timedelta(0) <= datetime.fromisoformat(config.now()) - at < FRESH
    ):
        return RelatedRepositories(kept)
    if offline or endpoint.offline():
        problem = Reason(RelatedReason.OFFLINE)
    else:
        try:
            found = _ask(repo)
        except HubError as error:
            problem = Reason(RelatedReason.FAILED, problem=error.message)
        except (client.TooLarge, RepositoryError, ValueError):
            problem = Reason(RelatedReason.MALFORMED)
        else:
            cache.store_related(repo, config.now(), [asdict(one) for one in found])
            return RelatedRepositories(found)
    return RelatedRepositories(problem=problem) if kept is None else RelatedRepositories(kept)


def _ask(repo: str) -> tuple[RelatedRepository, ...]:
    query = [("filter", TAG + repo), ("filter", "safetensors"), ("sort", "downloads"), ("limit", MOST)]
    query += [("expand", name) for name in FIELDS]
    answer = client.get(
        f"{client.check_endpoint()}/api/models?{urlencode(query)}", limit=LONGEST, patience=PATIENCE
    )
    if answer.status != 200:
        raise refusal(answer, repo, None)
    return parse(answer.body, repo)


def _kept(repo: str) -> tuple[tuple[RelatedRepository, ...] | None, datetime | None]:
    """Return the kept repositories and the time of their answer; ``None`` for both without any."""
    stored = cache.load_related(repo)
    try:
        at = datetime.fromisoformat(stored["at"])
        rows = [RelatedRepository(**{**row, "tags": tuple(row["tags"])}) for row in stored["repositories"]]
    except (KeyError, TypeError, ValueError):
        return None, None
    return (tuple(rows), at) if at.tzinfo is not None else (None, None)
