"""The blind round j."""

from __future__ import annotations

from tests.faults.blind_j_machine import MACHINE
from tests.faults.blind_j_mends import MENDS
from tests.faults.blind_j_serving import SERVING
from tests.faults.blind_j_templates import TEMPLATES
from tests.faults.blind_j_twins import TWINS
from tests.faults.blind_j_weights import WEIGHTS

__all__ = ["FAULTS", "MENDS", "TWINS"]
FAULTS = (*TEMPLATES, *WEIGHTS, *SERVING, *MACHINE)
