"""A blind round: what operators do to engines, gateways, machines, templates and weights.

Its author knows none of the probes. ``MENDS`` has the right remedy of each fault.
"""

from __future__ import annotations

from tests.faults import blind_h_configuration, blind_h_machine, blind_h_weights
from tests.faults.blind_h_mends import MENDS
from tests.faults.blind_h_twins import TWINS
from tests.faults.fault import Fault

__all__ = ["FAULTS", "MENDS", "TWINS"]

FAULTS: tuple[Fault, ...] = (
    *blind_h_configuration.FAULTS,
    *blind_h_weights.FAULTS,
    *blind_h_machine.FAULTS,
)
