"""The round k, written by somebody who knows no probe: forty faults and eight harmless twins."""

from __future__ import annotations

from tests.faults import blind_k_machine, blind_k_serving, blind_k_templates, blind_k_weights
from tests.faults.blind_k_mends import MENDS
from tests.faults.blind_k_twins import TWINS

FAULTS = (
    *blind_k_templates.FAULTS,
    *blind_k_weights.FAULTS,
    *blind_k_serving.FAULTS,
    *blind_k_machine.FAULTS,
)

__all__ = ["FAULTS", "MENDS", "TWINS"]
