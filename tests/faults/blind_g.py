"""A seventh round, by an author who did not know the probes: models as they are published and used."""

from __future__ import annotations

from tests.faults import blind_g_files, blind_g_mends, blind_g_serving, blind_g_templates, blind_g_weights
from tests.faults import blind_g_twins as harmless
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *blind_g_templates.FAULTS,
    *blind_g_files.FAULTS,
    *blind_g_weights.FAULTS,
    *blind_g_serving.ENGINE,
    *blind_g_serving.ENVIRONMENT,
)
TWINS: tuple[Fault, ...] = harmless.TWINS
MENDS: dict[str, str] = blind_g_mends.MENDS
