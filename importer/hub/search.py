"""The Hub's search for models."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from importer.errors import HubError
from importer.frozen import frozen
from importer.hub import client, endpoint, snapshot
from importer.hub.listing import ListingReason, MalformedListing, json_list
from importer.hub.reference import is_id
from importer.reasons import Reason

LONGEST = 1024 * 1024  # bytes of an answer


@frozen
class Hit:
    """A public repository that a search found."""

    repo: str
    downloads: int | None
    likes: int | None
    gated: bool
    task: str | None


def search(text: str, limit: int) -> list[Hit]:
    """Return the public models that the Hub finds for a text, the most downloaded first; one request.

    A private repository is left out: the token is the server's, and the text another person's.
    Raises HubError.
    """
    query = [("search", text), ("sort", "downloads"), ("direction", -1), ("limit", limit)]
    query += [("expand[]", one) for one in ("downloads", "gated", "likes", "pipeline_tag", "private")]
    url = f"{client.check_endpoint()}/api/models?{urlencode(query)}"
    try:
        answer = client.get(url, limit=LONGEST)
    except client.TooLarge:
        raise client.unusable(url, Reason(ListingReason.LARGE)) from None
    return [
        Hit(
            name,
            snapshot.whole(row.get("downloads")),
            snapshot.whole(row.get("likes")),
            bool(row.get("gated")),
            snapshot.text(row.get("pipeline_tag")),
        )
        for name, row in [*_rows(url, answer).items()][:limit]
        if row.get("private") is not True
    ]


def _rows(url: str, answer: client.HubResponse) -> dict[str, Mapping[str, object]]:
    """Return the rows of a list by their ids; raises HubError for an answer that is no list."""
    if answer.status == 401:
        raise HubError("bad-token", said=answer.said)
    if answer.status != 200:
        raise HubError("server", status=answer.status, url=endpoint.plain(url), tries=1, said=answer.said)
    try:
        rows = json_list(answer.body)
    except MalformedListing as error:
        raise client.unusable(url, error.reason) from None
    return {name: row for row in rows if isinstance(row, Mapping) and is_id(name := str(row.get("id")))}
