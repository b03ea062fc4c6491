"""The Hub's search for models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from importer.errors import HubError
from importer.frozen import frozen
from importer.hub import client, endpoint, snapshot
from importer.hub.reference import is_id
from importer.reasons import Reason, ReasonKind

LONGEST = 1024 * 1024  # bytes of an answer
MOST_VALUES = 4_000_000  # of the JSON, counted before the parse


class SearchReason(ReasonKind):
    """Reasons why an answer cannot be used."""

    LONG = "long", "it is longer than {limit:,} bytes"
    VALUES = "values", "it holds more than {limit:,} values"
    NO_LIST = "no-list", "it is no JSON list"


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
        raise client.unusable(url, Reason(SearchReason.LONG, limit=LONGEST)) from None
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
    if sum(answer.body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise client.unusable(url, Reason(SearchReason.VALUES, limit=MOST_VALUES))
    try:
        rows = snapshot.written(text := answer.body.decode(), json.loads(text))
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise client.unusable(url, Reason(SearchReason.NO_LIST))
    return {name: row for row in rows if isinstance(row, Mapping) and is_id(name := str(row.get("id")))}
