"""The engine's own settings: context length, data type, memory, its further arguments."""

from __future__ import annotations

from importer.document.hooks.draft import Draft


def offer(draft: Draft) -> None:
    """Everything else that an import would write for this engine."""
    draft.offer(*draft.plan)
