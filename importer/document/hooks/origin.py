"""Where the model comes from, at which commit, and what was found out about it."""

from __future__ import annotations

from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """LocalAI's artifacts and the importer's own block."""
    draft.offer("artifacts", "importer")
