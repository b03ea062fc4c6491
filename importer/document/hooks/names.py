"""What every document says of itself: its name, its use, and whose chat template counts."""

from __future__ import annotations

from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """LocalAI's own keys for that."""
    draft.offer("name", "description", "known_usecases", "template")
