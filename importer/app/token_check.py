"""Every token has a row in the embedding: what an import refuses, and what it warns of."""

from __future__ import annotations

from importer.errors import HubError, RepositoryError
from importer.hub.snapshot import Snapshot
from importer.memory import weights
from importer.signals import token_numbers
from importer.signals.evidence import Evidence


def check_tokens(snapshot: Snapshot, template: str, *, offline: bool) -> list[Evidence]:
    """Return a warning about tokens beyond the embedding that a user may write.

    The headers of the weights are read only where config.json has too few rows. Raises
    RepositoryError("tokens-beyond") where every conversation has such a token.
    """
    numbers, named = token_numbers.declared(snapshot), token_numbers.size(snapshot)
    found = token_numbers.beyond(snapshot, numbers, named, template)
    if not found or named is None:
        return []
    rows = _rows(snapshot, offline=offline)
    if rows is None:  # config.json alone refuses nothing
        return [token_numbers.evidence(found, named, exact=False)]
    found = token_numbers.beyond(snapshot, numbers, rows, template)
    needed = tuple(token.content for token in found if token.needed)
    if needed:
        raise RepositoryError("tokens-beyond", repo=snapshot.label, tokens=", ".join(needed[:3]), rows=rows)
    return [token_numbers.evidence(found, rows, exact=True)] if found else []


def _rows(snapshot: Snapshot, *, offline: bool) -> int | None:
    """Return the rows by the headers of the weights; ``None`` where they cannot be read."""
    from importer.hub import tensor_headers
    from importer.memory import embedding

    try:
        return embedding.rows(tensor_headers.tensors(snapshot, weights.files(snapshot), offline=offline))
    except (HubError, RepositoryError):
        return None
