"""The blind round p: faults and unharmed twins by an author who had not seen how faults are looked for."""

from __future__ import annotations

from tests.faults import (
    blind_p_machine,
    blind_p_mends,
    blind_p_serving,
    blind_p_templates,
    blind_p_twins,
    blind_p_weights,
)

FAULTS = (
    *blind_p_templates.FAULTS,
    *blind_p_weights.FAULTS,
    *blind_p_serving.FAULTS,
    *blind_p_machine.FAULTS,
)
TWINS = blind_p_twins.TWINS
MENDS = blind_p_mends.MENDS
