"""Numbers of the page's drawings, and texts that its templates need beside those of every report."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from importer.reports import report_model
from importer.reports.report_model import Found

BAR = 80  # units of an interval's bar
LINE = 400  # units of the bar of times
PARTS = ("start", "probes", "stop")


class Segment(NamedTuple):
    """A piece of a bar: its class, and where it begins and how wide it is, in units."""

    kind: str
    x: str
    width: str


def segments(seconds: Mapping[str, float]) -> list[Segment]:
    """Return the bar of start, probes and stop; nothing where no time passed."""
    total, at, made = sum(seconds.values()), 0.0, []
    if total <= 0:
        return []
    for part, spent in seconds.items():
        wide = LINE * spent / total
        made.append(Segment(part if part in PARTS else "ground", f"{at:.1f}", f"{wide:.1f}"))
        at += wide
    return made


def bar(found: Found) -> Segment | None:
    """Return the interval of a probe's trials on a line from 0 to 100 %."""
    if found.interval is None:
        return None
    low, high = (max(0.0, min(1.0, end)) for end in found.interval)
    return Segment(found.outcome, f"{BAR * low:.1f}", f"{max(1.0, BAR * (high - low)):.1f}")


def trials(found: Found) -> str:
    """Return how many trials agreed, in words."""
    return report_model.trials(found.agreed, found.trials, found.interval)


def anchor(probe: str) -> str:
    """Return a probe's place in the page."""
    return "probe-" + re.sub(r"[^a-z0-9-]", "-", probe.lower())


def indented(data: Any) -> str:
    """Return a request as JSON over several lines."""
    return json.dumps(data, indent=1, ensure_ascii=False)
