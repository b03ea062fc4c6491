"""The vendor's sampling values."""

from __future__ import annotations

from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """``parameters`` and the stop words, which are of the model and not of an engine."""
    draft.offer("parameters", "stopwords")
