"""The tiers of a sweep: every run has one case of each kind, the others have a tier of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


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
