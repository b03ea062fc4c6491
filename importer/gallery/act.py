"""Who does something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Act:
    """Who changes something, what it is called, why, the request that asked for it, and from where."""

    who: str
    action: str
    why: str | None = None
    request: str | None = None
    address: str | None = None
