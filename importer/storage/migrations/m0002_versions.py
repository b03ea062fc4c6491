"""Which version of the workflows a process runs, so that another one sees whose jobs nobody goes on with."""

from __future__ import annotations

STATEMENTS = ("ALTER TABLE executors ADD COLUMN version TEXT",)
