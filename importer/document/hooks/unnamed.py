"""A document that leaves its backend open gets the one that was decided."""

from __future__ import annotations

from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """A backend that is there and empty stays empty."""
    draft.offer("backend")
