"""All faults, in the order of the matrix: one module for each kind, one line each."""

from __future__ import annotations

from tests.faults import (
    converted,
    edited,
    gateways,
    parsers,
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
    *parsers.FAULTS,
    *thoughts.FAULTS,
    *templates.FAULTS,
    *tokens.FAULTS,
    *samplings.FAULTS,
    *settings.FAULTS,
    *servers.FAULTS,
    *weights.FAULTS,
    *starts.FAULTS,
    *resaved.FAULTS,
    *edited.FAULTS,
    *gateways.FAULTS,
    *rewritten.FAULTS,
    *converted.FAULTS,
)

# Not seen yet, or blamed on the wrong part, or told to mend what is whole; the matrix says which.
OPEN = (
    "beginning-left-to-the-tokenizer",
    "accents-stripped",
    "template-forbids-tools",
    "template-keeps-the-first-call-alone",
    "template-writes-null-as-a-word",
    "template-tells-the-time",
    "template-thinks-the-other-way",
    "template-counts-tools-that-are-none",
    "template-shows-tools-behind-the-question",
    "template-closes-no-turn-of-the-assistants",
    "added-tokens-in-another-order",
    "merges-lost",
    "space-before-every-text",
    "letters-made-small",
    "positions-of-a-sibling",
)
