"""A blind round, o: faults by an author who did not know how they are looked for."""

from __future__ import annotations

from tests.faults import (
    blind_o_machine,
    blind_o_mends,
    blind_o_serving,
    blind_o_templates,
    blind_o_twins,
    blind_o_weights,
)
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *blind_o_templates.FAULTS,
    *blind_o_weights.FAULTS,
    *blind_o_serving.FAULTS,
    *blind_o_machine.FAULTS,
)
TWINS: tuple[Fault, ...] = blind_o_twins.TWINS
MENDS = blind_o_mends.MENDS
