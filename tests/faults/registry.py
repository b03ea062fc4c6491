"""All faults, in the order of the matrix: one module for each kind, one line each."""

from __future__ import annotations

from tests.faults import parsers, samplings, servers, settings, starts, templates, thoughts, tokens, weights
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *parsers.FAULTS,
    *thoughts.FAULTS,
    *templates.FAULTS,
    *tokens.FAULTS,
    *samplings.FAULTS,
    *settings.FAULTS,
    *servers.FAULTS,
    *weights.FAULTS,
    *starts.FAULTS,
)
