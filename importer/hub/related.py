"""Repositories quantised from another, as the Hub lists them: request, reader, a cache of a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from importer.frozen import frozen
from importer.hub import snapshot
from importer.hub.reference import is_id
from importer.reasons import Reason, ReasonKind

RELATION = "base_model:"  # of the Hub's tags: ``base_model:quantized:owner/name``
TAG = f"{RELATION}quantized:"  # the Hub derives it from ``base_model`` of a card
MOST = 40  # repositories of one answer
MOST_VALUES = 100_000  # of the JSON, counted before the parse
MOST_TAGS, LONGEST_TAG = 200, 200
MOST_TYPES, LONGEST_TYPE = 32, 20


class RelatedReason(ReasonKind):
    """Reasons for an unknown list of quantised repositories."""

    OFFLINE = "offline", "the Hub was not asked, and no answer of it is stored"
    FAILED = "failed", "{problem}"
    MALFORMED = "malformed", "the Hub's answer could not be read"


@frozen
class RelatedRepository:
    """A listed repository, as its owner and the Hub describe it.

    ``block``       the part of its ``quantization_config`` that the Hub shows.
    ``parameters``  their number by type (``BF16``, ``F8_E4M3`` …); packed types may hold several in one.
    """

    repo: str
    downloads: int = 0
    tags: tuple[str, ...] = ()
    block: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)


@frozen
class RelatedRepositories:
    """The listed repositories, those with the most downloads first; ``problem`` where the list is unknown."""

    repositories: tuple[RelatedRepository, ...] = ()
    problem: Reason | None = None


def parse(body: bytes, repo: str) -> tuple[RelatedRepository, ...]:
    """Return the listed repositories that carry the tag; entries without a valid id are left out.

    Raises RepositoryError("broken-json"), and ValueError for too many values and for a body that is no text.
    """
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise ValueError("too many values")
    data = snapshot.parse_object(f'{{"listed": {body.decode()}}}', "models", repo)
    entries = [snapshot.mapping(entry) for entry in snapshot.listed(data.get("listed"))[:MOST]]
    found = [one for entry in entries if (one := _repository(entry, repo)) is not None]
    return tuple(sorted(found, key=lambda one: -one.downloads))


def _repository(entry: Mapping[str, object], repo: str) -> RelatedRepository | None:
    name = snapshot.text(entry.get("id")) or snapshot.text(entry.get("modelId"))
    tags = tuple(
        t
        for t in snapshot.listed(entry.get("tags"))[:MOST_TAGS]
        if isinstance(t, str) and len(t) <= LONGEST_TAG
    )
    if name is None or not is_id(name) or name == repo or (TAG + repo).lower() not in map(str.lower, tags):
        return None
    block = snapshot.mapping(snapshot.mapping(entry.get("config")).get("quantization_config"))
    counts = snapshot.mapping(snapshot.mapping(entry.get("safetensors")).get("parameters"))
    parameters = {
        kind[:LONGEST_TYPE]: number
        for kind, count in list(counts.items())[:MOST_TYPES]
        if (number := snapshot.whole(count)) is not None
    }
    return RelatedRepository(name, snapshot.whole(entry.get("downloads")) or 0, tags, block, parameters)
