"""The version of the steps that a process runs, so that jobs without such a process are found."""

from __future__ import annotations

STATEMENTS = ("ALTER TABLE executors ADD COLUMN version TEXT",)
