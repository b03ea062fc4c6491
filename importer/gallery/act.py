"""Who does something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Act:
    """Who changes something, what it is called, why, and the request that asked for it."""

    who: str
    action: str
    why: str | None = None
    request: str | None = None
