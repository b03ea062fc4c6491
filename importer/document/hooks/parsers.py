"""Which of the engine's parsers reads the model's tool calls and thoughts."""

from __future__ import annotations

from importer.document import options
from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """As ``options``, each by its key."""
    draft.offer(options.KEY)
