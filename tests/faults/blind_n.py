"""The blind round ``n``: forty faults, eight twins, and what a person must change."""

from __future__ import annotations

from tests.faults import (
    blind_n_machine,
    blind_n_mends,
    blind_n_serving,
    blind_n_templates,
    blind_n_twins,
    blind_n_weights,
)

FAULTS = (
    *blind_n_templates.FAULTS,
    *blind_n_weights.FAULTS,
    *blind_n_serving.FAULTS,
    *blind_n_machine.FAULTS,
)
TWINS = blind_n_twins.TWINS
MENDS = blind_n_mends.MENDS
