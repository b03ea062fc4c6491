"""The tiers of a sweep: every run has some of its cases, and each has a tier of its own."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

QUICK, SLOW = 2, 1  # cases of one test that stay in its tier


def one_of_each(
    cases: Iterable[Any], kind: Callable[[Any], object] = lambda _: None, tier: str = "nightly"
) -> list[Any]:
    """Mark all but the first case of each kind for a tier; a tuple has the arguments of a case."""
    seen, marked = set(), []
    for case in cases:
        marks = [getattr(pytest.mark, tier)] if kind(case) in seen else []
        marked.append(pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks))
        seen.add(kind(case))
    return marked


def sample(items: Iterable[pytest.Item]) -> None:
    """Move all but a few cases of each test one tier down: of a quick one to slow, of a slow one to nightly.

    A checksum of their names chooses them, so every process chooses alike. Engines' tests stay.
    """
    sweeps = defaultdict(list)
    for item in items:
        tiers = {mark for mark in ("engine", "slow", "nightly") if item.get_closest_marker(mark)}
        if tiers <= {"slow"}:
            sweeps[item.nodeid.partition("[")[0], *tiers].append(item)
    for (_, *slow), cases in sweeps.items():
        chosen = sorted(cases, key=lambda one: zlib.crc32(one.nodeid.encode()))
        for item in chosen[SLOW if slow else QUICK :]:
            item.add_marker(pytest.mark.nightly if slow else pytest.mark.slow)
