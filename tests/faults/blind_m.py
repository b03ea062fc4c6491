"""The round of author m: forty faults, eight twins, and what mends each fault."""

from __future__ import annotations

from tests.faults import blind_m_machine, blind_m_serving, blind_m_templates, blind_m_weights
from tests.faults.blind_m_mends import MENDS
from tests.faults.blind_m_twins import TWINS

__all__ = ["FAULTS", "MENDS", "TWINS"]

FAULTS = (
    *blind_m_templates.FAULTS,
    *blind_m_weights.FAULTS,
    *blind_m_serving.FAULTS,
    *blind_m_machine.FAULTS,
)
