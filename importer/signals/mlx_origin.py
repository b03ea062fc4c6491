"""Evidence that a repository was made for MLX: its library, its tags, and its owner."""

from __future__ import annotations

from importer.hub.snapshot import Snapshot, listed
from importer.signals.evidence import Source

MLX = "mlx"
OWNER = "mlx-community"  # publishes conversions to MLX alone


def made_for_mlx(snapshot: Snapshot) -> tuple[str, str] | None:
    """Return the source and its words, where the repository is one for MLX; else ``None``.

    Weights of MLX without quantisation have the format of all others, so only these words name their engine.
    """
    card = snapshot.info.get("card")
    named = card.get("library_name") if isinstance(card, dict) else None
    if MLX in (snapshot.info.get("library_name"), named):
        return Source.HUB, f"library_name: {MLX}"
    if MLX in listed(snapshot.info.get("tags")):
        return Source.HUB, f"tags: {MLX}"
    if (snapshot.model_id or "").partition("/")[0].lower() == OWNER:
        return Source.NAME, str(snapshot.model_id)
    return None
