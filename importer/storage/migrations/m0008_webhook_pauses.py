"""The pause of a webhook that failed, which new events heed, too."""

from __future__ import annotations

STATEMENTS = ("ALTER TABLE webhooks ADD COLUMN retry_at DOUBLE PRECISION NOT NULL DEFAULT 0",)
