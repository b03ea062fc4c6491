"""Forty faults and eight unharmed twins of letter r."""

from __future__ import annotations

from tests.faults import blind_r_machine, blind_r_mends, blind_r_serving, blind_r_templates, blind_r_twins
from tests.faults import blind_r_weights as weights
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *blind_r_templates.FAULTS,
    *weights.FAULTS,
    *blind_r_serving.FAULTS,
    *blind_r_machine.FAULTS,
)
TWINS: tuple[Fault, ...] = blind_r_twins.TWINS
MENDS = blind_r_mends.MENDS
