"""A ninth blind round of faults and twins: what publishers and users do to models."""

from __future__ import annotations

from tests.faults import blind_i_files, blind_i_serving, blind_i_templates, blind_i_weights
from tests.faults.blind_i_mends import MENDS
from tests.faults.blind_i_twins import TWINS
from tests.faults.fault import Fault

__all__ = ("FAULTS", "MENDS", "TWINS")

FAULTS: tuple[Fault, ...] = (
    *blind_i_templates.FAULTS,
    *blind_i_files.FAULTS,
    *blind_i_weights.FAULTS,
    *blind_i_serving.FAULTS,
)
