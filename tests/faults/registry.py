"""All faults, in the order of the matrix: one module for each kind, one line each."""

from __future__ import annotations

from tests.faults import (
    converted,
    edited,
    gateways,
    middle,
    parsers,
    published,
    relays,
    remade,
    reported,
    resaved,
    rewritten,
    samplings,
    servers,
    settings,
    starts,
    templates,
    thoughts,
    tokens,
    weights,
)
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *parsers.FAULTS, *thoughts.FAULTS, *templates.FAULTS, *tokens.FAULTS, *samplings.FAULTS, *settings.FAULTS,
    *servers.FAULTS, *weights.FAULTS, *starts.FAULTS, *resaved.FAULTS, *edited.FAULTS, *gateways.FAULTS,
    *rewritten.FAULTS, *converted.FAULTS, *remade.FAULTS, *relays.FAULTS, *reported.FAULTS, *middle.FAULTS,
    *published.FAULTS,
)  # fmt: skip

# Not seen yet, or blamed on the wrong part, or told to mend what is whole; the matrix says which.
# One wrong simple answer of three is no evidence of damage any more: it has no verdict. Its cells are older.
OPEN: tuple[str, ...] = ("one-head-is-empty",)
