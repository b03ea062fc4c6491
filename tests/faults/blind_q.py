"""The blind round q: forty faults, eight twins, and a remedy for each fault."""

from __future__ import annotations

from tests.faults import blind_q_machine, blind_q_serving, blind_q_templates, blind_q_weights
from tests.faults.blind_q_mends import MENDS
from tests.faults.blind_q_twins import TWINS
from tests.faults.fault import Fault

__all__ = ["FAULTS", "MENDS", "TWINS"]

FAULTS: tuple[Fault, ...] = (
    *blind_q_templates.FAULTS,
    *blind_q_weights.FAULTS,
    *blind_q_serving.FAULTS,
    *blind_q_machine.FAULTS,
)
