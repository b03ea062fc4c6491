"""Round l: forty faults and eight twins, planted by an author who did not know the probes."""

from __future__ import annotations

from tests.faults import blind_l_machine, blind_l_serving, blind_l_templates, blind_l_twins, blind_l_weights
from tests.faults.blind_l_mends import MENDS

__all__ = ["FAULTS", "MENDS", "TWINS"]

FAULTS = (
    *blind_l_templates.FAULTS,
    *blind_l_weights.FAULTS,
    *blind_l_serving.FAULTS,
    *blind_l_machine.FAULTS,
)
TWINS = blind_l_twins.TWINS
