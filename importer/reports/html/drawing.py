"""The numbers of the drawings of the page, and texts for its templates beside those of every report."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from importer.reports import report_model
from importer.reports.report_model import ProbeOutcome

BAR = 80  # units of an interval's bar


class Segment(NamedTuple):
    """A piece of a bar: its class, its beginning and its width, in units."""

    kind: str
    x: str
    width: str


def bar(outcome: ProbeOutcome) -> Segment | None:
    """Return the interval of a probe's trials on a line from 0 to 100 %."""
    if outcome.interval is None:
        return None
    low, high = (max(0.0, min(1.0, end)) for end in outcome.interval)
    return Segment(outcome.outcome, f"{BAR * low:.1f}", f"{max(1.0, BAR * (high - low)):.1f}")


def trials(outcome: ProbeOutcome) -> str:
    """Return the share of agreeing trials as text."""
    return report_model.trials(outcome.agreed, outcome.trials, outcome.interval)


def anchor(probe: str) -> str:
    """Return the anchor of a probe in the page."""
    return "probe-" + re.sub(r"[^a-z0-9-]", "-", probe.lower())


def indented(data: Any) -> str:
    """Return a request as JSON over several lines."""
    return json.dumps(data, indent=1, ensure_ascii=False)
