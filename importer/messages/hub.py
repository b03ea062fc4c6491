"""Sentences about the Hub, its answers, and files that were not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "BodyReason": {
        "coding": "it is packed in a way that was not asked for ({coding})",
        "damaged": "what it is packed in is damaged",
        "cut": "the answer was cut off",
    },
    "ExchangeReason": {
        "no-connection": "{says}",
        "not-connected": "no connection within {seconds:.0f} s",
        "silent": "no answer within {seconds:.0f} s",
        "slow": "the answer took longer than {seconds:.0f} s",
        "cut": "the answer was cut off",
        "failed": "the exchange failed ({name})",
        "short": "{have} of {size} bytes arrived",
        "hops": "it was redirected more than {hops} times",
    },
}
